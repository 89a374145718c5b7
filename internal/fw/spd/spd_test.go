package spd_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/fw/limits"
	"weir/internal/fw/spd"
	"weir/internal/fw/spd/spdtest"
	"weir/internal/host/xfrm"
)

// search finds what a table says, as bpf/path/policy.h does.
func search(t *spd.Table, f *spdtest.Flow, list uint8) spd.Verdict {
	return searchPacket(t, f, list, true)
}

// searchPacket is search for a packet whose ports may not be known.
func searchPacket(t *spd.Table, f *spdtest.Flow, list uint8, ports bool) spd.Verdict {
	l := &t.Lists[list]
	key := spd.Key{
		Src: f.Src.As16(), Dst: f.Dst.As16(), Mark: f.Mark, Ifindex: f.Ifindex, Proto: f.Proto,
		Sport: [2]byte{byte(f.Sport >> 8), byte(f.Sport)}, Dport: [2]byte{byte(f.Dport >> 8), byte(f.Dport)},
	}
	verdict, found, least := l.Otherwise, false, uint32(0)
	doubted, doubt := false, uint32(0)
	for i, s := range l.Shapes {
		k := spd.Key{Mark: key.Mark & s.Mark, Ifindex: key.Ifindex & s.Ifindex, Proto: key.Proto & s.Proto, List: list, Shape: uint8(i)}
		for n := range key.Src {
			k.Src[n], k.Dst[n] = key.Src[n]&s.Src[n], key.Dst[n]&s.Dst[n]
		}
		for n := range key.Sport {
			k.Sport[n], k.Dport[n] = key.Sport[n]&s.Sport[n], key.Dport[n]&s.Dport[n]
		}
		if !ports && (s.Sport != [2]byte{} || s.Dport != [2]byte{}) {
			k.Sport, k.Dport, k.Portless = [2]byte{}, [2]byte{}, true
		}
		e, ok := t.Entries[k]
		switch {
		case !ok:
		case k.Portless:
			if !doubted || e.Priority < doubt {
				doubted, doubt = true, e.Priority
			}
		case !found || e.Priority < least:
			verdict, found, least = e.Verdict, true, e.Priority
		case e.Priority == least && e.Verdict != verdict:
			if min(verdict, e.Verdict) >= spd.Secret {
				verdict = spd.Secret
			} else {
				verdict = spd.Stack
			}
		}
	}
	if doubted && verdict != spd.Held && (!found || doubt <= least) {
		return spd.Stack
	}
	return verdict
}

// A table says of each packet what the kernel does with it.
func TestTableIsTheKernel(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	seen := make(map[spd.Verdict]int)
	for range 20_000 {
		policies, defaults := spdtest.Random(r, 2, 3)
		table := spd.Compile(policies, nil, defaults, 0xe0000000)
		for range 20 {
			six := r.IntN(3) == 0
			f := spdtest.Flow{
				Src: spdtest.RandomAddress(r, six), Dst: spdtest.RandomAddress(r, six), Proto: [...]uint8{1, 6, 17, 58, 132, 50}[r.IntN(6)],
				Sport: spdtest.RandomPort(r), Dport: spdtest.RandomPort(r), Ifindex: 2 + r.Uint32N(2), Mark: [...]uint32{0, 5, 0x105}[r.IntN(3)],
			}
			for d, list := range map[xfrm.Direction]uint8{xfrm.Forward: 0, xfrm.Out: 2} {
				if six {
					list++
				}
				want := spdtest.Verdict(policies, defaults, &f, d)
				seen[want]++
				if got := search(table, &f, list); got != want {
					t.Fatalf("%s of %+v: %d, want %d\n%+v", d, f, got, want, policies)
				}
			}
		}
	}
	for _, v := range []spd.Verdict{spd.Clear, spd.Stack, spd.Secret} {
		if seen[v] < 1000 {
			t.Errorf("only %d times verdict %d", seen[v], v)
		}
	}
}

// If the ports of a packet are not known, a table says what holds for all ports, or that only the stack
// knows. What no port can change stays as it is.
func TestPortsThatAreNotKnown(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	seen := make(map[spd.Verdict]int)
	some := []uint16{0, 8, 53, 80, 443, 4500, 9999}
	for range 20_000 {
		policies, defaults := spdtest.Random(r, 2, 3)
		table := spd.Compile(policies, nil, defaults, 0xe0000000)
		f := spdtest.Flow{
			Src: spdtest.RandomAddress(r, false), Dst: spdtest.RandomAddress(r, false), Proto: [...]uint8{1, 6, 17, 47, 132}[r.IntN(5)],
			Ifindex: 2 + r.Uint32N(2),
		}
		got := searchPacket(table, &f, 2, false)
		seen[got]++
		ports := false
		for i := range policies {
			ports = ports || policies[i].SportMask|policies[i].DportMask != 0
		}
		for _, f.Sport = range some {
			for _, f.Dport = range some {
				want := spdtest.Verdict(policies, defaults, &f, xfrm.Out)
				if got != want && (got != spd.Stack || !ports) {
					t.Fatalf("%+v: %d, with its ports %d\n%+v", f, got, want, policies)
				}
			}
		}
	}
	for _, v := range []spd.Verdict{spd.Clear, spd.Stack, spd.Secret} {
		if seen[v] < 100 {
			t.Errorf("only %d times verdict %d", seen[v], v)
		}
	}
}

