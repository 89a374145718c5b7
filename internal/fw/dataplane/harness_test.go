package dataplane

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"

	"weir/internal/fw/bpfload"
	"weir/internal/fw/reason"
	"weir/internal/fw/ruleset"
	"weir/internal/fw/state"
	"weir/pf/diag"
	"weir/pf/fingerprint"
	"weir/pf/resolve"
	"weir/pf/source"
)

// A harness is a dataplane in the test's own network. It is given frames one by one.
// Nothing else happens: programs are loaded but not attached, the clock stands still, and
// there is no garbage collection.
type harness struct {
	tb      testing.TB
	net     *testNet
	dp      *Dataplane
	counted map[int][reason.Count]uint64 // packets, by interface
	twice   int                          // packets that took a second pass
	warm    bool                         // connections seen lately take one pass; else each packet comes as if its state were in no cache
	queues  map[string]uint16            // numbers of the loaded rules' queues
	trunk   *trunk                       // lan0 and wan0 are VLAN devices on it under XDP; nil: they are ordinary devices
}

// readSpecs reads the objects once for all tests: that takes a tenth of a second.
var readSpecs = sync.OnceValues(loadSpecs)

// copiedSpecs returns the objects' specs as loadSpecs does, to be changed and loaded.
func copiedSpecs() ([]*bpfload.Spec, error) {
	read, err := readSpecs()
	var specs []*bpfload.Spec
	for _, s := range read {
		specs = append(specs, s.Copy())
	}
	return specs, err
}

// reset sets the clock and the interfaces to their initial values.
func (h *harness) reset() {
	h.tb.Helper()
	for ifindex, mac := range map[int]string{h.net.lan0: lan0MAC, h.net.wan0: wan0MAC} {
		h.setInterface(ifindex, InterfacePresent|InterfaceTarget|InterfaceStatic4|InterfaceStatic6, mac)
	}
	h.setInterface(1, InterfacePresent|InterfaceLoopback, "")
	h.dp.tables.shared.Now = start
	h.dp.Heartbeat()
	h.forget()
}

// defaultStates is the limit of a file that sets none. Tests need fewer.
const defaultStates = 100000

// start is the clock's first tick. It is late enough that no time is before 0.
const start = 1_000_000

func newHarness(tb testing.TB, rules string, change ...func(*Config)) *harness {
	tb.Helper()
	return newHarnessIn(newNet(tb), rules, change...)
}

func newHarnessIn(n *testNet, rules string, change ...func(*Config)) *harness {
	tb := n.tb
	tb.Helper()
	h := &harness{tb: tb, net: n, counted: make(map[int][reason.Count]uint64)}
	cfg := h.net.config()
	cfg.Frozen = true
	cfg.RandomSeed = 1
	cfg.HashSeed = 1
	cfg.specs = prefetchSpecs
	cfg.later = true
	for _, c := range change {
		c(&cfg)
	}
	rs := h.parse(rules)
	cfg.Program = must(ruleset.Compile(rs, h.snapshot()))(tb)
	options := ruleset.OptionsOf(&rs.Options)
	if options.MaxStates == defaultStates {
		options.MaxStates = cfg.Options.MaxStates
	}
	if cfg.Options.MaxSources != 0 {
		options.MaxSources = cfg.Options.MaxSources
	}
	cfg.Options = options
	h.dp = build(tb, cfg)
	h.enableXDP(h.net.lan0)
	h.enableXDP(h.net.wan0)
	h.reset()
	check(tb, h.dp.SetAddresses(h.net.addresses()))
	return h
}

// parse reads rules in the user's notation.
func (h *harness) parse(rules string) *resolve.Ruleset {
	h.tb.Helper()
	rs, faults := loadTest(rules, h.host())
	if faults.HasErrors() {
		h.tb.Fatalf("%s\n%v", rules, faults)
	}
	return rs
}

// testFingerprints are those of the rules of tests.
const testFingerprints = `# SYNs of tests
65535:64:0:40:.:Alpha:1.0-1.2::no options
65535:64:1:40:.:Alpha:2::no options, DF
*:255:0:44:M1460:Beta:::MSS alone
%500:64:1:44:M*:Beta:2:x:and DF
S45:64:0:*:N,M*,N,N,N:Gamma:1::options that fill up
65535:128:1:%4:M%10,N,W*:Delta:::MSS and window scale
65535:128:0:48:M*,N,W7:@Delta:7::likewise
T1:64:0:*:M*:Epsilon:::of the MTU
*:64:0:*:N,W%7:Epsilon:2::window scale
1000:64:0:40:.:Alpha:1.1::also old
`

// loadTest reads rules, beside testFingerprints.
func loadTest(rules string, host *resolve.Host) (*resolve.Ruleset, diag.List) {
	files := source.Files{fingerprint.File: {Text: testFingerprints}}
	return resolve.LoadWith("test.conf", []byte(rules+"\n"), host, resolve.Settings{Files: files})
}

