package model

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/fw/reason"
	"weir/pf/resolve"
)

// loaded returns the rules of a file for the box of these tests.
func loaded(t *testing.T, src string) []*resolve.Rule {
	t.Helper()
	host := &resolve.Host{}
	for _, i := range testBox().Interfaces {
		host.Interfaces = append(host.Interfaces, resolve.HostInterface{Name: i.Name, Groups: i.Groups, Addresses: i.Addresses})
	}
	rules, list := resolve.Load("in", []byte(src), host)
	if err := list.Err(); err != nil {
		t.Fatal(err)
	}
	return rules.Rules
}

// TestNextHop follows packets from lan that the rules send elsewhere than the machine's
// routes do.
func TestNextHop(t *testing.T) {
	tests := []struct {
		name, rules string
		to          netip.Addr
		out         uint32
		hop         string
		refused     reason.Reason
	}{
		{"the route", "pass", server, wanIndex, "198.51.100.7", 0},
		{"address", "pass in on lan route-to 203.0.113.254\npass out", server, wanIndex, "203.0.113.254", 0},
		{"pair", "pass in on lan route-to (wan 203.0.113.253) inet from any to any\npass out", server, wanIndex, "203.0.113.253", 0},
		{"back out", "pass in on lan route-to (lan 192.168.1.254) inet\npass out", server, lanIndex, "192.168.1.254", 0},
		{"interface", "pass in on lan route-to wan inet\npass out", server, wanIndex, "198.51.100.7", 0},
		{"no neighbour there", "pass in on lan route-to lan inet\npass out", server, 0, "", reason.Gateway},
		{"the last rule decides", "pass in on lan route-to (lan 192.168.1.254) inet\npass in on lan\npass out", server, wanIndex, "198.51.100.7", 0},
		{"also what is for the box", "pass in on lan route-to 203.0.113.254\npass out", gateway, wanIndex, "203.0.113.254", 0},
		{"reply-to is for replies", "pass in on lan reply-to 192.168.1.254\npass out", server, wanIndex, "198.51.100.7", 0},
		{"dup-to is for copies", "pass in on lan dup-to 192.168.1.254\npass out", server, wanIndex, "198.51.100.7", 0},
		{"of out rules", "pass\npass out on wan route-to 203.0.113.254", server, wanIndex, "203.0.113.254", 0},
		{"out by another", "pass\npass out on wan route-to (lan 192.168.1.254) inet", server, lanIndex, "192.168.1.254", 0},
		{"whose rules are asked", "pass\npass out on wan route-to (lan 192.168.1.254) inet\nblock out on lan", server, 0, "", reason.Block},
		{"for ever", "pass\npass out on wan route-to (lan 192.168.1.254) inet\npass out on lan route-to (wan 203.0.113.254) inet", server, 0, "", reason.Gateway},
		{"no such interface", "pass in on lan route-to (tun7 10.0.0.1) inet\npass out", server, 0, "", reason.Gateway},
		{"after rdr-to", "match in on lan to 198.51.100.7 rdr-to 192.168.1.20\npass in on lan to 192.168.1.20 route-to 203.0.113.254\npass out", server, wanIndex, "203.0.113.254", 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := ask1(t, Frame{Interface: lanIndex, Bytes: udp(t, client, 4000, test.to, 53, "q")}, loaded(t, test.rules)...)
			if test.refused != 0 {
				if got.Pass || got.Reason != test.refused {
					t.Fatalf("passes %t, %v; want %v", got.Pass, got.Reason, test.refused)
				}
				return
			}
			if !got.Pass || got.Local || got.Interface != test.out || got.NextHop != addr(test.hop) {
				t.Errorf("passes %t, local %t, out %d to %v; want %d to %s", got.Pass, got.Local, got.Interface, got.NextHop, test.out, test.hop)
			}
		})
	}
}

// Next hops are used one after the other; by source-hash each source has its own.
func TestNextHops(t *testing.T) {
	hops := func(rules string, sources ...string) []string {
		w := newWorld(t, loaded(t, rules)...)
		var got []string
		for _, s := range sources {
			asked := w.Trace(&Frame{Interface: lanIndex, Bytes: udp(t, addr(s), 4000, server, 53, "q")})
			got = append(got, asked.NextHop.String())
		}
		return got
	}
	list := "pass in on lan route-to { (wan 203.0.113.1), (wan 203.0.113.2) } inet\npass out"
	want := []string{"203.0.113.1", "203.0.113.2", "203.0.113.1"}
	if diff := cmp.Diff(want, hops(list, "192.168.1.10", "192.168.1.10", "192.168.1.10")); diff != "" {
		t.Errorf("round-robin (-want +got):\n%s", diff)
	}
	hashed := "pass in on lan route-to { 203.0.113.1 203.0.113.2 } source-hash weir\npass out"
	got := hops(hashed, "192.168.1.10", "192.168.1.10", "192.168.1.11", "192.168.1.12", "192.168.1.13", "192.168.1.14")
	if got[0] != got[1] {
		t.Errorf("source-hash: one source was sent to %v and %v", got[0], got[1])
	}
	if cmp.Equal(got[:5], []string{got[0], got[0], got[0], got[0], got[0]}) && got[5] == got[0] {
		t.Errorf("source-hash: all sources were sent to %v", got[0])
	}
}

// TestOtherDirection tests nat-to and rdr-to in rules of the less usual direction.
func TestOtherDirection(t *testing.T) {
	asked := ask1(t, Frame{Interface: lanIndex, Bytes: udp(t, client, 4000, server, 53, "q")}, loaded(t, `
		match in on lan nat-to 203.0.113.9 port 1000
		match out on wan from 203.0.113.9 rdr-to 198.51.100.8 port 5353
		pass
		block from 192.168.1.10 to any
		pass in`)...)
	src := End{[]netip.Prefix{prefix("203.0.113.9/32")}, 1000, 1000}
	dst := End{[]netip.Prefix{prefix("198.51.100.8/32")}, 5353, 5353}
	if diff := cmp.Diff([]End{src, dst}, []End{asked.Src, asked.Dst}, comparable()); diff != "" || !asked.Pass {
		t.Errorf("pass %t (-want +got):\n%s", asked.Pass, diff)
	}
}

// TestBitmask checks that the bits behind the network stay.
func TestBitmask(t *testing.T) {
	asked := ask1(t, Frame{Interface: lanIndex, Bytes: udp(t, client, 4000, server, 53, "q")},
		loaded(t, "match out on wan nat-to 203.0.113.128/25 bitmask static-port\npass")...)
	want := End{[]netip.Prefix{prefix("203.0.113.138/32")}, 4000, 4000}
	if diff := cmp.Diff(want, asked.Src, comparable()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestBinat exchanges a network for another both ways.
func TestBinat(t *testing.T) {
	rules := "match on wan from 192.168.1.0/24 binat-to 203.0.113.0/24\npass"
	out := ask1(t, Frame{Interface: lanIndex, Bytes: udp(t, client, 4000, server, 53, "q")}, loaded(t, rules)...)
	in := ask1(t, Frame{Interface: wanIndex, Bytes: udp(t, server, 53, addr("203.0.113.20"), 4000, "q")}, loaded(t, rules)...)
	want := []End{fixed(addr("203.0.113.10"), 4000), fixed(inside, 4000)}
	if diff := cmp.Diff(want, []End{out.Src, in.Dst}, comparable()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
