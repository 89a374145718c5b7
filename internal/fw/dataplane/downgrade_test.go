package dataplane

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"weir/internal/fw/bpfload"
	"weir/internal/fw/reason"
	"weir/internal/fw/state"
)

// sameStates compares states without their index.
var sameStates = cmp.Options{cmpopts.EquateComparable(netip.Addr{}), cmpopts.IgnoreFields(state.State{}, "Index", "NextHops")}

// shuffledLayout is the number of a layout with all fields in another order (gen.go).
const shuffledLayout = 99

func useShuffled(tb testing.TB) {
	tb.Helper()
	object := must(os.ReadFile("testdata/layouts/99_bpfel.o"))(tb)
	real := formerObject
	tb.Cleanup(func() { formerObject = real })
	formerObject = func(layout uint32) ([]byte, error) {
		if layout == shuffledLayout {
			return object, nil
		}
		return real(layout)
	}
}

// States are converted to each earlier layout, and to one with its fields in another
// order, and back. Nothing of them is lost, nor of the interfaces' counters.
func TestOtherLayouts(t *testing.T) {
	useShuffled(t)
	for _, layout := range append(Layouts(), shuffledLayout) {
		n := newNet(t)
		first := build(t, n.blank())
		check(t, first.SetInterface(n.lan0, Interface{Flags: InterfacePresent, MTU: 1500}))
		check(t, first.SetAddresses([]Address{{netip.MustParsePrefix("192.0.2.1/24"), n.lan0}}))
		commit(t, first, n.attachments(false))
		enterStates(t, first, 1000)
		ripen(first.tables)
		wanted := collect(first.View())
		counted := must(newPerCPU[xdpCounter]())(t)
		counted[0] = xdpCounter{Packets: 7, Bytes: 700}
		slot := first.tables.shared.Interfaces[n.lan0].Counters
		check(t, first.tables.maps[mapInterfaceCounters].Put(slot+uint32(reason.Guard), counted))

		g := must(BeginDowngrade(n.dir, layout))(t)
		if g.Copied() != 1000 || g.Lost() != 0 {
			t.Errorf("copied %d, lost %d; want 1000, 0", g.Copied(), g.Lost())
		}
		check(t, g.Offer())
		reader := must(Open(n.dir))(t)
		seen := collect(reader)
		check(t, reader.Close())
		if diff := cmp.Diff(wanted, seen, sameStates); diff != "" {
			t.Errorf("while it is offered, a reader sees (-before +after):\n%s", diff)
		}
		// As the older version would do it: only its programs, here none, use the
		// tables.
		check(t, os.Rename(filepath.Join(n.dir, newerTablesDir), filepath.Join(n.dir, "gone")))
		check(t, g.Close())

		second := build(t, n.blank())
		r := commit(t, second, n.attachments(false))
		if !r.Converted || r.Copied != 1000 || r.Lost != 0 || r.Unreadable != nil {
			t.Errorf("report %+v, want 1000 converted", r)
		}
		if diff := cmp.Diff(wanted, collect(second.View()), sameStates); diff != "" {
			t.Errorf("states (-before +after):\n%s", diff)
		}
		for _, i := range must(second.View().Interfaces())(t) {
			if i.Ifindex == n.lan0 && i.Reasons[reason.Guard].Packets != 7 {
				t.Errorf("lan0 has counted %+v, want 7 packets as guard", i.Reasons[reason.Guard])
			}
		}
		var owner uint32
		key := rawAddr(netip.MustParseAddr("192.0.2.1"))
		check(t, second.tables.maps[mapAddresses].Lookup(&key, &owner))
		if int(owner) != n.lan0 {
			t.Errorf("192.0.2.1 is interface %d's, want %d", owner, n.lan0)
		}
		check(t, removeAll(n.dir, "gone"))
	}
}