// A policy with ports does not let other protocols pass that one without them encrypts.
func TestPortsOfOtherProtocols(t *testing.T) {
	secret, pass := policy("192.168.1.0/24 10.1.0.0/16"), policy("0.0.0.0/0 0.0.0.0/0")
	secret.Priority = 9
	pass.Templates, pass.Required, pass.Proto, pass.Dport, pass.DportMask = 0, 0, 17, 500, 0xffff
	table := spd.Compile([]xfrm.Policy{secret, pass}, nil, xfrm.Defaults{}, 0)
	f := spdtest.Flow{Src: netip.MustParseAddr("192.168.1.1"), Dst: netip.MustParseAddr("10.1.1.1"), Proto: 47}
	if got := searchPacket(table, &f, 2, false); got != spd.Secret {
		t.Errorf("GRE: %d", got)
	}
	f.Proto = 17
	if got := searchPacket(table, &f, 2, false); got != spd.Stack {
		t.Errorf("a fragment of UDP: %d", got)
	}
}

// A policy that is held keeps packets back whose ports are not known, whatever policies with ports say.
func TestHeldWithoutPorts(t *testing.T) {
	secret, pass := policy("192.168.1.0/24 10.1.0.0/16"), policy("0.0.0.0/0 0.0.0.0/0")
	secret.Priority = 9
	pass.Templates, pass.Required, pass.Proto, pass.Dport, pass.DportMask = 0, 0, 17, 500, 0xffff
	f := spdtest.Flow{Src: netip.MustParseAddr("192.168.1.1"), Dst: netip.MustParseAddr("10.1.1.1"), Proto: 17, Dport: 500}
	held := spd.Compile([]xfrm.Policy{pass}, []xfrm.Policy{secret}, xfrm.Defaults{}, 0)
	if got := searchPacket(held, &f, 2, false); got != spd.Held {
		t.Errorf("a fragment while the policy is held: %d", got)
	}
	if got := search(held, &f, 2); got != spd.Clear {
		t.Errorf("what the policy with ports selects, while the other one is held: %d", got)
	}
	f.Dport = 501
	if got := search(held, &f, 2); got != spd.Held {
		t.Errorf("what the held policy selects alone: %d", got)
	}
	held.HoldPlainly()
	if got := search(held, &f, 2); got != spd.Secret {
		t.Errorf("the same for programs of an older build: %d", got)
	}
	f.Dport = 500
	if got := searchPacket(spd.Compile([]xfrm.Policy{pass, secret}, nil, xfrm.Defaults{}, 0), &f, 2, false); got != spd.Stack {
		t.Errorf("a fragment while the policy is there: %d", got)
	}
}

// A policy that is held and one of the same priority that has come both forbid clear text.
func TestHeldBesideAnother(t *testing.T) {
	gone, came, pass := policy("192.168.1.0/24 10.1.0.0/16"), policy("192.168.1.0/24 10.1.0.0/17"), policy("192.168.0.0/16 10.1.0.0/16")
	pass.Templates, pass.Required = 0, 0
	f := spdtest.Flow{Src: netip.MustParseAddr("192.168.1.1"), Dst: netip.MustParseAddr("10.1.1.1")}
	if got := search(spd.Compile([]xfrm.Policy{came}, []xfrm.Policy{gone}, xfrm.Defaults{}, 0), &f, 2); got != spd.Secret {
		t.Errorf("both encrypt: %d", got)
	}
	if got := search(spd.Compile([]xfrm.Policy{pass}, []xfrm.Policy{gone}, xfrm.Defaults{}, 0), &f, 2); got != spd.Stack {
		t.Errorf("the other one lets packets pass: %d", got)
	}
	same := gone
	gone.Templates, gone.Required, gone.Block = 0, 0, true
	if got := search(spd.Compile([]xfrm.Policy{same}, []xfrm.Policy{gone}, xfrm.Defaults{}, 0), &f, 2); got != spd.Secret {
		t.Errorf("both have the same selector: %d", got)
	}
}

