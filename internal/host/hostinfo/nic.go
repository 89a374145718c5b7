package hostinfo

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/safchain/ethtool"
)

// NIC is a network card. Its addresses are private and not read.
type NIC struct {
	Name   string `json:"name"`
	Driver string `json:"driver"`
	Mbit   int    `json:"mbit,omitempty"` // 0: no link, or the driver does not report it
	Queues int    `json:"queues"`         // receive queues
	MTU    int    `json:"mtu"`
	// Offloads lists the enabled offloads by ethtool's names.
	Offloads []string `json:"offloads,omitempty"`
}

// offloads are those that change a packet's cost, by the kernel's features.
var offloads = []struct{ name, feature string }{
	{"rx-checksum", "rx-checksum"}, {"tx-checksum", "tx-checksum-ip-generic"}, {"tx-checksum", "tx-checksum-ipv4"},
	{"tso", "tx-tcp-segmentation"}, {"gso", "tx-generic-segmentation"}, {"gro", "rx-gro"}, {"gro-hw", "rx-gro-hw"}, {"lro", "rx-lro"},
	{"rx-vlan", "rx-vlan-hw-parse"}, {"tx-vlan", "tx-vlan-hw-insert"}, {"rx-hash", "rx-hashing"}, {"ntuple", "rx-ntuple-filter"},
}

// nics returns the cards of sys's network namespace. Devices without hardware are left
// out.
func nics(sys string) (found []NIC) {
	folders, err := filepath.Glob(filepath.Join(sys, "class/net/*/device"))
	if err != nil {
		return nil
	}
	for _, folder := range folders {
		dir := filepath.Dir(folder)
		n := NIC{Name: filepath.Base(dir), Mbit: max(readNumber(filepath.Join(dir, "speed")), 0), MTU: readNumber(filepath.Join(dir, "mtu"))}
		if driver, err := os.Readlink(filepath.Join(folder, "driver")); err == nil {
			n.Driver = filepath.Base(driver)
		}
		if queues, err := filepath.Glob(filepath.Join(dir, "queues/rx-*")); err == nil {
			n.Queues = len(queues)
		}
		n.Offloads = offloadsOf(n.Name)
		found = append(found, n)
	}
	return found
}

func offloadsOf(device string) (on []string) {
	handle, err := ethtool.NewEthtool()
	if err != nil {
		return nil
	}
	defer handle.Close()
	features, err := handle.Features(device)
	if err != nil {
		return nil
	}
	for _, o := range offloads {
		if features[o.feature] && !slices.Contains(on, o.name) {
			on = append(on, o.name)
		}
	}
	return on
}

// readText returns the contents of a kernel file, "" if there is none.
func readText(name string) string {
	b, err := os.ReadFile(name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// readNumber returns a file's number; 0 if there is none.
func readNumber(name string) int {
	n, err := strconv.Atoi(readText(name))
	if err != nil {
		return 0
	}
	return n
}
