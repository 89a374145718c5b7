package dataplane

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/vishvananda/netlink"

	"weir/internal/fw/bpfload"
	"weir/internal/fw/ruleset"
	"weir/internal/fw/state"
	"weir/internal/host/filelock"
	"weir/pf/resolve"
)

// testOptions returns small options, so that loading is quick.
func testOptions() ruleset.Options {
	return ruleset.OptionsOf(&resolve.Options{
		MaxStates: 1024,
		Timeouts: resolve.Timeouts{
			TCPFirst: 120, TCPOpening: 30, TCPEstablished: 86400, TCPClosing: 900, TCPFinWait: 45, TCPClosed: 90,
			UDPFirst: 60, UDPSingle: 30, UDPMultiple: 60, ICMPFirst: 20, ICMPError: 10,
			OtherFirst: 60, OtherSingle: 30, OtherMultiple: 60, Frag: 60,
		},
	})
}

func (n *testNet) config() Config {
	return Config{Dir: n.dir, Program: must(ruleset.Compile(&resolve.Ruleset{Options: resolve.Options{ImplicitPass: true}}, ruleset.Snapshot{}))(n.tb), Options: testOptions(), XDP: true, specs: copiedSpecs}
}

// blank returns a configuration whose programs pass everything and load at once.
func (n *testNet) blank() Config {
	cfg := n.config()
	cfg.specs = func() ([]*bpfload.Spec, error) {
		specs, err := copiedSpecs()
		for _, s := range specs {
			bpfload.Blank(s)
		}
		return specs, err
	}
	return cfg
}

func build(tb testing.TB, cfg Config) *Dataplane {
	tb.Helper()
	d, err := Build(cfg)
	if err != nil {
		tb.Fatalf("%+v", err)
	}
	tb.Cleanup(func() { check(tb, d.Close()) })
	return d
}

func commit(tb testing.TB, d *Dataplane, attachments []Attachment) Report {
	tb.Helper()
	r, err := d.Commit(attachments)
	check(tb, err)
	return r
}

// linkPrograms tells whether links were replaced or kept.
func linkPrograms(tb testing.TB, dir string) map[linkKey]string {
	tb.Helper()
	links := must(openLinks(dir))(tb)
	defer closeLinks(links)
	names := make(map[linkKey]string)
	for key, l := range links {
		p := must(l.link.Program())(tb)
		info := must(p.Info())(tb)
		names[key] = info.Name
		p.Close()
	}
	return names
}

