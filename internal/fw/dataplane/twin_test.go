package dataplane

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weir/internal/fw/bpfload"
	"weir/internal/fw/state"
	"weir/internal/oracle/model"
	"weir/pf/resolve"
)

// A twin is the dataplane and the model of the same box with the same rules. Both are
// given the same frames. If they differ, one of them is wrong.
type twin struct {
	*harness
	implicit bool
	copies   bool                      // XDP leaves what may have to be copied
	moved    bool                      // the hosts of movedHosts are behind lan0
	flags    map[string]InterfaceFlags // of both interfaces, but for set skip
	tags     map[string]tag            // of those whose frames the other carries
	logical  map[string]bool           // of these, those whose incoming frames XDP handles
	rules    *resolve.Ruleset
	model    *model.Model
	ring     *Ring // of records

	// What the dataplane held after the last frame.
	raw    []xdpState    // by index
	known  []state.State // those of raw that live, else with index 0
	tally  map[tallyKey]Counter
	values []xdpCounter  // room to read a counter into
	rules0 []RuleCounter // counters of the rules at the beginning

	released map[model.TableEntry]model.TableCounter // of states that have been released
}

// twinBase is the global id of rule 0. It is not 0, so that numbers and ids differ.
const twinBase = 500

// oneCPU keeps the test on one thread and on CPU n modulo their number. Each CPU has its
// own random numbers in the dataplane, so they repeat.
func oneCPU(t testing.TB, n int) {
	t.Helper()
	runtime.LockOSThread()
	var before, one unix.CPUSet
	check(t, unix.SchedGetaffinity(0, &before))
	n %= before.Count()
	for cpu := 0; one.Count() == 0; cpu++ {
		if before.IsSet(cpu) {
			if n == 0 {
				one.Set(cpu)
			}
			n--
		}
	}
	check(t, unix.SchedSetaffinity(0, &one))
	t.Cleanup(func() {
		check(t, unix.SchedSetaffinity(0, &before))
		runtime.UnlockOSThread()
	})
}

// twinRoom is room for more rules than random files have.
const twinRoom = 400

// twinStates is the limit of states.
const twinStates = 100

// twinSources is the limit of sources.
const twinSources = 12

// newTwin loads the dataplane without rules. implicit is set implicit-pass; with it states
// may be bound.
func newTwin(tb testing.TB, implicit bool) *twin {
	tb.Helper()
	return newTwinIn(newNet(tb), implicit, false)
}

// boundRule makes programs that know of bound states.
const boundRule = "pass on none0 keep state (if-bound)\n"

// familyRule makes programs that know of states with two address families.
const familyRule = "pass in on none0 inet6 to 64:ff9b::/96 af-to inet from 192.0.2.1\n"

// limiterRule makes programs that know limiters, with room for their sources.
const limiterRule = "source limiter room id 255 entries 40 limit 1\n"

// leastRule makes programs that know pools with least-states.
const leastRule = "match out on none0 inet nat-to { 192.0.2.1, 192.0.2.2 } least-states\n"

// normalRule makes programs that know scrub (reassemble tcp).
const normalRule = "match on none0 scrub (reassemble tcp)\n"

// etherRule makes programs that know ether rules.
const etherRule = "ether anchor none\n"

// listedRules make programs in which scrub rules choose among fragments.
const listedRules = "scrub in on none0 fragment no reassemble\nscrub out on none0\n"

// stickyRule makes room for sources that keep addresses.
const stickyRule = "match out on none0 inet nat-to { 192.0.2.1, 192.0.2.2 } sticky-address\n"

func newTwinIn(n *testNet, implicit, copies bool) *twin {
	tb := n.tb
	tb.Helper()
	text := "set implicit-pass no\nset reassemble no\n"
	if implicit {
		text = "set implicit-pass yes\n" + boundRule
	}
	if copies {
		text += copyRule + "\n"
	} else {
		text += etherRule
	}
	if implicit && !copies {
		text += listedRules
	}
	h := newHarnessIn(n, text+limiterRule+stickyRule+leastRule+normalRule+familyRule, func(c *Config) {
		c.Options.MaxStates = twinStates
		c.Options.MaxSources = twinSources
		c.RuleBase = twinBase
		c.Room = twinRoom
	})
	n.addTableRoutes()
	for _, prefix := range unreachable {
		_, dst, err := net.ParseCIDR(prefix)
		check(tb, err)
		check(tb, netlink.RouteAdd(&netlink.Route{Dst: dst, Type: unix.RTN_UNREACHABLE}))
	}
	t := &twin{harness: h, implicit: implicit, copies: copies, flags: make(map[string]InterfaceFlags), tags: make(map[string]tag), logical: make(map[string]bool)}
	slots := len(t.dp.tables.states)
	t.raw, t.known = make([]xdpState, slots), make([]state.State, slots)
	t.values = must(newPerCPU[xdpCounter]())(tb)
	t.readRecords()
	openTestSockets(tb)
	t.use("")
	return t
}

