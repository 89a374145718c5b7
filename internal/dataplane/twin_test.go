package dataplane

import (
	"bytes"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weir/internal/bpfload"
	"weir/internal/model"
	"weir/internal/reason"
	"weir/internal/state"
	"weir/pf/resolve"
)

// A twin is the dataplane and the model of the same box with the same rules.
// Both are given the same frames; where they differ, one of them is wrong.
type twin struct {
	*harness
	implicit bool
	flags    map[string]InterfaceFlags // of both interfaces, but for set skip
	rules    *resolve.Ruleset
	model    *model.Model

	// What the dataplane held after the last frame.
	raw    []xdpState    // by index
	known  []state.State // those of raw that live, else with index 0
	tally  map[tallyKey]Counter
	values []xdpCounter  // room to read a counter into
	rules0 []RuleCounter // counters of the rules at the beginning
}

// A tallyKey is one of the counters of interfaces.
type tallyKey struct {
	ifindex int
	reason  reason.Reason
}

// twinBase is the global id of rule 0, so that numbers and ids differ.
const twinBase = 500

// oneCPU keeps the test on one CPU, so that the dataplane's random numbers, which
// each CPU has of its own, repeat.
func oneCPU(t testing.TB) {
	t.Helper()
	var before, one unix.CPUSet
	check(t, unix.SchedGetaffinity(0, &before))
	one.Set(0)
	check(t, unix.SchedSetaffinity(0, &one))
	t.Cleanup(func() { check(t, unix.SchedSetaffinity(0, &before)) })
}

// twinRoom is for more rules than random files have.
const twinRoom = 400

// twinStates is the limit of states.
const twinStates = 100

// newTwin loads the dataplane without rules. implicit is set implicit-pass.
func newTwin(tb testing.TB, implicit bool) *twin {
	tb.Helper()
	text := "set implicit-pass no\n"
	if implicit {
		text = "set implicit-pass yes\n"
	}
	h := newHarness(tb, text, func(c *Config) {
		c.Options.MaxStates = twinStates
		c.RuleBase = twinBase
		c.Room = twinRoom
	})
	for _, prefix := range unreachable {
		_, dst, err := net.ParseCIDR(prefix)
		check(tb, err)
		check(tb, netlink.RouteAdd(&netlink.Route{Dst: dst, Type: unix.RTN_UNREACHABLE}))
	}
	t := &twin{harness: h, implicit: implicit, flags: make(map[string]InterfaceFlags)}
	t.raw, t.known = make([]xdpState, twinStates+1), make([]state.State, twinStates+1)
	t.values = must(newPerCPU[xdpCounter]())(tb)
	t.use("")
	return t
}

// unreachable are networks that the kernel has such routes for.
var unreachable = []string{"198.18.0.0/15", "2001:db8:dead::/48"}

// allFlags is what an interface of the twin has, where nothing else is said.
const allFlags = InterfacePresent | InterfaceTarget | InterfaceStatic4 | InterfaceStatic6

// use gives both a ruleset, and forgets everything.
func (t *twin) use(rules string) {
	t.tb.Helper()
	t.rules = t.parse(rules)
	t.rules.Options.ImplicitPass = t.implicit
	t.rules.Options.MaxStates = twinStates
	for _, i := range t.snapshot().Interfaces[1:] {
		flags := t.interfaceFlags(i.Name)
		for _, name := range t.rules.Options.Skip {
			if i.Name == name || slices.Contains(i.Groups, name) {
				flags |= InterfaceSkip
			}
		}
		t.setInterface(int(i.Index), flags, map[string]string{"lan0": lan0MAC, "wan0": wan0MAC}[i.Name])
	}
	t.load(rules)
	t.forget()
}

func (t *twin) interfaceFlags(name string) InterfaceFlags {
	if flags, ok := t.flags[name]; ok {
		return flags
	}
	return allFlags
}