// What a network card encrypts is in clear where it leaves the stack. When the policy has gone, nobody encrypts it.
func TestOffloaded(t *testing.T) {
	p := policy("192.168.1.0/24 10.1.0.0/16")
	p.Offloaded = true
	f := spdtest.Flow{Src: netip.MustParseAddr("192.168.1.1"), Dst: netip.MustParseAddr("10.1.1.1")}
	if got := search(spd.Compile([]xfrm.Policy{p}, nil, xfrm.Defaults{}, 0), &f, 2); got != spd.Stack {
		t.Errorf("a card encrypts: %d", got)
	}
	block := p
	block.Block = true
	if got := search(spd.Compile([]xfrm.Policy{block}, nil, xfrm.Defaults{}, 0), &f, 2); got != spd.Secret {
		t.Errorf("a policy that blocks: %d", got)
	}
	var h, next spd.Holder
	h.See([]xfrm.Policy{p}, time.Unix(1000, 0), time.Minute)
	next.Recall(h.Secret())
	for _, one := range []*spd.Holder{&h, &next} {
		one.See(nil, time.Unix(1001, 0), time.Minute)
		held, _ := one.Held()
		if got := search(spd.Compile(nil, held, xfrm.Defaults{}, 0), &f, 2); got != spd.Held {
			t.Errorf("the policy has gone: %d", got)
		}
	}
}

func policy(text string) xfrm.Policy {
	words := strings.Fields(text)
	return xfrm.Policy{
		Selector:  xfrm.Selector{Src: netip.MustParsePrefix(words[0]), Dst: netip.MustParsePrefix(words[1])},
		Direction: xfrm.Out, Templates: 1, Required: 1,
	}
}

// What the kernel cannot be asked about beforehand is left to it.
func TestMarks(t *testing.T) {
	p := policy("0.0.0.0/0 10.0.0.0/8")
	p.Mark, p.MarkMask = 5, 0xffffffff
	f := spdtest.Flow{Src: netip.MustParseAddr("192.168.1.1"), Dst: netip.MustParseAddr("10.1.1.1"), Mark: 5}
	if got := search(spd.Compile([]xfrm.Policy{p}, nil, xfrm.Defaults{}, 0xe0000000), &f, 2); got != spd.Stack {
		t.Errorf("a mark that weir's bits change: %d", got)
	}
	p.Templates, p.Required = 0, 0
	block := policy("0.0.0.0/0 0.0.0.0/0")
	block.Priority = 9
	if got := search(spd.Compile([]xfrm.Policy{p, block}, nil, xfrm.Defaults{}, 0xe0000000), &f, 2); got != spd.Stack {
		t.Errorf("a mark that weir's bits change, of a policy that lets packets pass: %d", got)
	}
	p.Mark = 5 | 1<<8
	p.MarkMask = 0xff
	if !spd.Compile([]xfrm.Policy{p}, nil, xfrm.Defaults{}, 0).Idle() {
		t.Error("a policy whose mark no packet can have is followed")
	}
}

// Policies that let everything pass, those of xfrm interfaces and sockets, and those for the box change nothing.
func TestIdle(t *testing.T) {
	pass, bound, in, socket := policy("0.0.0.0/0 0.0.0.0/0"), policy("0.0.0.0/0 0.0.0.0/0"), policy("0.0.0.0/0 0.0.0.0/0"), policy("0.0.0.0/0 0.0.0.0/0")
	pass.Templates, pass.Required, bound.IfID, in.Direction, socket.Direction = 0, 0, 7, xfrm.In, 4
	if table := spd.Compile([]xfrm.Policy{pass, bound, in, socket}, nil, xfrm.Defaults{BlockIn: true}, 0); !table.Idle() || len(table.Entries) != 0 {
		t.Errorf("%+v", table)
	}
	if spd.Compile(nil, nil, xfrm.Defaults{BlockOut: true}, 0).Idle() {
		t.Error("a default of block is not followed")
	}
}

// A list of the kernel's policies also has those of sockets: charon's let what it sends itself pass, before all others.
func TestPoliciesOfSockets(t *testing.T) {
	const socketIn, socketOut = 3, 4 // XFRM_POLICY_MAX and the direction
	f := spdtest.Flow{Src: netip.MustParseAddr("192.168.1.1"), Dst: netip.MustParseAddr("10.1.1.1")}
	secret := policy("192.168.1.0/24 10.1.0.0/16")
	secret.Priority, secret.Direction = 1000, xfrm.Forward
	policies := []xfrm.Policy{secret}
	for _, d := range []xfrm.Direction{socketIn, socketOut} {
		pass := policy("0.0.0.0/0 0.0.0.0/0")
		pass.Templates, pass.Required, pass.Direction = 0, 0, d
		policies = append(policies, pass)
	}
	table := spd.Compile(policies, nil, xfrm.Defaults{}, 0)
	if got := search(table, &f, 0); got != spd.Secret || table.Policies != 1 {
		t.Errorf("beside policies of sockets: %d, %d followed", got, table.Policies)
	}
}

