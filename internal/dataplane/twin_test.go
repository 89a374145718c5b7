package dataplane

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"weir/internal/bpfload"
	"weir/internal/model"
	"weir/internal/state"
	"weir/pf/resolve"
)

// A twin is the dataplane and the model of the same box with the same rules.
// Both are given the same frames; where they differ, one of them is wrong.
type twin struct {
	*harness
	implicit bool
	rules    *resolve.Ruleset
	model    *model.Model
	seen     map[uint32]bool // states by index
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
const twinStates = 300

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
	t := &twin{harness: h, implicit: implicit}
	t.use("")
	return t
}

// use gives both a ruleset, and forgets everything.
func (t *twin) use(rules string) {
	t.tb.Helper()
	t.rules = t.parse(rules)
	t.rules.Options.ImplicitPass = t.implicit
	t.rules.Options.MaxStates = twinStates
	for _, i := range t.snapshot().Interfaces[1:] {
		flags := InterfacePresent | InterfaceTarget | InterfaceStatic4 | InterfaceStatic6
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

// box describes the harness's network to the model.
func (t *twin) box() *model.Box {
	b := &model.Box{Route: t.route}
	for _, h := range t.snapshot().Interfaces {
		n := model.Interface{Index: h.Index, Name: h.Name, Groups: h.Groups}
		for _, a := range h.Addresses {
			n.Addresses = append(n.Addresses, a.Prefix)
		}
		switch h.Name {
		case "lo":
			n.Loopback = true
		case "lan0":
			n.MAC, n.XDPTarget, n.Static4, n.Static6 = [6]byte(mac(lan0MAC)), true, true, true
		case "wan0":
			n.MAC, n.XDPTarget, n.Static4, n.Static6 = [6]byte(mac(wan0MAC)), true, true, true
		}
		b.Interfaces = append(b.Interfaces, n)
	}
	return b
}

func mac(text string) []byte { return ethernet(text, text, 0)[:6] }

// route is what the kernel of newNet's network would answer.
func (t *twin) route(dst netip.Addr) model.Route {
	lan := model.Route{Interface: uint32(t.net.lan0), MTU: 1500, Dst: [6]byte(mac(lanHostMAC)), Src: [6]byte(mac(lan0MAC))}
	wan := model.Route{Interface: uint32(t.net.wan0), MTU: 1500, Dst: [6]byte(mac(wanHostMAC)), Src: [6]byte(mac(wan0MAC))}
	in := func(prefix string) bool { return netip.MustParsePrefix(prefix).Contains(dst) }
	switch {
	case dst == netip.MustParseAddr("fd00:1::"), dst == netip.MustParseAddr("2001:db8:113::"):
		return model.Route{Kind: model.RouteLocal} // a router's anycast addresses (RFC 4291, 2.6.1)
	case in("192.168.1.0/24"), in("fd00:1::/64"):
		lan.Neighbour = dst == netip.MustParseAddr("192.168.1.10") || dst == netip.MustParseAddr("fd00:1::10")
		return lan
	case in("203.0.113.0/24"), in("2001:db8:113::/64"):
		wan.Neighbour = dst == netip.MustParseAddr("203.0.113.1") || dst == netip.MustParseAddr("2001:db8:113::1")
		return wan
	}
	wan.Neighbour = true // the default router
	return wan
}

// forget begins anew: no states, the clock at its start.
func (t *twin) forget() {
	t.tb.Helper()
	t.harness.forget()
	t.reseed()
	t.dp.tables.shared.Now = start
	t.dp.Heartbeat()
	t.model = model.New(t.box(), t.rules, twinBase)
	t.model.SetClock(start)
	t.seen = make(map[uint32]bool)
}

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
	var got result
	switch s.hook {
	case model.XDP:
		got = t.xdp(s.ifindex, s.frame)
	case model.TCXIngress:
		got = t.tcIn(s.ifindex, s.frame)
	default:
		got = t.tcFrom(s.ifindex, s.frame, s.mark, s.from)
	}
	now := t.live()
	want := t.model.Judge(&model.Frame{
		Hook: s.hook, Interface: uint32(s.ifindex), From: uint32(s.from), Mark: s.mark, Bytes: s.frame,
	}, t.made(now))
	return want, errorsOf(differOutcome(&s, &want, &got), differStates(t.modelStates(), now))
}

func errorsOf(texts ...string) error {
	texts = slices.DeleteFunc(texts, func(s string) bool { return s == "" })
	if len(texts) == 0 {
		return nil
	}
	return fmt.Errorf("%s", strings.Join(texts, "\n"))
}

// made returns the state that the last frame made, nil if none.
func (t *twin) made(now []state.State) *state.State {
	var made *state.State
	for i := range now {
		if !t.seen[now[i].Index] {
			t.seen[now[i].Index] = true
			made = &now[i]
		}
	}
	return made
}

// live returns the dataplane's states that have not expired, by index.
func (t *twin) live() []state.State {
	var all []state.State
	for s := range t.dp.View().States() {
		all = append(all, *s)
	}
	return t.unexpired(all)
}

func (t *twin) modelStates() []state.State { return t.unexpired(t.model.States()) }

func (t *twin) unexpired(all []state.State) []state.State {
	timeouts := state.Timeouts(t.dp.tables.shared.Timeout)
	all = slices.DeleteFunc(all, func(s state.State) bool {
		return s.Expires(state.Tick(t.dp.tables.shared.Now), &timeouts) <= 0
	})
	for i := range all {
		all[i].NextHops = [2]uint16{}
	}
	slices.SortFunc(all, func(a, b state.State) int { return int(a.Index) - int(b.Index) })
	return all
}

func differStates(want, got []state.State) string {
	if slices.Equal(want, got) {
		return ""
	}
	var b strings.Builder
	for _, s := range want {
		if !slices.Contains(got, s) {
			fmt.Fprintf(&b, "state, model only:     %+v\n", s)
		}
	}
	for _, s := range got {
		if !slices.Contains(want, s) {
			fmt.Fprintf(&b, "state, dataplane only: %+v\n", s)
		}
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
	return ""
}

// tcFrom has a frame leave by an interface that the stack forwards it to.
func (t *twin) tcFrom(ifindex int, frame []byte, mark uint32, from int) result {
	t.tb.Helper()
	return t.tc("weir_tc_out", bpfload.Run{Frame: frame, Ifindex: ifindex, Mark: mark, From: from})
}