// box describes the harness's network to the model.
func (t *twin) box() *model.Box {
	b := &model.Box{Route: t.route}
	for _, h := range t.snapshot().Interfaces {
		n := model.Interface{Index: h.Index, Name: h.Name, Groups: h.Groups}
		for _, a := range h.Addresses {
			n.Addresses = append(n.Addresses, a.Prefix)
		}
		if h.Name == "lo" {
			n.Loopback = true
		} else {
			flags := t.interfaceFlags(h.Name)
			n.MAC = [6]byte(mac(map[string]string{"lan0": lan0MAC, "wan0": wan0MAC}[h.Name]))
			n.XDPTarget, n.Static4, n.Static6 = flags&InterfaceTarget != 0, flags&InterfaceStatic4 != 0, flags&InterfaceStatic6 != 0
		}
		b.Interfaces = append(b.Interfaces, n)
	}
	return b
}

func mac(text string) []byte { return ethernet(text, text, 0)[:6] }

// network is a destination's network, and where the kernel sends what goes there.
type network struct {
	prefix    netip.Prefix
	lan       bool
	neighbour netip.Addr // the one of the network that is known; unset: a router leads there
}

var networks = []network{
	{netip.MustParsePrefix("192.168.1.0/24"), true, netip.MustParseAddr("192.168.1.10")},
	{netip.MustParsePrefix("fd00:1::/64"), true, netip.MustParseAddr("fd00:1::10")},
	{netip.MustParsePrefix("203.0.113.0/24"), false, netip.MustParseAddr("203.0.113.1")},
	{netip.MustParsePrefix("2001:db8:113::/64"), false, netip.MustParseAddr("2001:db8:113::1")},
}

// route is what the kernel of newTwin's network would answer.
func (t *twin) route(dst netip.Addr) model.Route {
	for _, prefix := range unreachable {
		if netip.MustParsePrefix(prefix).Contains(dst) {
			return model.Route{Kind: model.RouteNone}
		}
	}
	if dst == netip.MustParseAddr("fd00:1::") || dst == netip.MustParseAddr("2001:db8:113::") {
		return model.Route{Kind: model.RouteLocal} // a router's anycast addresses (RFC 4291, 2.6.1)
	}
	wan := model.Route{Interface: uint32(t.net.wan0), MTU: 1500, Dst: [6]byte(mac(wanHostMAC)), Src: [6]byte(mac(wan0MAC)), Neighbour: true}
	for _, n := range networks {
		if !n.prefix.Contains(dst) {
			continue
		}
		r := wan
		if n.lan {
			r = model.Route{Interface: uint32(t.net.lan0), MTU: 1500, Dst: [6]byte(mac(lanHostMAC)), Src: [6]byte(mac(lan0MAC))}
		}
		r.Neighbour = dst == n.neighbour
		return r
	}
	return wan // the default router
}

// forget begins anew: no states, the clock at its start, no paths.
func (t *twin) forget() {
	t.tb.Helper()
	t.harness.forget()
	t.reseed()
	t.forgetPaths()
	t.model = model.New(t.box(), t.rules, twinBase)
	t.model.SetClock(start)
	t.tellTime(start)
	t.dp.tables.shared.TimeoutFrag = t.rules.Options.Timeouts.Frag * state.TicksPerSecond
	clear(t.raw)
	clear(t.known)
	t.tally = t.tallies()
	t.rules0 = t.ruleCounters()
}

// tellTime sets the dataplane's clock, and its timeouts as the sweeping timer
// would scale them then.
func (t *twin) tellTime(now uint32) {
	t.dp.tables.shared.Now = now
	t.dp.tables.shared.Timeout = t.model.Timeouts()
	t.dp.Heartbeat()
}

// bury marks dead what has expired: nothing revives it where fewer states let
// timeouts grow again.
func (t *twin) bury() {
	timeouts, before := t.model.Timeouts(), state.Tick(t.dp.tables.shared.Now)
	t.dp.View().KillStates(func(s *state.State) bool { return s.Expires(before, &timeouts) <= 0 })
	t.model.Bury()
}

// wait lets ticks go by.
func (t *twin) wait(ticks uint32) {
	t.bury()
	now := t.dp.tables.shared.Now + ticks
	t.model.SetClock(state.Tick(now))
	t.tellTime(now)
}