// host returns the host as the resolver sees it.
func (h *harness) host() *resolve.Host {
	host := &resolve.Host{}
	for _, i := range h.snapshot().Interfaces {
		face := resolve.HostInterface{Name: i.Name, Groups: i.Groups}
		for _, a := range i.Addresses {
			face.Addresses = append(face.Addresses, a.Prefix)
		}
		host.Interfaces = append(host.Interfaces, face)
	}
	return host
}

// snapshot returns the host as the compiler sees it.
func (h *harness) snapshot() ruleset.Snapshot {
	address := func(text string) ruleset.Address { return ruleset.Address{Prefix: netip.MustParsePrefix(text)} }
	return ruleset.Snapshot{Interfaces: []ruleset.Interface{
		{Name: "lo", Index: 1, Addresses: []ruleset.Address{address("127.0.0.1/8"), address("::1/128")}},
		{Name: "lan0", Index: uint32(h.net.lan0), Groups: []string{"lan"},
			Addresses: []ruleset.Address{address("192.168.1.1/24"), address("fd00:1::1/64")}},
		{Name: "wan0", Index: uint32(h.net.wan0), Groups: []string{"wan", "egress"},
			Addresses: []ruleset.Address{address("203.0.113.2/24"), address("2001:db8:113::2/64")}},
	}}
}

// load replaces the loaded ruleset (Config.Room limits its size) and forgets all states.
func (h *harness) load(rules string) {
	h.tb.Helper()
	h.forgetSources() // those of limiters with other masks would be in the way
	p := must(ruleset.Compile(h.parse(rules), h.snapshot()))(h.tb)
	for name, n := range ruleEntries(p, 0) {
		if room := h.dp.objects.Maps[name].MaxEntries(); n > room {
			h.tb.Fatalf("%d entries of %s, room for %d", n, name, room)
		}
	}
	check(h.tb, h.dp.needOwners(p))
	check(h.tb, h.dp.live.load(p))
	check(h.tb, forgetSources(h.dp.objects.Maps["pool_sticky"]))
	for i := range 2 * len(p.Pools) {
		check(h.tb, h.dp.objects.Maps["pool_turns"].Put(uint32(i), uint64(0)))
	}
	h.meetFrames(p)
	h.forgetTables()
	h.queues = make(map[string]uint16, len(p.Queues))
	for number, name := range p.Queues {
		h.queues[name] = number
	}
	h.forget()
}

// meetFrames tells the programs where frames meet the ether rules of a program.
func (h *harness) meetFrames(p *ruleset.Program) {
	for i, raw := range h.dp.tables.interfaces() {
		if raw.has(InterfaceL3 | InterfaceLoopback) {
			continue
		}
		var set InterfaceFlags
		if p.MeetsFrames(i, false) {
			set |= InterfaceEtherIn
		}
		if p.MeetsFrames(i, true) {
			set |= InterfaceEtherOut
		}
		raw.change(set, (InterfaceEtherIn|InterfaceEtherOut)&^set)
	}
	for i, raw := range h.dp.tables.interfaces() { // XDP sees the frames of what it carries
		if above := h.dp.tables.shared.Interfaces[i]; above.Parent != 0 && raw.has(InterfaceEtherIn) {
			(*xdpInterface)(&h.dp.tables.shared.Interfaces[above.Parent]).change(InterfaceEtherIn, 0)
		}
	}
	h.dp.BumpRoutes()
}

// queueNumber returns the number of a queue in the loaded rules, or of a pair "a, b".
func (h *harness) queueNumber(name string) uint16 { return h.queues[name] }

func (h *harness) setInterface(ifindex int, flags InterfaceFlags, mac string) {
	h.tb.Helper()
	i := Interface{MTU: 1500, Flags: flags}
	if h.trunk != nil {
		h.trunk.carry(ifindex, &i)
	}
	if mac != "" {
		i.MAC = must(net.ParseMAC(mac))(h.tb)
	}
	check(h.tb, h.dp.SetInterface(ifindex, i))
}

// enableXDP makes the device create receive queues, so that XDP programs can be run for
// it. No frame comes in by it.
func (h *harness) enableXDP(ifindex int) {
	h.tb.Helper()
	pass := must(bpfload.NewPass())(h.tb)
	defer pass.Close()
	link := must(bpfload.Attach(pass, bpfload.XDP, ifindex))(h.tb)
	h.tb.Cleanup(func() { link.Close() })
}

