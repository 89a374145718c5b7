package tune

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"

	"weir/internal/host/proc"
	"weir/internal/host/tune/db"
	"weir/internal/units"
)

// Inputs are what settings are computed from. Zero means unknown.
type Inputs struct {
	Role     db.Role       `json:"role"`
	Link     uint64        `json:"link,omitempty"` // speed of the fastest line, bit/s
	RTT      time.Duration `json:"rtt,omitempty"`
	Memory   uint64        `json:"memory,omitempty"` // bytes
	Burst    int           `json:"burst,omitempty"`  // connections that arrive in one second
	Accepted int           `json:"accepted,omitempty"`
	Cores    int           `json:"cores,omitempty"` // without hyper-threads
	Ports    int           `json:"ports,omitempty"` // number in use
	MTU      int           `json:"mtu,omitempty"`
	PPPoE    bool          `json:"pppoe,omitempty"`
}

// has reports whether an input of a record is known, by db's name.
func (in *Inputs) has(name string) bool {
	missing := map[string]bool{
		"link": in.Link == 0, "rtt": in.RTT == 0, "memory": in.Memory == 0, "burst": in.Burst == 0,
		"cores": in.Cores == 0, "ports": in.Ports == 0, "mtu": in.MTU == 0,
	}
	return !missing[name]
}

// Complete adds what the host reports: its memory, its cores, its cards, and the speed of
// the fastest link.
func (h *Host) Complete(in Inputs) Inputs {
	in.Memory, in.Link = cmp.Or(in.Memory, h.memory()), cmp.Or(in.Link, h.fastestLink())
	in.Cores, in.Ports = cmp.Or(in.Cores, h.cores()), cmp.Or(in.Ports, len(h.cards()))
	return in
}

// cores returns the number of the host's real cores; hyper-threads of one core count
// once, and isolated cores do not count. It is 0 if unknown, as on systems whose
// /proc/cpuinfo names no cores.
func (h *Host) cores() int {
	folder, err := procfs.NewFS(h.path("proc"))
	if err != nil {
		return 0
	}
	threads, err := folder.CPUInfo()
	if err != nil {
		return 0
	}
	cores, isolated := map[string]bool{}, h.isolated()
	for _, t := range threads {
		if t.CoreID != "" && !slices.Contains(isolated, int(t.Processor)) {
			cores[t.PhysicalID+"/"+t.CoreID] = true
		}
	}
	return len(cores)
}

// memory returns the host's memory in bytes; 0 if unknown.
func (h *Host) memory() uint64 {
	bytes, err := proc.Memory(h.path("proc"))
	if err != nil {
		return 0
	}
	return bytes
}

// fastestLink returns the speed of the fastest card in bit/s; 0 if none reports one.
// Devices that are no cards have no "device" directory, and report made-up speeds.
func (h *Host) fastestLink() uint64 {
	devices, err := filepath.Glob(h.path("sys/class/net/*/device"))
	if err != nil {
		return 0
	}
	var fastest uint64
	for _, device := range devices {
		// A link that is down has no speed.
		if mbit, err := strconv.ParseUint(h.text("sys/class/net", filepath.Base(filepath.Dir(device)), "speed"), 10, 32); err == nil {
			fastest = max(fastest, mbit*1_000_000)
		}
	}
	return fastest
}

// slowestLine is the lowest accepted speed: somebody who types 10 means 10M or 10G.
const slowestLine = 1_000

// ParseRate reads a line's speed: a number of bit/s, optionally followed by k, M or G,
// and "bit".
func ParseRate(text string) (uint64, error) {
	rate, err := units.Parse(strings.TrimSuffix(strings.TrimSuffix(text, "/s"), "bit"), 1e3)
	if err == nil && rate >= slowestLine && rate < 1e13 {
		return uint64(rate), nil
	}
	return 0, fmt.Errorf("%q is not a speed: want bit/s, such as 100M, 2.5G or 10G", text)
}

// mostMemory is the most that today's CPUs can address, in bytes.
const mostMemory = 1 << 52

// ParseSize reads a size of memory in bytes, or with k, M or G in units of 1024.
func ParseSize(text string) (uint64, error) {
	size, err := units.Parse(text, 1024)
	if err == nil && size >= 1 && size <= mostMemory && !strings.Contains(text, ".") {
		return uint64(size), nil
	}
	return 0, fmt.Errorf("%q is not a size: want bytes, such as 512M or 8G", text)
}