// ripen gives each field of the states its own value.
func ripen(t *tables) {
	for i := range t.states {
		s := &t.states[i]
		if s.Status != statusLive {
			continue
		}
		x := uint32(i) * 0x9e3779b1
		s.RuleIn, s.RuleOut, s.Flags = x%100, x%99, uint8(state.In|state.Out|state.NAT)
		for n, f := range []*xdpFlow{&s.FlowForth, &s.FlowBack} {
			x += uint32(n)
			f.Packets, f.Bytes = uint64(x)<<3, uint64(x)<<9
			f.Seqlo, f.Seqhi, f.Grant, f.MaxWin = x, x+1000, x+2000, x>>4
			f.Wscale, f.Peer, f.Flags = uint8(x%15), uint8(state.PeerEstablished), flowSeen|flowGranted
		}
	}
}

// If the older version does not come, everything stays as it was.
func TestDowngradeIsTakenBack(t *testing.T) {
	n := newNet(t)
	first := build(t, n.blank())
	commit(t, first, n.attachments(false))
	enterStates(t, first, 10)
	before := list(t, n.dir)
	id := must(bpfload.MapID(filepath.Join(n.dir, tablesDir, mapStates)))(t)
	load := func(*Downgrade) error { return build(t, n.blank()).Close() }
	unfinished := func(g *Downgrade) error { // killed before the last step of Offer
		check(t, os.Rename(filepath.Join(n.dir, tablesDir), filepath.Join(n.dir, nextTablesDir)))
		return load(g)
	}
	for name, end := range map[string]func(*Downgrade) error{
		"by itself":              (*Downgrade).Withdraw,
		"by a load":              load,
		"killed while it offers": unfinished,
		"killed before that": func(g *Downgrade) error {
			l := must(readLedger(n.dir))(t)
			l.Layout = stateLayout
			check(t, writeLedger(n.dir, l))
			return unfinished(g)
		},
	} {
		g := must(BeginDowngrade(n.dir, 8))(t)
		check(t, g.Offer())
		if taken := must(g.IsTakenOver())(t); taken {
			t.Errorf("%s: taken over by nobody", name)
		}
		check(t, end(g))
		if _, err := g.IsTakenOver(); err == nil {
			t.Errorf("%s: it is offered still", name)
		}
		check(t, g.Close())
		if diff := cmp.Diff(before, list(t, n.dir)); diff != "" {
			t.Errorf("%s: pins (-before +after):\n%s", name, diff)
		}
		if is := must(bpfload.MapID(filepath.Join(n.dir, tablesDir, mapStates)))(t); is != id {
			t.Errorf("%s: other tables are live", name)
		}
		if l := must(readLedger(n.dir))(t); l.Layout != stateLayout {
			t.Errorf("%s: the ledger has layout %d", name, l.Layout)
		}
	}
	if d := build(t, n.blank()); !d.kept {
		t.Error("the tables are not kept after that")
	}
}

// Tables that cannot be read are lost, and this is known before anything changes.
func TestForecastOnUnreadableTables(t *testing.T) {
	n := newNet(t)
	first := build(t, n.blank())
	commit(t, first, n.attachments(false))
	enterStates(t, first, 10)
	if o := build(t, n.blank()); o.Forecast() != (Forecast{}) {
		t.Errorf("forecast %+v on tables that are kept", o.Forecast())
	} else {
		check(t, o.Close())
	}
	l := must(readLedger(n.dir))(t)
	l.Layout = 7
	check(t, writeLedger(n.dir, l))
	pin := filepath.Join(n.dir, tablesDir, mapStates)
	check(t, os.Remove(pin))
	other := must(bpfload.NewTable("states", 256))(t) // without BTF
	defer other.Close()
	check(t, bpfload.PinMap(other, pin))
	second := build(t, n.blank())
	if o := second.Forecast(); !o.LosesAny() || !errors.Is(o.Why, bpfload.ErrNoBTF) {
		t.Errorf("forecast %+v, want all lost because there is no BTF", o)
	}
	if r := commit(t, second, n.attachments(false)); !errors.Is(r.Unreadable, bpfload.ErrNoBTF) || r.Copied != 0 {
		t.Errorf("report %+v", r)
	}
}
