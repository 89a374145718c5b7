package proc

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
)

// perCore is a table with a column for each core. The library drops the table's head,
// which tells the columns' cores if a core is offline.
type perCore struct {
	ids  []int
	rows map[string][]string // by the text before the colon
}

func readPerCore(path string) (t perCore, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return t, err
	}
	head, rest, _ := strings.Cut(string(text), "\n")
	for _, f := range strings.Fields(head) {
		id, err := strconv.Atoi(strings.TrimPrefix(f, "CPU"))
		if err != nil {
			return t, fmt.Errorf("%s: column %q", path, f)
		}
		t.ids = append(t.ids, id)
	}
	if len(t.ids) == 0 {
		return t, fmt.Errorf("%s: no core in the head of the table", path)
	}
	t.rows = map[string][]string{}
	for line := range strings.Lines(rest) {
		if name, fields, found := strings.Cut(line, ":"); found {
			t.rows[strings.TrimSpace(name)] = strings.Fields(fields)
		}
	}
	return t, nil
}

// counts returns a row's non-zero counts, by core.
func (t perCore) counts(row []string) (map[int]uint64, error) {
	counts := map[int]uint64{}
	for i, f := range row[:min(len(t.ids), len(row))] {
		n, err := strconv.ParseUint(f, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%q is no number", f)
		}
		if n > 0 {
			counts[t.ids[i]] = n
		}
	}
	return counts, nil
}

// Interrupts reads the counts of the numbered interrupts, by core, and their names, which
// are the last word of the line.
func Interrupts(root string) (counts map[int]map[int]uint64, names map[int]string, err error) {
	t, err := readPerCore(filepath.Join(root, "interrupts"))
	if err != nil {
		return nil, nil, err
	}
	counts, names = map[int]map[int]uint64{}, map[int]string{}
	for number, row := range t.rows {
		irq, err := strconv.Atoi(number)
		if err != nil || len(row) <= len(t.ids) {
			continue // NMI, LOC and the like
		}
		if counts[irq], err = t.counts(row); err != nil {
			return nil, nil, err
		}
		names[irq] = row[len(row)-1]
	}
	return counts, names, nil
}

// NetSoftirqs reads the counts of NET_RX and NET_TX, by name and core.
func NetSoftirqs(root string) (map[string]map[int]uint64, error) {
	t, err := readPerCore(filepath.Join(root, "softirqs"))
	if err != nil {
		return nil, err
	}
	all := map[string]map[int]uint64{}
	for name, row := range t.rows {
		if strings.HasPrefix(name, "NET_") {
			if all[name], err = t.counts(row); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// Pairs reads the counters of /proc/net/snmp and netstat. They are pairs of lines, names
// before values: "Ip.FragFails". The library knows a fixed list of names, but a kernel
// may have more. Values that are no counts are left out: Tcp.MaxConn may be -1.
func Pairs(text string) (map[string]uint64, error) {
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
			if n, err := strconv.ParseUint(f, 10, 64); err == nil {
				all[group+"."+names[i]] = n
			}
		}
	}
	return all, nil
}

// NetStat sums the columns of the tables of /proc/net/stat over the cores, by table and
// column. "entries" is the same in each line, so it is not summed.
func NetStat(root string) (map[string]map[string]uint64, error) {
	fs, err := procfs.NewFS(root)
	if err != nil {
		return nil, err
	}
	tables, err := fs.NetStat()
	if err != nil {
		return nil, err
	}
	all := map[string]map[string]uint64{}
	for _, t := range tables {
		sums := map[string]uint64{}
		for column, perCore := range t.Stats {
			for _, n := range perCore {
				sums[column] += n
			}
			if column == "entries" {
				sums[column] = perCore[0]
			}
		}
		all[t.Filename] = sums
	}
	return all, nil
}

// Memory returns the machine's memory in bytes.
func Memory(root string) (uint64, error) {
	fs, err := procfs.NewFS(root)
	if err != nil {
		return 0, err
	}
	m, err := fs.Meminfo()
	if err == nil && m.MemTotalBytes == nil {
		err = errors.New("no MemTotal in /proc/meminfo")
	}
	if err != nil {
		return 0, err
	}
	return *m.MemTotalBytes, nil
}