func TestCommit(t *testing.T) {
	n := newNet(t)
	d := build(t, n.config())
	r := commit(t, d, n.attachments(true))
	if r.Generation != 1 {
		t.Errorf("generation %d, want 1", r.Generation)
	}
	want := map[linkKey]string{}
	for _, ifindex := range []int{n.lan0, n.wan0} {
		for hook, program := range programs {
			want[linkKey{ifindex, hook}] = program
		}
	}
	if diff := cmp.Diff(want, linkPrograms(t, n.dir)); diff != "" {
		t.Errorf("links (-want +got):\n%s", diff)
	}
	check(t, d.Close())

	next := build(t, n.blank())
	if r := commit(t, next, n.attachments(false)[:1]); r.Generation != 2 {
		t.Errorf("generation %d, want 2", r.Generation)
	}
	want = map[linkKey]string{
		{n.lan0, bpfload.Ingress}: "weir_tc_in",
		{n.lan0, bpfload.Egress}:  "weir_tc_out",
	}
	if diff := cmp.Diff(want, linkPrograms(t, n.dir)); diff != "" {
		t.Errorf("links after the second (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"generation", "links", "tables"}, list(t, n.dir)); diff != "" {
		t.Errorf("pins (-want +got):\n%s", diff)
	}
}

func list(tb testing.TB, dir string) []string {
	tb.Helper()
	var names []string
	for _, e := range must(os.ReadDir(dir))(tb) {
		names = append(names, e.Name())
	}
	return names
}

// The kernel keeps the clock, with or without a process.
func TestGCRuns(t *testing.T) {
	n := newNet(t)
	first := build(t, n.blank())
	commit(t, first, n.attachments(false))
	check(t, first.Close())
	second := build(t, n.blank())
	commit(t, second, n.attachments(false))
	check(t, second.Close()) // as if the daemon were killed
	v := must(Open(n.dir))(t)
	before := must(v.Info())(t).Now
	time.Sleep(200 * time.Millisecond)
	if ticks := must(v.Info())(t).Now.Since(before); ticks < 10 || ticks > 40 {
		t.Errorf("the clock went %d ticks in 0.2 s", ticks)
	}
	check(t, v.Close())
	check(t, Remove(n.dir))
	if _, err := Open(n.dir); !errors.Is(err, ErrNotLoaded) {
		t.Errorf("open after remove: %v", err)
	}
}

func TestBuildIsExclusive(t *testing.T) {
	n := newNet(t)
	d := build(t, n.blank())
	if _, err := Build(n.blank()); !errors.Is(err, ErrBusy) {
		t.Errorf("second build: %v, want ErrBusy", err)
	}
	commit(t, d, nil)
	build(t, n.blank())
}

// A foreign XDP program makes the commit fail, and every link has its old program.
func TestCommitFailsWhole(t *testing.T) {
	n := newNet(t)
	elsewhere := n.blank()
	elsewhere.Dir += "2"
	foreign := build(t, elsewhere)
	link := must(bpfload.Attach(foreign.objects.Programs["weir_xdp_miss"], bpfload.XDP, n.wan0))(t)
	defer link.Close()
	id, _ := must(foreign.objects.Programs["weir_xdp_miss"].Info())(t).ID()

	first := build(t, n.blank())
	commit(t, first, n.attachments(false))
	before := linkIDs(t, n.dir)
	second := build(t, n.blank())
	_, err := second.Commit(n.attachments(true))
	var attach *AttachError
	if !errors.As(err, &attach) || attach.Attachment.Name != "wan0" || !errors.Is(err, ErrForeign) {
		t.Fatalf("commit over a foreign program: %v", err)
	}
	if holder := fmt.Sprintf("weir_xdp_miss (id %d), held by ", id); !strings.Contains(err.Error(), holder) || !strings.Contains(err.Error(), fmt.Sprintf("[%d]", os.Getpid())) {
		t.Errorf("the error does not name the program and this process: %v", err)
	}
	if diff := cmp.Diff(before, linkIDs(t, n.dir)); diff != "" {
		t.Errorf("links after the failure (-before +after):\n%s", diff)
	}
	if r := commit(t, second, n.attachments(false)); r.Generation != 2 {
		t.Errorf("generation %d after another try, want 2", r.Generation)
	}
}

// linkIDs returns the program id of every link.
func linkIDs(tb testing.TB, dir string) map[linkKey]uint32 {
	tb.Helper()
	links := must(openLinks(dir))(tb)
	defer closeLinks(links)
	ids := make(map[linkKey]uint32)
	for key, l := range links {
		p := must(l.link.Program())(tb)
		id, _ := must(p.Info())(tb).ID()
		ids[key] = uint32(id)
		p.Close()
	}
	return ids
}

func TestRuleIDsAreNotReused(t *testing.T) {
	n := newNet(t)
	if base := must(NextRuleBase(n.dir))(t); base != 0 {
		t.Errorf("first base %d, want 0", base)
	}
	commit(t, build(t, n.blank()), nil)
	l := must(readLedger(n.dir))(t)
	l.NextRule = 70
	check(t, writeLedger(n.dir, l))
	if base := must(NextRuleBase(n.dir))(t); base != 70 {
		t.Errorf("base %d, want 70", base)
	}
	d := build(t, n.blank())
	commit(t, d, nil)
	if base := must(NextRuleBase(n.dir))(t); base != 70 {
		t.Errorf("base after a reload %d, want 70", base)
	}
}

func TestLeftover(t *testing.T) {
	n := newNet(t)
	commit(t, build(t, n.blank()), n.attachments(true))
	if is := must(Leftover(n.dir))(t); is {
		t.Error("a live folder is a leftover")
	}
	for _, name := range []string{"lan0", "wan0"} {
		check(t, netlink.LinkDel(must(netlink.LinkByName(name))(t)))
	}
	if is := must(Leftover(n.dir))(t); !is {
		t.Error("a folder whose interfaces are gone is no leftover")
	}
	check(t, Remove(n.dir))
	check(t, Remove(n.dir))
	if is := must(Leftover(n.dir))(t); is {
		t.Error("no folder is a leftover")
	}
}

func TestAttachDetach(t *testing.T) {
	n := newNet(t)
	d := build(t, n.blank())
	commit(t, d, n.attachments(false)[:1])
	check(t, d.Attach(n.attachments(true)[1]))
	check(t, d.Attach(n.attachments(false)[1]))
	check(t, d.Detach(n.lan0))
	check(t, d.Detach(n.lan0))
	want := map[linkKey]string{
		{n.wan0, bpfload.Ingress}: "weir_tc_in",
		{n.wan0, bpfload.Egress}:  "weir_tc_out",
	}
	if diff := cmp.Diff(want, linkPrograms(t, n.dir)); diff != "" {
		t.Errorf("links (-want +got):\n%s", diff)
	}
	other := build(t, n.blank())
	if err := errors.Join(d.Attach(n.attachments(false)[0]), d.Detach(n.wan0)); !errors.Is(err, ErrBusy) || errors.Is(err, ErrSuperseded) {
		t.Errorf("attach and detach while another generation is built: %v", err)
	}
	commit(t, other, nil)
	if err := d.Attach(n.attachments(false)[0]); !errors.Is(err, ErrSuperseded) {
		t.Errorf("attach an old generation: %v", err)
	}
}

// If an interface is gone when it is to be attached, that is reported but is no error.
func TestCommitWithoutInterface(t *testing.T) {
	n := newNet(t)
	attachments := append(n.attachments(false), Attachment{Ifindex: 4711, Name: "ghost0"})
	if diff := cmp.Diff([]string{"ghost0"}, commit(t, build(t, n.blank()), attachments).Gone); diff != "" {
		t.Errorf("gone (-want +got):\n%s", diff)
	}
}

// States move to tables of another size. Those that do not fit are reported.
func TestResizeCopiesStates(t *testing.T) {
	n := newNet(t)
	first := build(t, n.blank())
	commit(t, first, n.attachments(false))
	enterStates(t, first, 1000)
	wanted := collect(first.View())

	larger := n.blank()
	larger.Options.MaxStates = 5000
	second := build(t, larger)
	if r := commit(t, second, n.attachments(false)); r.Copied != 1000 || r.Lost != 0 {
		t.Errorf("copied %d, lost %d; want 1000, 0", r.Copied, r.Lost)
	}
	if diff := cmp.Diff(wanted, collect(second.View()), cmpopts.EquateComparable(netip.Addr{}), cmpopts.IgnoreFields(state.State{}, "Index")); diff != "" {
		t.Errorf("states (-before +after):\n%s", diff)
	}
	smaller := n.blank()
	smaller.Options.MaxStates = 100
	third := build(t, smaller)
	if r := commit(t, third, n.attachments(false)); r.Copied != 100 || r.Lost != 900 {
		t.Errorf("copied %d, lost %d; want 100, 900", r.Copied, r.Lost)
	}
}

// Limits change while the tables stay, also in place, as long as the tables have room and
// are not far too large.
func TestLimitsChange(t *testing.T) {
	n := newNet(t)
	d := build(t, n.blank())
	commit(t, d, n.attachments(false))
	enterStates(t, d, 280)
	empty := must(d.config.Program.Replace(&resolve.Ruleset{}, ruleset.Snapshot{}, nil))(t)
	to := func(states, sources uint32) *ruleset.Options {
		o := testOptions()
		o.MaxStates, o.MaxSources = states, sources
		return &o
	}
	limits := func(d *Dataplane) (states, sources uint32) {
		i := must(d.View().Info())(t)
		return i.MaxStates, i.MaxSources
	}
	check(t, d.ReplaceRules(empty, to(300, 0)))
	if states, sources := limits(d); states != 300 || sources != 0 || d.View().InUse() != 280 {
		t.Errorf("in place: limits %d, %d with %d states", states, sources, d.View().InUse())
	}
	for name, o := range map[string]*ruleset.Options{"more states": to(1025, 0), "far fewer": to(200, 0), "fewer than there are": to(270, 0), "more sources": to(1024, 100)} {
		if err := d.ReplaceRules(empty, o); !errors.Is(err, ErrNoRoom) {
			t.Errorf("%s: %v", name, err)
		}
	}
	cfg := n.blank()
	cfg.Options = *to(600, 0)
	second := build(t, cfg)
	if states, _ := limits(d); states != 300 {
		t.Errorf("a generation that is not in force has set the limit: %d", states)
	}
	if r := commit(t, second, n.attachments(false)); r.Copied != 0 || r.Lost != 0 {
		t.Errorf("%+v", r)
	}
	if states, _ := limits(second); states != 600 || second.View().InUse() != 280 || len(second.tables.states) != int(stateCapacity(1024))+1 {
		t.Errorf("limit %d, %d states, room for %d", states, second.View().InUse(), len(second.tables.states))
	}
	check(t, second.ReplaceRules(empty, to(1024, 0))) // what there was room for at first
}

// If the last copy fails, the new generation is in force all the same. The next one
// continues.
func TestCommitIsUnfinished(t *testing.T) {
	n := newNet(t)
	first := build(t, n.blank())
	commit(t, first, n.attachments(false))
	enterStates(t, first, 1000)
	larger := n.blank()
	larger.Options.MaxStates = 5000
	second := build(t, larger)
	broken := errors.New("broken")
	copyLast = func(*Dataplane) error { return broken }
	r, err := second.Commit(n.attachments(false))
	copyLast = (*Dataplane).copyStates
	if err != nil || !errors.Is(r.Unfinished, broken) || r.Generation != 2 || r.Copied != 1000 {
		t.Errorf("%+v, %v", r, err)
	}
	if live := must(LiveGeneration(n.dir))(t); live != 2 {
		t.Errorf("generation %d is in force, want 2", live)
	}
	check(t, second.Detach(n.lan0))
	third := build(t, larger)
	if r := commit(t, third, n.attachments(false)); r.Unfinished != nil || len(collect(third.View())) != 1000 {
		t.Errorf("%d states, %+v", len(collect(third.View())), r)
	}
	for _, name := range []string{oldTablesDir, oldGenerationDir} {
		if _, err := os.Stat(filepath.Join(n.dir, name)); !isMissing(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// While two sets of tables are in use, packets are not handed off because of a dead
// daemon: the daemon that puts the second set in force lives.
func TestNewTablesHaveALivingDaemon(t *testing.T) {
	n := newNet(t)
	first := build(t, n.blank())
	commit(t, first, n.attachments(false))
	larger := n.blank()
	larger.Options.MaxStates = 5000
	second := build(t, larger)
	first.tables.shared.Heartbeat = first.tables.shared.Now - 1000
	check(t, (&transaction{d: second, dir: n.dir}).prepare())
	old, tables := &second.old.shared, second.tables.shared
	for name, age := range map[string]uint32{"old": *old.now - *old.heartbeat, "new": tables.Now - tables.Heartbeat} {
		if age > 100 {
			t.Errorf("the %s tables' daemon was last alive %d ticks ago", name, age)
		}
	}
	check(t, second.Close())
}

func collect(v *View) map[state.Tuple]state.State {
	all := make(map[state.Tuple]state.State)
	for s := range v.States() {
		all[s.Tuple[0]] = *s
	}
	return all
}

// entered returns the n-th state that enterStates entered.
func entered(t *tables, n uint16) *xdpState {
	i := slices.IndexFunc(t.states, func(s xdpState) bool { return s.Status == statusLive && s.Forth.Tuple.Sport == n })
	return &t.states[i]
}

// enterStates enters UDP states with different tuples.
func enterStates(tb testing.TB, d *Dataplane, count int) {
	tb.Helper()
	check(tb, d.need(programImport))
	to := d.tables
	from := &tables{states: make([]xdpState, count+1), shared: &xdpShared{}}
	for i := range from.states {
		s := &from.states[i]
		s.Status = statusLive
		s.Phase = uint8(state.UDPMultiple)
		s.Forth.Tuple = xdpTuple{Sport: uint16(i), Dport: 0xffff, Proto: 17}
		s.Back.Tuple = xdpTuple{Sport: 0xffff, Dport: uint16(i), Proto: 17}
		s.Created = to.shared.Now
		s.CheckAt = to.shared.Now + 100_000
		s.FlowForth.Last, s.FlowBack.Last = to.shared.Now, to.shared.Now
		s.FlowForth.Packets = uint64(i)
	}
	c := newCopier(originOf(from), newImporter(to, d.objects.Programs["weir_import"]))
	check(tb, c.run())
	if c.copied != count {
		tb.Fatalf("entered %d states of %d", c.copied, count)
	}
}

// After a reload, numbers of paths and next hops that no state holds are free again
// before they run out.
func TestCrowdedTablesAreRenewed(t *testing.T) {
	n := newNet(t)
	first := build(t, n.blank())
	commit(t, first, n.attachments(false))
	check(t, first.tables.maps[mapPaths].Put(&xdpPath{Rule: [16]uint32{0: 3, 8: 9}}, uint32(9000)))
	check(t, first.tables.maps[mapPaths].Put(&xdpPath{Rule: [16]uint32{4}}, uint32(9001)))
	values := must(newPerCPU[xdpPathCounter]())(t)
	values[0].Way = [2]xdpCounter{{Packets: 5, Bytes: 500}, {Packets: 4, Bytes: 80}}
	check(t, first.tables.maps[mapPathCounters].Put(uint32(9000), values))
	enterStates(t, first, 3)
	entered(first.tables, 2).Path, entered(first.tables, 3).Path = 9000, 9000
	entered(first.tables, 3).Forth.Nexthop, entered(first.tables, 3).Back.Nexthop = 4711, nexthopLocal
	first.tables.shared.PathsHigh = 9300

	second := build(t, n.blank())
	if r := commit(t, second, n.attachments(false)); r.Copied != 3 || r.Lost != 0 {
		t.Errorf("report %+v, want 3 copied", r)
	}
	if high := second.tables.shared.PathsHigh; high != 1 {
		t.Errorf("%d paths are in use, want 1", high)
	}
	want := []Path{{States: 1}, {Full: true}, {Rules: []uint32{2, 8}, Crossing: [2][]uint32{{2}, {8}}, States: 2, Way: [2]Counter{{5, 500}, {4, 80}}}}
	if diff := cmp.Diff(want, must(second.View().Paths())(t)); diff != "" {
		t.Errorf("paths (-want +got):\n%s", diff)
	}
	for i, path := range map[uint16]uint16{1: 0, 2: firstPath, 3: firstPath} {
		if s := entered(second.tables, i); s.Path != path || s.Forth.Nexthop != 0 {
			t.Errorf("state %d has path %d and next hop %d, want path %d and none", i, s.Path, s.Forth.Nexthop, path)
		}
	}
	if hop := entered(second.tables, 3).Back.Nexthop; hop != nexthopLocal {
		t.Errorf("the box itself became next hop %d", hop)
	}
	if third := build(t, n.blank()); !third.kept {
		t.Error("the tables are crowded again")
	}
}

// A ledger of another form does not describe the tables: the states are lost, and this is
// reported.
func TestOtherLedger(t *testing.T) {
	n := newNet(t)
	first := build(t, n.blank())
	commit(t, first, n.attachments(false))
	enterStates(t, first, 10)
	check(t, os.Remove(filepath.Join(n.dir, generationDir, ledgerName)))
	other := must(bpfload.NewTable(ledgerName, 8))(t)
	defer other.Close()
	check(t, bpfload.PinMap(other, filepath.Join(n.dir, generationDir, ledgerName)))
	second := build(t, n.blank())
	if r := commit(t, second, n.attachments(false)); r.Unreadable == nil || r.Generation != 1 {
		t.Errorf("report %+v after another version's ledger, want generation 1, unreadable", r)
	}
	if left := len(collect(second.View())); left != 0 {
		t.Errorf("%d states of an unknown layout", left)
	}
	if r := commit(t, build(t, n.blank()), n.attachments(false)); r.Unreadable != nil || r.Generation != 2 {
		t.Errorf("report %+v after that, want generation 2", r)
	}
}

// A generation that is not committed leaves nothing behind.
func TestCloseWithoutCommit(t *testing.T) {
	n := newNet(t)
	check(t, build(t, n.blank()).Close())
	if _, err := os.Stat(n.dir); !isMissing(err) {
		t.Errorf("the folder is left: %v", err)
	}
}

// lockRoot keeps daemons of other tests from making and removing the bpffs meanwhile.
func lockRoot(t *testing.T) *os.File {
	t.Helper()
	root := filepath.Dir(Base)
	for {
		check(t, os.MkdirAll(root, 0o755))
		lock, err := filelock.Folder(root, filelock.Wait)
		if !errors.Is(err, fs.ErrNotExist) { // a daemon that ended has just removed it
			check(t, err)
			return lock
		}
	}
}

// The bpffs contains files of the kernel, which are no namespaces' folders.
func TestFolders(t *testing.T) {
	n := newNet(t)
	dir := must(Folder(""))(t)
	if filepath.Dir(dir) != Base {
		t.Errorf("folder %s is not in %s", dir, Base)
	}
	defer lockRoot(t).Close()
	check(t, Mount())
	defer func() { check(t, Unmount()) }()
	cfg := n.blank()
	cfg.Dir = dir
	commit(t, build(t, cfg), n.attachments(false))
	defer func() { check(t, Remove(dir)) }()
	all := must(Folders())(t)
	if !slices.Contains(all, dir) {
		t.Errorf("%s is not among %v", dir, all)
	}
	for _, f := range all {
		if _, err := strconv.ParseUint(filepath.Base(f), 10, 64); err != nil {
			t.Errorf("%s is no namespace's folder", f)
		}
	}
}