// program returns a program that a test runs. Those of its hook are loaded first, if no
// frame has come there yet: the verifier takes long, and most tests need one hook.
func (h *harness) program(name string) *bpfload.Program {
	h.tb.Helper()
	if h.dp.objects.Programs[name] == nil {
		for _, e := range entries {
			if e.name == name {
				check(h.tb, h.dp.need(e.programs(h.dp.rare(false)...)...))
			}
		}
	}
	return h.dp.objects.Programs[name]
}

// everything loads the programs of all hooks.
func (h *harness) everything() {
	for _, e := range entries {
		h.program(e.name)
	}
}

// advance moves the clock forward.
func (h *harness) advance(seconds float64) {
	h.dp.tables.shared.Now += uint32(seconds * state.TicksPerSecond)
	h.dp.Heartbeat()
}

// A verdict is what happens to a frame.
type verdict string

const (
	drop     verdict = "drop"
	up       verdict = "up"      // to the stack; at egress: out
	redirect verdict = "forward" // to the device whose MACs are in the frame
	rejected verdict = "reject"  // back to the sender
	aborted  verdict = "aborted" // no program may do this
)

// A result is what a hook did with a frame.
type result struct {
	verdict  verdict
	reason   string // names of all reasons counted at the interface: exactly one
	frame    []byte
	priority uint32 // as TCX ingress sets it (XDP) or on the packet (TCX)
	mark     uint32 // in the metadata (XDP) or on the packet (TCX)
	meta     bool   // XDP: there is metadata
	back     bool   // XDP: TCX ingress must redirect it
	number   uint32 // … of a state
	believes int    // the interface whose TCX ingress accepts the metadata
	note     [5]uint32
}

// packet returns the frame's packet as text. "lan " or "wan " before it means that it is
// addressed to a station there.
func (r *result) packet() string {
	if len(r.frame) < 34 {
		return fmt.Sprintf("%x", r.frame)
	}
	prefix := ""
	switch net.HardwareAddr(r.frame[:6]).String() {
	case lanHostMAC:
		prefix = "lan "
	case wanHostMAC:
		prefix = "wan "
	}
	return prefix + decodePkt(r.frame[14:]).String()
}

// xdp makes a frame come in by an interface with XDP.
func (h *harness) xdp(ifindex int, frame []byte) result {
	h.tb.Helper()
	if h.trunk != nil {
		return h.xdpTagged(ifindex, frame)
	}
	return h.xdpOn(ifindex, ifindex, frame)
}

// xdpOn makes a frame come in by a device. The frame belongs to the device, or to an
// interface on it.
func (h *harness) xdpOn(device, ifindex int, frame []byte) result {
	h.tb.Helper()
	if h.dp.Prefetching() && !h.warm {
		h.cool()
	}
	o, err := bpfload.RunXDP(h.program("weir_xdp"), bpfload.Run{Frame: frame, Ifindex: device})
	check(h.tb, err)
	r := xdpResult(h.exit(device, &o))
	r.reason = h.counts(ifindex)
	return r
}

// xdpResult reads the result of an XDP program, without the reason.
func xdpResult(o *bpfload.Outcome) result {
	r := result{verdict: aborted, frame: o.Frame}
	switch o.Result {
	case 1:
		r.verdict = drop
	case 2:
		r.verdict = up
	case 3:
		r.verdict = rejected
	case 4:
		r.verdict = redirect
	}
	if len(o.Meta) == metadataSize && binary.NativeEndian.Uint32(o.Meta) == metadataMagic {
		number := binary.NativeEndian.Uint32(o.Meta[8:])
		r.meta, r.mark, r.back, r.number = true, binary.NativeEndian.Uint32(o.Meta[4:]), number&metadataRedirect != 0, number&^(metadataRedirect|metadataAlone)
		r.believes = int(binary.NativeEndian.Uint32(o.Meta[12:]))
		r.priority = binary.NativeEndian.Uint32(o.Meta[16:]) &^ qosPrio
	}
	return r
}

// Of struct metadata in bpf/config.h.
const (
	metadataMagic    = 0x77656972
	metadataRedirect = 1 << 31
	metadataNexthop  = 1 << 30
	metadataProbe    = 1 << 29
	metadataAlone    = 1 << 28
	metadataBridge   = 1 << 27
	metadataSize     = 28
)

// qosPrio is QOS_PRIO of bpf/config.h.
const qosPrio = 0x8000

// tcIn makes a frame come in by an interface with TCX.
func (h *harness) tcIn(ifindex int, frame []byte) result {
	h.tb.Helper()
	return h.tc("weir_tc_in", bpfload.Run{Frame: frame, Ifindex: ifindex, From: ifindex})
}

// tcOut makes a frame leave by an interface. It is the box's own, or has the mark that it
// got where it came in.
func (h *harness) tcOut(ifindex int, frame []byte, mark uint32) result {
	h.tb.Helper()
	if mark != 0 {
		return h.tcFrom(ifindex, frame, mark, h.net.lan0)
	}
	return h.tcFrom(ifindex, frame, 0, 0)
}

