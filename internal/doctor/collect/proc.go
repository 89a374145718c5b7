package collect

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"weir/internal/doctor"
)

func readFile(name string) (string, error) {
	b, err := os.ReadFile(name)
	return string(b), err
}

// numbers reads a line's fields in a base.
func numbers(fields []string, base int) ([]uint64, error) {
	all := make([]uint64, len(fields))
	for i, f := range fields {
		n, err := strconv.ParseUint(f, base, 64)
		if err != nil {
			return nil, fmt.Errorf("%q is no number", f)
		}
		all[i] = n
	}
	return all, nil
}

// parseStat reads the lines of single cores (proc_stat(5)): user nice system idle
// iowait irq softirq steal.
func parseStat(text string) (map[int]doctor.CPUTimes, error) {
	cores := map[int]doctor.CPUTimes{}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 9 || !strings.HasPrefix(f[0], "cpu") || f[0] == "cpu" {
			continue
		}
		id, err := strconv.Atoi(f[0][3:])
		if err != nil {
			return nil, fmt.Errorf("core %q", f[0])
		}
		t, err := numbers(f[1:9], 10)
		if err != nil {
			return nil, err
		}
		cores[id] = doctor.CPUTimes{User: t[0], Nice: t[1], System: t[2], Idle: t[3], IOWait: t[4], IRQ: t[5], Softirq: t[6], Steal: t[7]}
	}
	if len(cores) == 0 {
		return nil, errors.New("no core in /proc/stat")
	}
	return cores, nil
}

// idField is where a line of softnet_stat has the core's number.
const idField = 12

// parseSoftnet reads a line of hexadecimal numbers for each core; the 13th is the
// core's number, where the kernel says it (5.10 and later).
func parseSoftnet(text string) (map[int]doctor.Softnet, error) {
	cores := map[int]doctor.Softnet{}
	row := 0
	for line := range strings.Lines(text) {
		n, err := numbers(strings.Fields(line), 16)
		if err != nil || len(n) < 3 {
			return nil, fmt.Errorf("line %q", line)
		}
		id := row
		if len(n) > idField {
			id = int(n[idField])
		}
		n = append(n, make([]uint64, idField)...) // older kernels say less
		cores[id] = doctor.Softnet{Processed: n[0], Dropped: n[1], Squeezed: n[2], RPS: n[9], FlowLimit: n[10]}
		row++
	}
	return cores, nil
}

// columns are the cores that the head of a table names: CPU0 CPU1 …
func columns(head string) ([]int, error) {
	var ids []int
	for _, f := range strings.Fields(head) {
		id, err := strconv.Atoi(strings.TrimPrefix(f, "CPU"))
		if err != nil {
			return nil, fmt.Errorf("column %q", f)
		}
		ids = append(ids, id)
	}
	if len(ids) == 0 {
		return nil, errors.New("no core in the head of the table")
	}
	return ids, nil
}

// row reads the counts of one line by core, leaving zeros out.
func row(ids []int, fields []string) (map[int]uint64, error) {
	n, err := numbers(fields[:min(len(ids), len(fields))], 10)
	if err != nil {
		return nil, err
	}
	counts := map[int]uint64{}
	for i, c := range n {
		if c > 0 {
			counts[ids[i]] = c
		}
	}
	return counts, nil
}

