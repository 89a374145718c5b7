package dataplane

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"weir/internal/fw/bpfload"
	"weir/internal/fw/reason"
)

// Everything that a process reads from the pins is what the programs have counted.
func TestView(t *testing.T) {
	h := newHarness(t, "block\npass in on lan0\npass out on wan0 proto udp", func(c *Config) { c.RuleBase = 40 })
	commit(t, h.dp, nil)
	h.counted = make(map[int][reason.Count]uint64)
	for _, packet := range []string{
		"udp 192.168.1.10:1 > 198.51.100.9:53 len 72",
		"udp 192.168.1.10:1 > 198.51.100.9:53 len 72",
		"tcp 192.168.1.10:1 > 198.51.100.9:53 S",
	} {
		h.in(h.xdp, "lan", packet)
	}
	h.in(h.xdp, "wan", "udp 198.51.100.9:9 > 192.168.1.10:1")
	v := must(Open(h.net.dir))(t)
	defer func() { check(t, v.Close()) }()

	info := must(v.Info())(t)
	loaded := info.Loaded
	if time.Since(loaded) > time.Minute {
		t.Errorf("loaded %v ago", time.Since(loaded))
	}
	want := Info{
		Generation: 1, Loaded: loaded, RuleBase: 40, Rules: 3, States: 1, MaxStates: 1024, MaxSources: 10000, Made: 1,
		Paths: info.Paths, NextHops: 1, Now: start, Frag: 6000, MaxFrags: 8192,
		AdaptiveStart: h.dp.config.Options.AdaptiveStart, AdaptiveEnd: h.dp.config.Options.AdaptiveEnd,
		Timeouts: h.dp.config.Options.Timeouts, Configured: h.dp.config.Options.Timeouts,
	}
	if diff := cmp.Diff(want, info); diff != "" {
		t.Errorf("info (-want +got):\n%s", diff)
	}

	interfaces := must(v.Interfaces())(t)
	reasons := make(map[int]map[string]uint64)
	for _, i := range interfaces {
		reasons[i.Ifindex] = make(map[string]uint64)
		for r, c := range i.Reasons {
			if c.Packets > 0 {
				reasons[i.Ifindex][reason.Reason(r).String()] = c.Packets
			}
		}
	}
	if diff := cmp.Diff(map[int]map[string]uint64{
		1: {}, h.net.lan0: {"rule": 1, "state": 1, "block": 1}, h.net.wan0: {"block": 1},
	}, reasons); diff != "" {
		t.Errorf("interfaces (-want +got):\n%s", diff)
	}

	counted := make(map[string]Counter)
	for _, p := range must(v.Paths())(t) {
		if p.Counter() != (Counter{}) {
			counted[fmt.Sprint(p.Rules)] = p.Counter()
		}
	}
	if diff := cmp.Diff(map[string]Counter{"[41 42]": {2, 200}, "[41 40]": {1, 40}, "[40]": {1, 28}}, counted); diff != "" {
		t.Errorf("paths (-want +got):\n%s", diff)
	}
	for _, p := range must(v.Paths())(t) {
		if want := fmt.Sprint(p.Rules) == "[41 42]"; (p.States == 1) != want {
			t.Errorf("%d states under the rules %v", p.States, p.Rules)
		}
	}
	rules := must(v.Rules())(t)
	if diff := cmp.Diff([]RuleCounter{{5, 0}, {5, 1}, {5, 1}}, rules); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	neighbours := v.Neighbours(100)
	if diff := cmp.Diff([]Neighbour{{h.net.wan0, netip.MustParseAddr("203.0.113.1"), start}}, neighbours,
		cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Errorf("neighbours (-want +got):\n%s", diff)
	}
	if n := len(collect(v)); n != 1 {
		t.Errorf("%d states, want 1", n)
	}
}

// Reading a table of states: a million of them in well under a second.
func BenchmarkStates(b *testing.B) {
	const count = 1_000_000
	v := &View{tables: &tables{states: make([]xdpState, count+1), shared: &xdpShared{}}}
	for i := range v.tables.states {
		v.tables.states[i].Status = statusLive
	}
	for b.Loop() {
		n := 0
		for range v.States() {
			n++
		}
		if n != count {
			b.Fatalf("%d states, want %d", n, count)
		}
	}
}

// A view opens at any moment of a Commit, also between its renames.
func TestViewOpensWhilePinsAreRenamed(t *testing.T) {
	n := newNet(t)
	first := build(t, n.blank())
	commit(t, first, nil)
	check(t, first.tables.pin(filepath.Join(n.dir, nextTablesDir)))
	next := filepath.Join(n.dir, nextGenerationDir)
	check(t, os.Mkdir(next, 0o700))
	for name, m := range first.generationMaps() {
		check(t, bpfload.PinMap(m, filepath.Join(next, pinName(name))))
	}
	check(t, pinLedger(next, first.ledger))
	stop, done := make(chan struct{}), make(chan error)
	go func() { done <- bpfload.At("").Do(func() error { return promoteUntil(stop, n.dir) }) }()
	for range 1000 {
		v, err := Open(n.dir)
		if err != nil {
			t.Error(err)
			break
		}
		if _, err := v.Info(); err != nil {
			t.Error(err)
		}
		check(t, v.Close())
	}
	close(stop)
	check(t, <-done)
}

// promoteUntil promotes the next pins, and then what was live before, again and again.
func promoteUntil(stop chan struct{}, dir string) error {
	for {
		select {
		case <-stop:
			return nil
		case <-time.After(5 * time.Millisecond):
		}
		if err := promote(dir); err != nil {
			return err
		}
		for old, next := range map[string]string{oldTablesDir: nextTablesDir, oldGenerationDir: nextGenerationDir} {
			if err := os.Rename(filepath.Join(dir, old), filepath.Join(dir, next)); err != nil {
				return err
			}
		}
	}
}