// tcFrom makes a frame leave by an interface that the stack forwarded from another one.
func (h *harness) tcFrom(ifindex int, frame []byte, mark uint32, from int) result {
	h.tb.Helper()
	return h.tc("weir_tc_out", bpfload.Run{Frame: frame, Ifindex: ifindex, Mark: mark, From: from})
}

func (h *harness) tc(program string, run bpfload.Run) result {
	h.tb.Helper()
	o, err := bpfload.RunTC(h.program(program), run)
	check(h.tb, err)
	r := tcResult(&o)
	r.reason = h.counts(run.Ifindex)
	return r
}

// tcResult reads the result of a TCX program, without the reason.
func tcResult(o *bpfload.Outcome) result {
	r := result{verdict: aborted, frame: o.Frame, mark: o.Mark, priority: o.Priority, note: o.Note}
	switch o.Result {
	case 0xffffffff:
		r.verdict = up
	case 2:
		r.verdict = drop
	case 7:
		r.verdict = redirect
	}
	return r
}

// counts returns the reasons counted at the interface since the last call.
func (h *harness) counts(ifindex int) string {
	h.tb.Helper()
	var text string
	var now [reason.Count]uint64
	c := InterfaceCounters{Ifindex: ifindex}
	check(h.tb, h.dp.View().readReasons(&c, h.dp.tables.shared.Interfaces[ifindex].Counters))
	before := h.counted[ifindex]
	for r := range now {
		now[r] = c.Reasons[r].Packets
		if n := now[r] - before[r]; n == 1 {
			text += " " + reason.Reason(r).String()
		} else if n > 1 {
			text += fmt.Sprintf(" %d*%s", n, reason.Reason(r))
		}
	}
	h.counted[ifindex] = now
	if text == "" {
		return ""
	}
	return text[1:]
}

// in builds a frame from a text in parsePkt's form, makes it come in by lan0 or wan0, and
// returns the result.
func (h *harness) in(hook func(int, []byte) result, from, text string) result {
	h.tb.Helper()
	ifindex, frame := h.arrive(from, text)
	return hook(ifindex, frame)
}

// arrive returns the frame of a packet that comes from "lan" or "wan".
func (h *harness) arrive(from, text string) (int, []byte) {
	h.tb.Helper()
	switch from {
	case "lan":
		return h.net.lan0, parsePkt(text).frame(lanHostMAC, lan0MAC)
	case "wan":
		return h.net.wan0, parsePkt(text).frame(wanHostMAC, wan0MAC)
	}
	h.tb.Fatalf("nothing comes from %q", from)
	return 0, nil
}

// states returns the live states, one per line, in the form that tests compare.
func (h *harness) states() []string {
	var all []string
	for s := range h.dp.View().States() {
		all = append(all, stateText(s))
	}
	slices.Sort(all)
	return all
}

// stateText returns both tuples, the phase, the peers and the packets of a state.
func stateText(s *state.State) string {
	f := s.Tuple[0]
	text := fmt.Sprintf("%d %s:%d > %s:%d", f.Proto, f.Src, f.SPort, f.Dst, f.DPort)
	if s.Translated() {
		b := s.Tuple[1].Reverse()
		text += fmt.Sprintf(" as %s:%d > %s:%d", b.Src, b.SPort, b.Dst, b.DPort)
	}
	return fmt.Sprintf("%s %s %d:%d %d/%d", text, s.Phase, s.Flow[0].Peer, s.Flow[1].Peer, s.Flow[0].Packets, s.Flow[1].Packets)
}

// forget empties the state table, the tuple table, the fragments and the records of
// hand-offs.
func (h *harness) forget() {
	h.tb.Helper()
	t := h.dp.tables
	for i := range t.states {
		s := &t.states[i]
		if s.Status == statusFree {
			continue
		}
		*s = xdpState{}
	}
	clear(t.hints)
	clear(t.buckets)
	var tuple xdpTuple
	for all := t.maps[mapSpilled].Iterate(); all.Next(&tuple, new(uint32)); {
		check(h.tb, t.maps[mapSpilled].Delete(&tuple))
	}
	var key xdpFragmentKey
	for all := t.maps[mapFragments].Iterate(); all.Next(&key, new(xdpFragmentEntry)); {
		check(h.tb, t.maps[mapFragments].Delete(&key))
	}
	handoffs := t.maps[mapHandoffs]
	for all := handoffs.Iterate(); all.Next(&tuple, new(xdpHandoff)); {
		check(h.tb, handoffs.Delete(&tuple))
	}
	t.shared.StatesMade, t.shared.StatesReleased = 0, 0
	h.forgetSources()
	h.forgetEndpoints()
	h.forgetPools()
}