func parseSoftirqs(text string) (map[string]map[int]uint64, error) {
	head, rest, _ := strings.Cut(text, "\n")
	ids, err := columns(head)
	if err != nil {
		return nil, err
	}
	all := map[string]map[int]uint64{}
	for line := range strings.Lines(rest) {
		name, counts, found := strings.Cut(line, ":")
		name = strings.TrimSpace(name)
		if !found || !strings.HasPrefix(name, "NET_") {
			continue
		}
		if all[name], err = row(ids, strings.Fields(counts)); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// parseInterrupts reads counts and names of numbered interrupts; the name is the
// line's last word.
func parseInterrupts(text string) (map[int]map[int]uint64, map[int]string, error) {
	head, rest, _ := strings.Cut(text, "\n")
	ids, err := columns(head)
	if err != nil {
		return nil, nil, err
	}
	counts, names := map[int]map[int]uint64{}, map[int]string{}
	for line := range strings.Lines(rest) {
		number, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		irq, err := strconv.Atoi(number)
		fields := strings.Fields(rest)
		if err != nil || len(fields) <= len(ids) {
			continue // NMI, LOC and the like
		}
		if counts[irq], err = row(ids, fields); err != nil {
			return nil, nil, err
		}
		names[irq] = fields[len(fields)-1]
	}
	return counts, names, nil
}

// parseSNMP reads pairs of lines: names, then values.
func parseSNMP(text string) (map[string]uint64, error) {
	all := map[string]uint64{}
	var group string
	var names []string
	for line := range strings.Lines(text) {
		name, rest, found := strings.Cut(line, ":")
		if !found {
			return nil, fmt.Errorf("line %q", line)
		}
		fields := strings.Fields(rest)
		if name != group {
			group, names = name, fields
			continue
		}
		for i, f := range fields[:min(len(names), len(fields))] {
			if n, err := strconv.ParseUint(f, 10, 64); err == nil { // MaxConn may be -1
				all[group+"."+names[i]] = n
			}
		}
	}
	return all, nil
}

// parseSNMP6 adds those of IPv6: Ip6FragFails becomes Ip6.FragFails.
func parseSNMP6(all map[string]uint64, text string) error {
	if all == nil {
		return errors.New("the counters of IPv4 are missing")
	}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) != 2 || !strings.HasPrefix(f[0], "Ip6") {
			continue
		}
		n, err := strconv.ParseUint(f[1], 10, 64)
		if err != nil {
			return fmt.Errorf("line %q", line)
		}
		all["Ip6."+f[0][3:]] = n
	}
	return nil
}

// parseTable sums the columns of a file of /proc/net/stat, whose lines are cores
// and whose numbers are hexadecimal. "entries" is the same in each.
func parseTable(text string) (map[string]uint64, error) {
	head, rest, _ := strings.Cut(text, "\n")
	names := strings.Fields(head)
	all := map[string]uint64{}
	for line := range strings.Lines(rest) {
		n, err := numbers(strings.Fields(line), 16)
		if err != nil {
			return nil, err
		}
		for i := range n[:min(len(n), len(names))] {
			if names[i] == "entries" {
				all["entries"] = n[i]
			} else {
				all[names[i]] += n[i]
			}
		}
	}
	if len(names) == 0 || names[0] != "entries" {
		return nil, fmt.Errorf("its head is %q", head)
	}
	return all, nil
}

func (r *reader) table(name string) (map[string]uint64, error) {
	text, err := readFile(r.procFile("net/stat", name))
	if err != nil {
		return nil, err
	}
	return parseTable(text)
}

// conntrack prefers the namespace's own count to the table's. A kernel that has neither
// tracks nothing.
func (r *reader) conntrack(c *doctor.Counters) {
	text, err := readFile(r.procFile("sys/net/netfilter/nf_conntrack_count"))
	t, noTable := r.table("nf_conntrack")
	if errors.Is(err, fs.ErrNotExist) && errors.Is(noTable, fs.ErrNotExist) {
		c.Conntrack = &doctor.Conntrack{}
		return
	}
	if noTable != nil {
		r.lacks("conntrack", noTable)
		return
	}
	c.Conntrack = &doctor.Conntrack{Count: int(t["entries"]), InsertFailed: t["insert_failed"], Drop: t["drop"], EarlyDrop: t["early_drop"]}
	if n, bad := strconv.Atoi(strings.TrimSpace(text)); err == nil && bad == nil {
		c.Conntrack.Count = n
	}
}

func (r *reader) neighbours(c *doctor.Counters) {
	t4, err := r.table("arp_cache")
	if err != nil {
		r.lacks("neighbours", err)
		return
	}
	c.Neighbours = &doctor.Neighbours{Entries4: int(t4["entries"]), Full4: t4["table_fulls"]}
	t6, err := r.table("ndisc_cache")
	if err != nil {
		r.lacks("neighbours of IPv6", err)
		return
	}
	c.Neighbours.Entries6, c.Neighbours.Full6 = int(t6["entries"]), t6["table_fulls"]
}