// Beyond what the dataplane has room for, everything goes up.
func TestPolicyBounds(t *testing.T) {
	var many []xfrm.Policy
	for i := range limits.PolicyShapes {
		many = append(many, policy(fmt.Sprintf("0.0.0.0/0 255.255.255.255/%d", i)))
	}
	if table := spd.Compile(many, nil, xfrm.Defaults{}, 0); table.All != "" || table.Policies != limits.PolicyShapes {
		t.Errorf("%d forms: %q", limits.PolicyShapes, table.All)
	}
	many = append(many, policy("128.0.0.0/1 10.0.0.0/8"))
	if table := spd.Compile(many, nil, xfrm.Defaults{}, 0); table.All == "" || table.Idle() {
		t.Errorf("%d forms are followed", len(many))
	}
	many = nil
	for i := range limits.MaxPolicies {
		many = append(many, policy(fmt.Sprintf("0.0.0.0/0 10.%d.%d.%d/32", i>>16, i>>8&255, i&255)))
	}
	if table := spd.Compile(many, nil, xfrm.Defaults{}, 0); table.All != "" {
		t.Errorf("%d policies: %q", len(many), table.All)
	}
	if table := spd.Compile(append(many, policy("0.0.0.0/0 11.0.0.1/32")), nil, xfrm.Defaults{}, 0); table.All == "" {
		t.Errorf("%d policies are followed", len(many)+1)
	}
}

// Policies of the table that the kernel searches first come before all others.
func TestSubPolicies(t *testing.T) {
	sub, pass := policy("192.168.1.0/24 10.1.0.0/16"), policy("192.168.1.0/24 10.0.0.0/8")
	sub.Sub, sub.Priority = true, 100
	pass.Templates, pass.Required, pass.Priority = 0, 0, 10
	f := spdtest.Flow{Src: netip.MustParseAddr("192.168.1.1"), Dst: netip.MustParseAddr("10.1.1.1")}
	if got := search(spd.Compile([]xfrm.Policy{sub, pass}, nil, xfrm.Defaults{}, 0), &f, 2); got != spd.Stack {
		t.Errorf("beside a sub policy: %d", got)
	}
}

// What a Holder held or followed, the next one holds, if it has gone.
func TestRecall(t *testing.T) {
	var before, after spd.Holder
	now := time.Unix(1000, 0)
	gone, stays, goes, pass := policy("192.168.1.0/24 10.9.0.0/16"), policy("192.168.1.0/24 10.8.0.0/16"), policy("192.168.1.0/24 10.7.0.0/16"), policy("192.168.1.0/24 10.6.0.0/16")
	pass.Templates, pass.Required = 0, 0
	before.See([]xfrm.Policy{gone, stays, goes, pass}, now, time.Minute)
	before.See([]xfrm.Policy{stays, goes, pass}, now, time.Minute)
	secret := before.Secret()
	if len(secret) != 3 {
		t.Errorf("secret: %+v", secret)
	}
	after.Recall(secret)
	after.See([]xfrm.Policy{stays}, now, time.Minute)
	held, until := after.Held()
	if len(held) != 2 || slices.Contains(held, stays) || !until.Equal(now.Add(time.Minute)) {
		t.Errorf("held: %+v until %v", held, until)
	}
}

// A policy that has gone is held for a while, unless one with its selector takes its place.
func TestHold(t *testing.T) {
	var h spd.Holder
	now := time.Unix(1000, 0)
	esp, other, pass := policy("192.168.1.0/24 10.9.0.0/16"), policy("192.168.1.0/24 10.8.0.0/16"), policy("192.168.1.0/24 10.7.0.0/16")
	pass.Templates, pass.Required = 0, 0
	see := func(after time.Duration, want int, policies ...xfrm.Policy) {
		t.Helper()
		now = now.Add(after)
		h.See(policies, now, 30*time.Second)
		if held, until := h.Held(); len(held) != want || until.IsZero() != (want == 0) {
			t.Errorf("held: %+v until %v, want %d", held, until, want)
		}
	}
	see(0, 0, esp, other, pass)
	see(time.Second, 1, other)
	see(29*time.Second, 1, other)
	again := esp
	again.Priority, again.Index = 77, 99
	see(0, 0, other, again) // a rekey
	see(0, 1, other)
	see(0, 2)
	see(30*time.Second-1, 2)
	see(1, 0)
	see(0, 0)
}