// unreachable lists networks that the kernel has unreachable routes for.
var unreachable = []string{"198.18.0.0/15", "2001:db8:dead::/48"}

// allFlags is the default flags of the twin's interfaces.
const allFlags = InterfacePresent | InterfaceTarget | InterfaceStatic4 | InterfaceStatic6

// use gives both a ruleset and forgets everything else.
func (t *twin) use(rules string) {
	t.tb.Helper()
	switch { // as its programs: newTwinIn
	case !t.implicit:
		rules = "set implicit-pass no\nset reassemble no\n" + rules
	case !t.copies:
		rules = listedRules + rules
	}
	t.rules = t.parse(rules)
	t.rules.Options.MaxStates = twinStates
	t.rules.Options.MaxSources = twinSources
	var logical []int
	for _, i := range t.snapshot().Interfaces[1:] {
		flags := t.interfaceFlags(i.Name)
		for _, name := range t.rules.Options.Skip {
			if i.Name == name || slices.Contains(i.Groups, name) {
				flags |= InterfaceSkip
			}
		}
		n := Interface{MAC: mac(macs[i.Name]), MTU: 1500, Flags: flags}
		if tag, ok := t.tags[i.Name]; ok {
			n.Parent, n.Tag, n.TagType = t.net.lan0+t.net.wan0-int(i.Index), tag.id, tag.etherType
		}
		check(t.tb, t.dp.SetInterface(int(i.Index), Interface{})) // without tags at first
		check(t.tb, t.dp.SetInterface(int(i.Index), n))
		if t.logical[i.Name] {
			logical = append(logical, int(i.Index))
		}
	}
	if left := must(t.dp.SetLogicals(logical))(t.tb); left != nil {
		t.tb.Fatalf("no room for interfaces %d", left)
	}
	if t.moved {
		t.move()
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
	b := &model.Box{Route: t.route, TableRoute: t.tableRoute, Owner: testSocketOwner, Copies: t.copies}
	for _, h := range t.snapshot().Interfaces {
		n := model.Interface{Index: h.Index, Name: h.Name, Groups: h.Groups}
		for _, a := range h.Addresses {
			n.Addresses = append(n.Addresses, a.Prefix)
		}
		if h.Name == "lo" {
			n.Loopback = true
		} else {
			flags := t.interfaceFlags(h.Name)
			n.MAC = [6]byte(mac(macs[h.Name]))
			if tag, ok := t.tags[h.Name]; ok {
				n.Parent, n.Tag, n.TagType = uint32(t.net.lan0+t.net.wan0)-h.Index, tag.id, tag.etherType
				n.Logical = t.logical[h.Name]
			}
			n.XDPTarget, n.Static4, n.Static6 = flags&InterfaceTarget != 0, flags&InterfaceStatic4 != 0, flags&InterfaceStatic6 != 0
		}
		b.Interfaces = append(b.Interfaces, n)
	}
	return b
}

// macs are the two interfaces' own.
var macs = map[string]string{"lan0": lan0MAC, "wan0": wan0MAC}

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

// movedHosts are hosts whose routes move between the interfaces, with the neighbours behind
// which they are then.
var movedHosts = map[string]string{"198.51.100.7": "192.168.1.10", "2001:db8:7::7": "fd00:1::10"}

// move moves the routes of some hosts to the other interface, or back.
func (t *twin) move() {
	t.tb.Helper()
	t.moved = !t.moved
	for host, neighbour := range movedHosts {
		a := net.ParseIP(host)
		if v4 := a.To4(); v4 != nil {
			a = v4
		}
		route := &netlink.Route{LinkIndex: t.net.lan0, Gw: net.ParseIP(neighbour), Dst: &net.IPNet{IP: a, Mask: net.CIDRMask(8*len(a), 8*len(a))}}
		if t.moved {
			check(t.tb, netlink.RouteAdd(route))
		} else {
			check(t.tb, netlink.RouteDel(route))
		}
	}
	t.dp.BumpRoutes()
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
	lan := model.Route{Interface: uint32(t.net.lan0), MTU: 1500, Dst: [6]byte(mac(lanHostMAC)), Src: [6]byte(mac(lan0MAC)), Neighbour: true}
	if t.moved && movedHosts[dst.String()] != "" {
		lan.Gateway = netip.MustParseAddr(movedHosts[dst.String()])
		return lan
	}
	wan := model.Route{Interface: uint32(t.net.wan0), MTU: 1500, Dst: [6]byte(mac(wanHostMAC)), Src: [6]byte(mac(wan0MAC)), Neighbour: true}
	for _, n := range networks {
		if !n.prefix.Contains(dst) {
			continue
		}
		r := wan
		if n.lan {
			r = lan
		}
		r.Neighbour = dst == n.neighbour
		return r
	}
	wan.Gateway = netip.MustParseAddr("203.0.113.1")
	if dst.Is6() {
		wan.Gateway = netip.MustParseAddr("2001:db8:113::1")
	}
	return wan
}

// testTable is a routing table with other routes; another one is empty.
const testTable = 7

// addTableRoutes fills it.
func (n *testNet) addTableRoutes() {
	n.tb.Helper()
	_, onLink, err := net.ParseCIDR("203.0.113.0/24")
	check(n.tb, err)
	check(n.tb, netlink.RouteAdd(&netlink.Route{LinkIndex: n.wan0, Dst: onLink, Scope: netlink.SCOPE_LINK, Table: testTable}))
	for _, gateway := range []string{"192.168.1.10", "fd00:1::10"} {
		check(n.tb, netlink.RouteAdd(&netlink.Route{LinkIndex: n.lan0, Gw: net.ParseIP(gateway), Table: testTable}))
	}
}

// tableRoute is what addTableRoutes' table answers.
func (t *twin) tableRoute(dst netip.Addr, table uint32) model.Route {
	r := model.Route{Interface: uint32(t.net.lan0), Gateway: netip.MustParseAddr("192.168.1.10")}
	switch {
	case table != testTable:
		return model.Route{Kind: model.RouteNone}
	case dst.Is6():
		r.Gateway = netip.MustParseAddr("fd00:1::10")
	case netip.MustParsePrefix("203.0.113.0/24").Contains(dst):
		return model.Route{Interface: uint32(t.net.wan0)}
	}
	return r
}

// forget starts again: no states, no paths, the clock at its start.
func (t *twin) forget() {
	t.tb.Helper()
	t.harness.forget()
	t.forgetTables()
	t.released = make(map[model.TableEntry]model.TableCounter)
	t.reseed()
	t.forgetPaths()
	t.model = model.New(t.box(), t.rules, twinBase)
	t.model.SetQueues(t.queueNumber)
	t.model.SetPoolSecret(poolSecret(t.dp.ledger.HashSeed))
	t.model.SetClock(start)
	t.tellTime(start)
	t.fillBuckets()
	t.dp.tables.shared.TimeoutFrag = t.rules.Options.Timeouts.Frag * state.TicksPerSecond
	for i := range t.dp.tables.shared.Interfaces {
		t.dp.tables.shared.Interfaces[i].Asked = 0
	}
	clear(t.raw)
	clear(t.known)
	t.tally = t.tallies()
	t.rules0 = t.ruleCounters()
}

// reseed restarts the dataplane's choices: a random number of 0 is seeded, and pools
// begin with their first address.
func (t *twin) reseed() {
	t.tb.Helper()
	cpus := must(bpfload.CPUs())(t.tb)
	scratches := t.dp.objects.Maps["scratches"]
	empty := make([][]byte, cpus)
	for i := range empty {
		empty[i] = make([]byte, scratches.ValueSize())
	}
	check(t.tb, scratches.Put(uint32(0), empty))
	t.resetRejects()
	check(t.tb, forgetSources(t.dp.objects.Maps["pool_sticky"]))
	turns := t.dp.objects.Maps["pool_turns"]
	for i := range min(turns.MaxEntries(), uint32(4*len(t.rules.Sequence()))) { // two pools a rule at most
		check(t.tb, turns.Put(i, uint64(0)))
	}
}

// A shot is a frame at a hook.
type shot struct {
	hook    model.Hook
	ifindex int
	from    int // TCX egress: received here; 0: the box's own
	mark    uint32

	priority uint32 // at XDP there is none

	noted bool // weir's note is on it
	// by TCX ingress: the kernel has taken this tag out, 0: none
	tci   uint16
	frame []byte
}

func (s *shot) String() string {
	return fmt.Sprintf("%s at interface %d (from %d, mark %#x, priority %#x, tag %#x): %s",
		[]string{"XDP", "TCX ingress", "TCX egress"}[s.hook], s.ifindex, s.from, s.mark, s.priority, s.tci, describe(s.frame))
}

// least returns the length of the shortest frame that the kernel runs a program on. For
// TCX it must contain the IP header that its EtherType announces.
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

// shoot gives a frame to both. It returns the model's result, and an error if the
// dataplane differs.
func (t *twin) shoot(s shot) (model.Outcome, error) {
	tagged := t.tag(&s)
	got := t.run(&s)
	made := t.look()
	want := t.model.Handle(&model.Frame{
		Hook: s.hook, Interface: uint32(s.ifindex), From: uint32(s.from), Mark: s.mark, Priority: s.priority, Tagged: s.tci != 0, TCI: s.tci, NewID: idOf(got.frame), Noted: s.noted, Bytes: s.frame,
	}, made)
	got.reason = t.counted(&s, &want)
	logged := t.logged()
	err := errorsOf(differOutcome(&s, &want, &got), t.differNextHop(&s, &want), t.differStates(), t.differSources(), t.differLimiters(), differRecords(want.Records, logged))
	if tagged && want.Verdict == model.Up {
		want.Frame = slices.Concat(want.Frame[:12], want.Frame[12+tagLength:])
	}
	return want, err
}

// idOf returns the id of an IPv4 packet as it goes on, in a frame with a tag or without.
// Nobody can predict what random-id gives.
func idOf(frame []byte) uint16 {
	for at := 12; at+8 <= len(frame); at += 4 {
		switch binary.BigEndian.Uint16(frame[at:]) {
		case 0x8100, 0x88a8:
			continue
		}
		return binary.BigEndian.Uint16(frame[at+6:])
	}
	return 0
}

// tag makes the frame of a logical interface one of the device that carries it.
func (t *twin) tag(s *shot) bool {
	for _, i := range t.snapshot().Interfaces {
		if s.hook == model.XDP && int(i.Index) == s.ifindex && t.logical[i.Name] {
			s.ifindex, s.frame = t.net.lan0+t.net.wan0-s.ifindex, withTags(s.frame, t.tags[i.Name])
			return true
		}
	}
	return false
}

// ran ends the test if the kernel does not accept a frame.
func (t *twin) ran(s *shot, err error) {
	if err != nil {
		t.tb.Helper()
		t.tb.Fatalf("%s (%d bytes): %v", s, len(s.frame), err)
	}
}

// run gives a frame to the dataplane, without reading the counters.
func (t *twin) run(s *shot) result {
	run := bpfload.Run{Frame: s.frame, Ifindex: s.ifindex, Mark: s.mark, Priority: s.priority, From: s.from}
	if s.noted {
		run.Note = t.note(s.ifindex)
	}
	if s.hook == model.XDP {
		o, err := bpfload.RunXDP(t.program("weir_xdp"), run)
		t.ran(s, err)
		return xdpResult(t.exit(s.ifindex, &o))
	}
	program := "weir_tc_out"
	if s.hook == model.TCXIngress {
		program, run.From = "weir_tc_in", s.ifindex
		if s.tci != 0 {
			run.Note = t.noteTag(s.tci)
		}
	}
	o, err := bpfload.RunTC(t.program(program), run)
	t.ran(s, err)
	return tcResult(&o)
}

// note is what weir leaves on an skb that it redirects to an interface.
func (h *harness) note(ifindex int) [5]uint32 {
	secret := noteSecret(h.dp.ledger.HashSeed)
	return [5]uint32{secret[0], secret[1], uint32(ifindex)}
}

// noteTag is what weir leaves on an skb out of which the kernel takes a tag.
func (h *harness) noteTag(tci uint16) [5]uint32 {
	secret := noteSecret(h.dp.ledger.HashSeed)
	return [5]uint32{secret[0], ^secret[1], uint32(tci)}
}

// nexthopFirst is NEXTHOP_FIRST of bpf/state/state.h.
const nexthopFirst = 2

// differNextHop compares the device that a frame is redirected to. A test run does not
// report it, so the next hop with the frame's MACs must have that device.
func (t *twin) differNextHop(s *shot, want *model.Outcome) string {
	if want.Verdict != model.Redirect || want.Asked || want.Bridged || want.Interface == uint32(s.ifindex) && bytes.Equal(want.Frame[:6], s.frame[6:12]) {
		return "" // a frame that goes back to its sender needs no next hop
	}
	shared := t.dp.tables.shared
	family := uint8(4)
	if want.Frame[0x0c] == 0x86 || want.Frame[0x10] == 0x86 && (want.Frame[0x0c] == 0x81 || want.Frame[0x0c] == 0x88) {
		family = 6
	}
	var found []uint32 // there may be several: gateways that rules choose have their own
	for i := range min(int(shared.NexthopsHigh)+nexthopFirst, len(shared.Nexthops)) {
		n := &shared.Nexthops[i]
		if n.Flags == 0 || n.Family != family && n.Flags&nexthopChosen == 0 || !bytes.Equal(n.Dst[:], want.Frame[:6]) || !bytes.Equal(n.Src[:], want.Frame[6:12]) {
			continue
		}
		to := n.Ifindex
		if s.hook == model.XDP && n.Flags&nexthopXDP != 0 {
			to = uint32(n.Encap.Device)
		}
		if to == want.Interface {
			return ""
		}
		found = append(found, to)
	}
	if len(found) > 0 {
		return fmt.Sprintf("model: to interface %d, dataplane: %d", want.Interface, found)
	}
	return fmt.Sprintf("model: to interface %d, %x; dataplane: no such next hop", want.Interface, want.Frame[:12])
}

func errorsOf(texts ...string) error {
	texts = slices.DeleteFunc(texts, func(s string) bool { return s == "" })
	if len(texts) == 0 {
		return nil
	}
	return fmt.Errorf("%s", strings.Join(texts, "\n"))
}

func differOutcome(s *shot, want *model.Outcome, got *result) string {
	if got.verdict == redirect && want.Verdict == model.Reject {
		got.verdict = rejected // mostly by a redirect
	}
	verdicts := map[model.Verdict]verdict{model.Drop: drop, model.Up: up, model.Out: up, model.Redirect: redirect, model.Reject: rejected}
	if verdicts[want.Verdict] != got.verdict || want.Reason.String() != got.reason {
		return fmt.Sprintf("model: %s (%s), dataplane: %s (%s)", verdicts[want.Verdict], want.Reason, got.verdict, got.reason)
	}
	if want.Verdict == model.Drop {
		return ""
	}
	if !bytes.Equal(want.Frame, got.frame) {
		return fmt.Sprintf("frame after, model:     %s\nframe after, dataplane: %s", describe(want.Frame), describe(got.frame))
	}
	if goes := s.hook != model.XDP || want.Verdict == model.Up; goes && want.Verdict != model.Reject && want.Priority != got.priority {
		return fmt.Sprintf("model: priority %#x, dataplane: %#x", want.Priority, got.priority)
	}
	if marks := s.hook != model.XDP || want.Verdict == model.Up; marks && want.Mark != got.mark {
		return fmt.Sprintf("model: mark %#x, dataplane: %#x", want.Mark, got.mark)
	}
	number := got.number
	if want.Chosen && number&metadataNexthop != 0 {
		number = 0 // it is that of a next hop
	}
	if want.Back != got.back || want.Back && want.Number != number {
		return fmt.Sprintf("model: TCX ingress redirects: %t, number %#x, dataplane: %t, %#x", want.Back, want.Number, got.back, got.number)
	}
	if s.hook == model.XDP && want.Verdict == model.Up && want.Done != got.meta {
		return fmt.Sprintf("model: done %t, dataplane: %t", want.Done, got.meta)
	}
	return ""
}
