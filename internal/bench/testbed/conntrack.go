package testbed

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	"weir/internal/host/hostinfo"
	"weir/internal/host/netif"
	"weir/internal/host/undolog"
)

// conntrackLimits reads and sets the limits. Tests replace them.
type conntrackLimits struct {
	Read func() (hostinfo.Conntrack, error)
	set  func(hostinfo.Conntrack) error
}

func machineConntrack() conntrackLimits {
	return conntrackLimits{Read: hostinfo.ReadConntrack, set: setConntrack}
}

func setConntrack(c hostinfo.Conntrack) error {
	return errors.Join(netif.SetSysctl(hostinfo.ConntrackMax, strconv.Itoa(c.Max)), setBuckets(c.Buckets))
}

// setBuckets accepts that the kernel rounds the number up.
func setBuckets(n int) error {
	err := netif.SetSysctl(hostinfo.ConntrackBuckets, strconv.Itoa(n))
	if now, read := hostinfo.ReadConntrack(); read == nil && now.Buckets >= n && now.Buckets < n+4096 {
		return nil
	}
	return err
}

// conntrackNote returns the file that keeps the limits from before they were raised.
func conntrackNote(dir string) undolog.File {
	return undolog.File{Path: filepath.Join(dir, "conntrack.json"), Of: "weir bench"}
}

// Raise makes room for that many connections in that many buckets. It notes the old
// limits in a file, so that the next run can restore them if this one is killed.
func (l conntrackLimits) Raise(dir string, connections, buckets int) (restore func() error, err error) {
	before, err := l.Read()
	if err != nil {
		return nil, fmt.Errorf("raise conntrack's limits: %w", err)
	}
	after := before
	after.Max, after.Buckets = max(after.Max, connections), max(after.Buckets, buckets)
	if err := conntrackNote(dir).Write(before); err != nil {
		return nil, err
	}
	restore = func() error { return l.restore(dir) }
	if err := l.set(after); err != nil {
		return nil, errors.Join(fmt.Errorf("raise conntrack's limits: %w", err), restore())
	}
	return restore, nil
}

// restore restores the limits that a run noted before it raised them. It does nothing if
// there is no note.
func (l conntrackLimits) restore(dir string) error {
	note := conntrackNote(dir)
	var before hostinfo.Conntrack
	if err := note.Read(&before); err != nil || before == (hostinfo.Conntrack{}) {
		return err
	}
	if err := l.set(before); err != nil {
		return fmt.Errorf("restore conntrack's limits to %+v: %w", before, err)
	}
	return note.Remove()
}