// sweep releases what has died, as sweep.h does.
func (t *twin) sweep() {
	t.bury()
	shared, tables := t.dp.tables.shared, t.dp.tables.maps
	for i := uint32(1); i <= shared.StatesHigh; i++ {
		s := &t.dp.tables.states[i]
		if s.Status != statusDead {
			continue
		}
		for d, tuple := range []*xdpTuple{&s.Forth.Tuple, &s.Back.Tuple} {
			var owner uint32
			if tables[mapTuples].Lookup(tuple, &owner) == nil && owner == i<<1|uint32(d) {
				check(t.tb, tables[mapTuples].Delete(tuple))
			}
		}
		s.Status = statusFree
		check(t.tb, tables[mapFree].Put(nil, i))
		shared.StatesReleased++
	}
	t.model.Sweep()
	t.look()
	t.wait(1) // no slot is used again within a tick (DEAD_GRACE)
}

// forgetPaths empties the paths, so that their indices begin anew.
func (t *twin) forgetPaths() {
	t.tb.Helper()
	tables := t.dp.tables
	var keys []xdpPath
	var key xdpPath
	for all := tables.maps[mapPaths].Iterate(); all.Next(&key, new(uint32)); {
		keys = append(keys, key)
	}
	for i := range keys {
		check(t.tb, tables.maps[mapPaths].Delete(&keys[i]))
	}
	clear(t.values)
	for i := range tables.shared.PathsHigh + pathFirst {
		check(t.tb, tables.maps[mapPathCounters].Put(i, t.values))
	}
	tables.shared.PathsHigh = 0
}

// pathFirst is PATH_FIRST of bpf/maps.h.
const pathFirst = 2

// reseed makes the dataplane's choices start anew: a random number of 0 is
// seeded, and pools begin with their first address.
func (t *twin) reseed() {
	t.tb.Helper()
	cpus := must(bpfload.CPUs())(t.tb)
	scratches := t.dp.objects.Maps["scratches"]
	empty := make([][]byte, cpus)
	for i := range empty {
		empty[i] = make([]byte, scratches.ValueSize())
	}
	check(t.tb, scratches.Put(uint32(0), empty))
	turns := t.dp.objects.Maps["pool_turns"]
	for i := range min(turns.MaxEntries(), uint32(4*len(t.rules.Rules))) { // two pools a rule at most
		check(t.tb, turns.Put(i, uint64(0)))
	}
}

// A shot is a frame at a hook.
type shot struct {
	hook    model.Hook
	ifindex int
	from    int // TCX egress: received here; 0: the box's own
	mark    uint32
	frame   []byte
}

func (s *shot) String() string {
	return fmt.Sprintf("%s at interface %d (from %d, mark %#x): %s",
		[]string{"XDP", "TCX ingress", "TCX egress"}[s.hook], s.ifindex, s.from, s.mark, describe(s.frame))
}

// least is the shortest frame that the kernel runs a program on: for TCX it must
// hold the IP header that its EtherType promises.
func (s *shot) least() int {
	switch {
	case s.hook == model.XDP:
		return 14
	case len(s.frame) > 13 && s.frame[12] == 0x86:
		return 54
	}
	return 34
}

// describe prints a frame as text where it can be read, and its headers.
func describe(frame []byte) (text string) {
	bytes := fmt.Sprintf("%x", frame[:min(len(frame), 120)])
	defer func() {
		if recover() != nil {
			text = bytes
		}
	}()
	return fmt.Sprintf("%s\n\t%s", decodePkt(frame[14:]), bytes)
}

// shoot gives a frame to both and returns what the model says, and an error if
// the dataplane does not agree.
func (t *twin) shoot(s shot) (model.Outcome, error) {
	t.tb.Helper()
	got := t.run(&s)
	made := t.look()
	want := t.model.Judge(&model.Frame{
		Hook: s.hook, Interface: uint32(s.ifindex), From: uint32(s.from), Mark: s.mark, Bytes: s.frame,
	}, made)
	got.reason = t.counted(&s, &want)
	return want, errorsOf(differOutcome(&s, &want, &got), t.differStates())
}

// run gives a frame to the dataplane; what it was counted under is not read.
func (t *twin) run(s *shot) result {
	t.tb.Helper()
	run := bpfload.Run{Frame: s.frame, Ifindex: s.ifindex, Mark: s.mark, From: s.from}
	if s.hook == model.XDP {
		o, err := bpfload.RunXDP(t.dp.objects.Programs["weir_xdp"], run)
		check(t.tb, err)
		return xdpResult(&o)
	}
	program := "weir_tc_out"
	if s.hook == model.TCXIngress {
		program, run.From = "weir_tc_in", s.ifindex
	}
	o, err := bpfload.RunTC(t.dp.objects.Programs[program], run)
	check(t.tb, err)
	return tcResult(&o)
}

