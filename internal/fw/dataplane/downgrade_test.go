package dataplane

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

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
		if copied, lost := g.Count(); copied != 1000 || lost != 0 {
			t.Errorf("copied %d, lost %d; want 1000, 0", copied, lost)
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
		if taken := must(g.Takeover())(t); taken != TakenByNobody {
			t.Errorf("%s: taken over: %d", name, taken)
		}
		check(t, end(g))
		if _, err := g.Takeover(); !errors.Is(err, ErrTakenBack) {
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

// While weir waits for the older version, connections end and others begin, more than the
// table has room for, and with the tuples and at the indexes of those that ended. All of
// them are copied. What could not be copied once is tried again.
func TestDowngradeFollowsChurn(t *testing.T) {
	useShuffled(t)
	for _, layout := range append(Layouts(), shuffledLayout) {
		n := newNet(t)
		cfg := n.blank()
		cfg.Options.MaxStates = 64
		first := build(t, cfg)
		commit(t, first, n.attachments(false))
		g := must(BeginDowngrade(n.dir, layout))(t)
		check(t, g.Offer())
		for round := range 8 {
			enterStates(t, first, 64)
			check(t, g.Follow())
			awaitCount(t, g, fmt.Sprintf("layout %d, round %d", layout, round), 64)
			if killed := first.View().KillStates(func(*state.State) bool { return true }); killed != 64 {
				t.Fatalf("killed %d states, want 64", killed)
			}
			if round%2 == 0 { // otherwise others have the tuples when the copier looks again
				check(t, g.Follow())
				awaitCount(t, g, "after the end of all", 0)
			}
			awaitNone(t, first.View())
		}
		check(t, g.Withdraw())
		check(t, g.Close())
	}
}

// A state that could not be copied is tried again, and the next connection at its index is
// another one.
func TestDowngradeTriesLostAgain(t *testing.T) {
	n := newNet(t)
	first := build(t, n.blank())
	commit(t, first, n.attachments(false))
	enterStates(t, first, 1)
	one := entered(first.tables, 1)
	two := &first.tables.states[len(first.tables.states)-1]
	*two = *one // the same tuples: one of them is refused
	g := must(BeginDowngrade(n.dir, 8))(t)
	want := func(when string, copied, lost int) {
		t.Helper()
		check(t, g.Follow())
		if c, l := g.Count(); c != copied || l != lost {
			t.Errorf("%s: copied %d, lost %d; want %d, %d", when, c, l, copied, lost)
		}
	}
	want("two with the same tuples", 1, 1)
	atomic.StoreUint32(&one.Status, statusDead)
	want("one of them has ended", 1, 0)
	atomic.StoreUint32(&one.Status, statusLive)
	want("it is back", 1, 1)
	g.copier.retries = false
	one.Forth.Tuple.Sport, one.Back.Tuple.Dport = 2, 2
	want("another connection has its index", 2, 0)
	check(t, g.Close())
}

// awaitCount waits until so many states are copied, and none is lost.
func awaitCount(t *testing.T, g *Downgrade, when string, want int) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		copied, lost := g.Count()
		if copied == want && lost == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: copied %d, lost %d; want %d, 0", when, copied, lost, want)
		}
		check(t, g.Follow())
	}
}

// awaitNone waits until the garbage collection has released all states.
func awaitNone(t *testing.T, v *View) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); v.InUse() != 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d states are in use", v.InUse())
		}
	}
}

// Rule paths that get a number while weir waits keep it: the older version gives away
// only others.
func TestDowngradeFollowsPaths(t *testing.T) {
	n := newNet(t)
	first := build(t, n.blank())
	commit(t, first, n.attachments(false))
	g := must(BeginDowngrade(n.dir, 8))(t)
	first.tables.shared.PathsHigh += 500
	first.tables.shared.PathsReserved += 5
	check(t, g.Follow())
	high, reserved := *g.importer.shared.pathsHigh, *g.importer.shared.pathsReserved
	if s := first.tables.shared; high < s.PathsHigh+slack || reserved != s.PathsReserved {
		t.Errorf("paths up to %d, %d reserved; want %d or more, %d", high, reserved, s.PathsHigh+slack, s.PathsReserved)
	}
	check(t, g.Close())
}

// An older version whose rules have another limit of states makes tables of its own and
// copies the offered ones.
func TestDowngradeToOtherLimit(t *testing.T) {
	n := newNet(t)
	first := build(t, n.config())
	commit(t, first, n.attachments(false))
	g := must(BeginDowngrade(n.dir, 8))(t)
	check(t, g.Offer())
	if g.IsBeingTaken() {
		t.Error("it is being taken by nobody")
	}
	// As the older version would do it: its programs use other tables, and the offered
	// ones are the old ones until they are copied.
	check(t, os.Mkdir(filepath.Join(n.dir, nextGenerationDir), 0o700))
	if !g.IsBeingTaken() {
		t.Error("it is not seen that it is being taken")
	}
	if taken, err := g.Takeover(); taken != TakenByNobody || err != nil {
		t.Errorf("before the programs are replaced: taken over %d, %v", taken, err)
	}
	cfg := n.config()
	cfg.Dir = filepath.Join(filepath.Dir(n.dir), "older")
	cfg.Options.MaxStates *= 2
	check(t, os.RemoveAll(filepath.Join(n.dir, linksDir)))
	older := build(t, cfg)
	commit(t, older, n.attachments(false))
	check(t, os.Rename(filepath.Join(cfg.Dir, linksDir), filepath.Join(n.dir, linksDir)))
	check(t, os.Rename(filepath.Join(n.dir, tablesDir), filepath.Join(n.dir, oldTablesDir)))
	if taken, err := g.Takeover(); taken != TakenAsCopy || err != nil {
		t.Errorf("other tables are in use: taken over %d, %v", taken, err)
	}
	check(t, g.Finish())
	check(t, g.Close())
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

// Tables that an interrupted Commit was copying from, and that cannot be read, are lost,
// and this is known before anything changes. Once all is copied, what is left of them
// does not matter.
func TestForecastOnUnreadableRest(t *testing.T) {
	n := newNet(t)
	first := build(t, n.blank())
	commit(t, first, n.attachments(false))
	enterStates(t, first, 10)
	rest := func() {
		check(t, os.Mkdir(filepath.Join(n.dir, oldTablesDir), 0o700))
		other := must(bpfload.NewTable("states", 256))(t) // without BTF
		defer other.Close()
		check(t, bpfload.PinMap(other, filepath.Join(n.dir, oldTablesDir, mapStates)))
	}
	rest()
	l := must(readLedger(n.dir))(t)
	l.From, l.Copied = 8, 1
	check(t, writeLedger(n.dir, l))
	second := build(t, n.blank())
	if o := second.Forecast(); !o.LosesAny() || !o.Rest {
		t.Errorf("forecast %+v, want the rest lost", o)
	}
	if r := commit(t, second, n.attachments(false)); r.RestUnreadable == nil || r.Unreadable != nil {
		t.Errorf("report %+v, want the rest lost", r)
	}
	if left := len(collect(second.View())); left != 10 {
		t.Errorf("%d states that were copied are left, want 10", left)
	}
	check(t, second.Close())
	rest()
	third := build(t, n.blank())
	if o := third.Forecast(); o != (Forecast{}) {
		t.Errorf("forecast %+v though all is copied", o)
	}
	if r := commit(t, third, n.attachments(false)); r.RestUnreadable != nil {
		t.Errorf("report %+v though all is copied", r)
	}
}
