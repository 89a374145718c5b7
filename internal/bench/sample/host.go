package sample

import (
	"errors"
	"fmt"
	"os"

	"weir/internal/host/proc"
)

// Host holds open the counters of a network namespace. Reading them then needs no change
// of the namespace.
type Host struct{ ip, tcp *os.File }

// Traffic is a host's traffic since its network namespace was made.
type Traffic struct {
	Octets float64 // IPv4 octets that arrived, after GRO: headers of joined packets are counted once
	Opened float64 // TCP connections that it opened
}

// OpenHost opens the counters of the calling thread's network namespace. The caller
// closes them.
func OpenHost() (*Host, error) {
	ip, err := os.Open("/proc/thread-self/net/netstat")
	if err != nil {
		return nil, fmt.Errorf("open a host's counters: %w", err)
	}
	tcp, err := os.Open("/proc/thread-self/net/snmp")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open a host's counters: %w", err), ip.Close())
	}
	return &Host{ip, tcp}, nil
}

// Close closes the counters.
func (h *Host) Close() error { return errors.Join(h.ip.Close(), h.tcp.Close()) }

// Read reads the counters.
func (h *Host) Read() (t Traffic, err error) {
	if t.Octets, err = counter(h.ip, "IpExt", "InOctets"); err != nil {
		return t, err
	}
	t.Opened, err = counter(h.tcp, "Tcp", "ActiveOpens")
	return t, err
}

func counter(f *os.File, group, name string) (float64, error) {
	b := make([]byte, 1<<14) // the whole file is under 5 KiB
	n, err := f.ReadAt(b, 0)
	if n == 0 {
		return 0, fmt.Errorf("read %s: %w", f.Name(), err)
	}
	return parseCounter(string(b[:n]), group, name)
}

// parseCounter finds a value in pairs of lines: names, then values (proc(5)).
func parseCounter(text, group, name string) (float64, error) {
	all, err := proc.Pairs(text)
	n, counted := all[group+"."+name]
	if err == nil && !counted {
		err = fmt.Errorf("the kernel counts no %s of %s", name, group)
	}
	return float64(n), err
}