// counted returns the reason that the frame was counted under: the model's, if
// that counter has gone up as it should, else what all counters say.
func (t *twin) counted(s *shot, want *model.Outcome) string {
	t.tb.Helper()
	key := tallyKey{s.ifindex, want.Reason}
	if s.uncounted() {
		return want.Reason.String()
	}
	expected := t.tally[key]
	expected.Packets++
	expected.Bytes += uint64(want.Length)
	if t.tallyOf(key) == expected {
		t.tally[key] = expected
		return want.Reason.String()
	}
	now := t.tallies()
	defer func() { t.tally = now }()
	return differTallies(t.tally, now)
}

// uncounted: what was redirected passes egress without a trace.
func (s *shot) uncounted() bool {
	return s.hook == model.TCXEgress && s.mark&model.MarkMask == model.MarkMagic && s.mark&model.MarkRedirect != 0
}

// differTallies prints what has been counted since.
func differTallies(before, now map[tallyKey]Counter) string {
	var all []string
	for key, c := range now {
		if c != before[key] {
			all = append(all, fmt.Sprintf("%d*%s (%d bytes) at interface %d",
				c.Packets-before[key].Packets, key.reason, c.Bytes-before[key].Bytes, key.ifindex))
		}
	}
	slices.Sort(all)
	return "counted " + strings.Join(all, ", ")
}

func (t *twin) tallyOf(key tallyKey) Counter {
	t.tb.Helper()
	index := t.dp.tables.shared.Interfaces[key.ifindex].Slot + uint32(key.reason)
	return must(sumCounter(t.dp.tables.maps[mapInterfaceCounters], index, t.values))(t.tb)
}

// tallies reads the counters of all interfaces; 0 stands for those not known.
func (t *twin) tallies() map[tallyKey]Counter {
	t.tb.Helper()
	all := make(map[tallyKey]Counter)
	for _, ifindex := range []int{0, t.net.lan0, t.net.wan0} {
		for r := range reason.Reason(reason.Count) {
			all[tallyKey{ifindex, r}] = t.tallyOf(tallyKey{ifindex, r})
		}
	}
	return all
}

// differCounters compares, after many frames, all that both have counted.
func (t *twin) differCounters() error {
	t.tb.Helper()
	now := t.tallies()
	var texts []string
	if !maps.Equal(now, t.tally) {
		texts = append(texts, "counted besides: "+differTallies(t.tally, now))
	}
	t.tally = now
	made := t.dp.tables.shared.StatesMade - t.dp.tables.shared.StatesReleased
	if used := t.model.Used(); used != int(made) {
		texts = append(texts, fmt.Sprintf("model: %d places of states are used, dataplane: %d", used, made))
	}
	return errorsOf(append(texts, t.differPaths(), t.differRules())...)
}

func (t *twin) differPaths() string {
	t.tb.Helper()
	key, index := xdpPath{}, uint32(0)
	got := map[model.Path]model.Counter{{}: t.pathCounter(0)}
	for all := t.dp.tables.maps[mapPaths].Iterate(); all.Next(&key, &index); {
		got[key.Rule] = t.pathCounter(index)
	}
	var b strings.Builder
	for path, c := range got {
		if want := t.model.Paths()[path]; want != c {
			fmt.Fprintf(&b, "packets of rules %v, model: %+v, dataplane: %+v\n", path, want, c)
		}
	}
	for path, want := range t.model.Paths() {
		if _, ok := got[path]; !ok {
			fmt.Fprintf(&b, "packets of rules %v, model: %+v, dataplane: none\n", path, want)
		}
	}
	return b.String()
}

func (t *twin) pathCounter(index uint32) model.Counter {
	t.tb.Helper()
	return model.Counter(must(sumCounter(t.dp.tables.maps[mapPathCounters], index, t.values))(t.tb))
}

