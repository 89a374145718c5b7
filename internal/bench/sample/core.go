package sample

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// coreTicks is how a core has spent its time since the machine started, in the
// unit of /proc/stat.
type coreTicks struct {
	total, idle, softirq, user, steal uint64
}

// softnet is what a core's receive queue has met since the machine started.
type softnet struct{ processed, dropped, squeezed uint64 }

func readCores() (map[int]coreTicks, error) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return nil, fmt.Errorf("read the cores' times: %w", err)
	}
	return parseCores(string(b))
}

// parseCores reads the lines of single cores (proc_stat(5)): user nice system
// idle iowait irq softirq steal. Time of guests is in that of user.
func parseCores(stat string) (map[int]coreTicks, error) {
	cores := map[int]coreTicks{}
	for line := range strings.Lines(stat) {
		fields := strings.Fields(line)
		if len(fields) < 9 || !strings.HasPrefix(fields[0], "cpu") || fields[0] == "cpu" {
			continue
		}
		id, err := strconv.Atoi(fields[0][3:])
		if err != nil {
			return nil, fmt.Errorf("read the cores' times: core %q", fields[0])
		}
		var t [8]uint64
		var c coreTicks
		for i := range t {
			if t[i], err = strconv.ParseUint(fields[i+1], 10, 64); err != nil {
				return nil, fmt.Errorf("read the cores' times: %w", err)
			}
			c.total += t[i]
		}
		c.user, c.idle, c.softirq, c.steal = t[0]+t[1], t[3]+t[4], t[6], t[7]
		cores[id] = c
	}
	if len(cores) == 0 {
		return nil, fmt.Errorf("read the cores' times: no core in /proc/stat")
	}
	return cores, nil
}

func readSoftnet() (map[int]softnet, error) {
	b, err := os.ReadFile("/proc/net/softnet_stat")
	if err != nil {
		return nil, fmt.Errorf("read the receive queues: %w", err)
	}
	return parseSoftnet(string(b))
}

// parseSoftnet reads a line of hexadecimal numbers for each core: packets
// processed, dropped, times that the budget was used up; the 13th is the core's
// number, where the kernel says it.
func parseSoftnet(text string) (map[int]softnet, error) {
	queues := map[int]softnet{}
	row := 0
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 3 {
			return nil, fmt.Errorf("read the receive queues: line %q", line)
		}
		var n [13]uint64
		for i := range min(len(fields), len(n)) {
			v, err := strconv.ParseUint(fields[i], 16, 64)
			if err != nil {
				return nil, fmt.Errorf("read the receive queues: %w", err)
			}
			n[i] = v
		}
		id := row
		if len(fields) >= len(n) {
			id = int(n[12])
		}
		queues[id] = softnet{n[0], n[1], n[2]}
		row++
	}
	return queues, nil
}

// since is what a core did from an earlier reading to this one.
func (c coreTicks) since(before coreTicks) (busy, softirq, user, steal float64) {
	total := float64(c.total - before.total)
	if c.total <= before.total {
		return 0, 0, 0, 0
	}
	share := func(now, then uint64) float64 {
		if now < then { // the kernel corrects idle time backwards at times
			return 0
		}
		return min(float64(now-then)/total, 1)
	}
	return 1 - share(c.idle, before.idle), share(c.softirq, before.softirq), share(c.user, before.user), share(c.steal, before.steal)
}

func (c coreTicks) plus(o coreTicks) coreTicks {
	return coreTicks{c.total + o.total, c.idle + o.idle, c.softirq + o.softirq, c.user + o.user, c.steal + o.steal}
}

// minus takes away no more than there is: the kernel corrects idle time backwards
// at times.
func (c coreTicks) minus(o coreTicks) coreTicks {
	less := func(a, b uint64) uint64 { return a - min(a, b) }
	return coreTicks{less(c.total, o.total), less(c.idle, o.idle), less(c.softirq, o.softirq), less(c.user, o.user), less(c.steal, o.steal)}
}

// since is wrapping: the kernel's counters have 32 bits.
func (s softnet) since(before softnet) softnet {
	return softnet{
		uint64(uint32(s.processed) - uint32(before.processed)),
		uint64(uint32(s.dropped) - uint32(before.dropped)),
		uint64(uint32(s.squeezed) - uint32(before.squeezed)),
	}
}
