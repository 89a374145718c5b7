package model

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/fw/reason"
	"weir/pf/ast"
	"weir/pf/resolve"
)

// ask1 shows a packet to a model with these rules.
func ask1(t *testing.T, f Frame, rules ...*resolve.Rule) Forwarding {
	t.Helper()
	return newWorld(t, rules...).Trace(&f)
}

func comparable() cmp.Option {
	return cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })
}

func TestTraceForwarding(t *testing.T) {
	nat, out := natTo("203.0.113.0/29"), pass()
	out.Direction = ast.Out
	in := pass()
	in.Direction, in.Log = ast.In, true
	got := ask1(t, Frame{Interface: lanIndex, Bytes: udp(t, client, 4000, server, 53, "q")}, in, nat, out)
	if !got.Pass || !got.State || got.Interface != wanIndex || got.NextHop != server || got.Reason != reason.Rule {
		t.Errorf("%+v", got)
	}
	if got.In.Rule != in || got.Out.Rule != out || got.Rule() != in || !got.In.Log || got.Out.Log {
		t.Errorf("rules %+v %+v", got.In, got.Out)
	}
	want := End{[]netip.Prefix{prefix("203.0.113.0/29")}, 50001, 65535}
	if diff := cmp.Diff(want, got.Src, comparable()); diff != "" {
		t.Errorf("source (-want +got):\n%s", diff)
	}
}

func TestTraceRedirected(t *testing.T) {
	refuse := block()
	refuse.Direction, refuse.To = ast.Out, resolve.Endpoint{Addr: host("192.168.1.20")}
	refuse.Answer = resolve.Answer{RST: true, ICMP: true, Code: 3, Code6: 4}
	rules := []*resolve.Rule{rdrTo("203.0.113.5", "192.168.1.20", 8080), pass(), refuse}
	got := ask1(t, Frame{Interface: wanIndex, Bytes: udp(t, server, 4000, gateway, 80, "q")}, rules...)
	if got.Pass || got.Rule() != refuse || got.In.Rule != rules[1] || got.Answer == nil || got.State {
		t.Errorf("%+v", got)
	}
	want := End{[]netip.Prefix{prefix("192.168.1.20/32")}, 8080, 8080}
	if diff := cmp.Diff(want, got.Dst, comparable()); diff != "" {
		t.Errorf("destination (-want +got):\n%s", diff)
	}
}

// A packet dropped before the rules names a rule only if that rule blocks it too.
func TestTraceBeforeTheRules(t *testing.T) {
	spoofed := Frame{Interface: wanIndex, Bytes: udp(t, addr("127.0.0.1"), 1, gateway, 2, "q")}
	if got := ask1(t, spoofed, pass()); got.Pass || got.Reason != reason.MartianSource || got.Rule() != nil {
		t.Errorf("passed by the rules: %+v", got)
	}
	refuse := block()
	if got := ask1(t, spoofed, refuse); got.Pass || got.Reason != reason.MartianSource || got.Rule() != refuse {
		t.Errorf("blocked by the rules: %+v", got)
	}
	group := Frame{Interface: lanIndex, Bytes: frame(t, ip(client, addr("224.0.0.1"), 2))}
	group.Bytes[22] = 1 // TTL
	summed(group.Bytes)
	if got := ask1(t, group, refuse); !got.Pass || got.Reason != reason.Implicit || got.Rule() != nil {
		t.Errorf("implicit: %+v", got)
	}
}

func TestTraceOwn(t *testing.T) {
	out := pass()
	got := ask1(t, Frame{Bytes: udp(t, gateway, 4000, server, 53, "q")[14:]}, out)
	if !got.Pass || got.Rule() != out || got.In.Evaluated || got.Interface != wanIndex {
		t.Errorf("%+v", got)
	}
	if got := ask1(t, Frame{Bytes: udp(t, gateway, 4000, addr("198.18.0.1"), 53, "q")[14:]}, out); !got.NoRoute || got.Local {
		t.Errorf("without a route: %+v", got)
	}
	if got := ask1(t, Frame{Interface: lanIndex, Bytes: udp(t, client, 4000, gateway, 53, "q")}, out); !got.Local || got.Interface != 0 {
		t.Errorf("to the box: %+v", got)
	}
}