// ruleCounters are the counters of the rules in use.
func (t *twin) ruleCounters() []RuleCounter {
	t.tb.Helper()
	values := must(newPerCPU[xdpRuleCounter]())(t.tb)
	all := make([]RuleCounter, len(t.rules.Rules)+1)
	for i := range all { // Evaluations: how often they ended here
		check(t.tb, t.dp.objects.Maps[mapRuleCounters].Lookup(uint32(i), values))
		for _, v := range values {
			all[i].Evaluations += v.Stops
			all[i].States += v.States
		}
	}
	for i := len(all) - 2; i >= 0; i-- {
		all[i].Evaluations += all[i+1].Evaluations
	}
	return all[:len(all)-1]
}

func (t *twin) differRules() string {
	t.tb.Helper()
	var b strings.Builder
	for i, c := range t.ruleCounters() {
		got := model.RuleCounter{Evaluations: c.Evaluations - t.rules0[i].Evaluations, States: c.States - t.rules0[i].States}
		if want := t.model.Rules()[i]; want != got {
			fmt.Fprintf(&b, "rule %d, model: %+v, dataplane: %+v\n", i, want, got)
		}
	}
	return b.String()
}

func errorsOf(texts ...string) error {
	texts = slices.DeleteFunc(texts, func(s string) bool { return s == "" })
	if len(texts) == 0 {
		return nil
	}
	return fmt.Errorf("%s", strings.Join(texts, "\n"))
}

// holds reports whether a mark's state is the one with that tuple.
func (t *twin) holds(mark uint32, tuple state.Tuple) bool {
	return t.known[mark&model.MarkState].Tuple[0] == tuple
}

// look reads the states that have changed since the last look, and returns the
// one that was made, nil if none.
func (t *twin) look() *state.State {
	var made *state.State
	for i := uint32(1); i <= min(t.dp.tables.shared.StatesHigh, twinStates); i++ {
		now, before := &t.dp.tables.states[i], &t.raw[i]
		if *now == *before {
			continue
		}
		was := before.Status
		*before = *now
		if now.Status != statusLive {
			t.known[i].Index = 0
			continue
		}
		now.decode(&t.known[i], i)
		t.known[i].NextHops = [2]uint16{}
		if was != statusLive {
			made = &t.known[i]
		}
	}
	return made
}

// differStates compares the states that have not expired.
func (t *twin) differStates() string {
	now, timeouts := state.Tick(t.dp.tables.shared.Now), t.model.Timeouts()
	live := func(s *state.State) bool { return s.Index != 0 && s.Expires(now, &timeouts) > 0 }
	var b strings.Builder
	n := 0
	want := t.model.States()
	for i := range want {
		if !live(&want[i]) && want[i].Index != 0 {
			continue
		}
		n++
		if got := &t.known[want[i].Index]; *got != want[i] {
			fmt.Fprintf(&b, "state, model:     %+v\nstate, dataplane: %+v\n", want[i], *got)
		}
	}
	for i := range t.known {
		if live(&t.known[i]) {
			n--
		}
	}
	if n != 0 && b.Len() == 0 {
		fmt.Fprintf(&b, "states, model:     %+v\nstates, dataplane: %+v\n", want, t.known)
	}
	return b.String()
}

func differOutcome(s *shot, want *model.Outcome, got *result) string {
	verdicts := map[model.Verdict]verdict{model.Drop: drop, model.Up: up, model.Out: up, model.Redirect: redirect}
	if verdicts[want.Verdict] != got.verdict || want.Reason.String() != got.reason {
		return fmt.Sprintf("model: %s (%s), dataplane: %s (%s)", verdicts[want.Verdict], want.Reason, got.verdict, got.reason)
	}
	if want.Verdict == model.Drop {
		return ""
	}
	if !bytes.Equal(want.Frame, got.frame) {
		return fmt.Sprintf("frame after, model:     %s\nframe after, dataplane: %s", describe(want.Frame), describe(got.frame))
	}
	if marks := s.hook == model.TCXIngress || s.hook == model.XDP && want.Verdict == model.Up; marks && want.Mark != got.mark {
		return fmt.Sprintf("model: mark %#x, dataplane: %#x", want.Mark, got.mark)
	}
	if s.hook == model.XDP && want.Verdict == model.Up && want.Judged != got.meta {
		return fmt.Sprintf("model: judged %t, dataplane: %t", want.Judged, got.meta)
	}
	return ""
}
