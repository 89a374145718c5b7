package model

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/fw/reason"
)

// TestAfTo translates packets from lan to the other family.
func TestAfTo(t *testing.T) {
	nat64 := addr("64:ff9b::c633:6407") // 198.51.100.7
	tests := []struct {
		name, rules string
		src, dst    netip.Addr
		wantSrc     End
		wantDst     End
		hop         string
	}{
		{
			"taken out of the address", "pass in on lan inet6 to 64:ff9b::/96 af-to inet from 203.0.113.5\npass out on wan inet\nblock out inet6",
			client6, nat64,
			End{[]netip.Prefix{prefix("203.0.113.5/32")}, 50001, 65535}, fixed(server, 53), "198.51.100.7",
		}, {
			"of a shorter prefix", "pass in on lan inet6 to 2001:db8:100::/40 af-to inet from 203.0.113.5 static-port\npass out",
			client6, addr("2001:db8:1c6:3364:0007::"),
			fixed(gateway, 4000), fixed(server, 53), "198.51.100.7",
		}, {
			"given", "pass in on lan inet6 to fd00:9::1 af-to inet from (wan:0) port 2000:3000 to 198.51.100.9 port 5353\npass out",
			client6, addr("fd00:9::1"),
			End{[]netip.Prefix{prefix("203.0.113.5/32")}, 2000, 3000}, fixed(addr("198.51.100.9"), 5353), "198.51.100.9",
		}, {
			"put into the source's network", "pass in on lan inet af-to inet6 from 2001:db8:5::/96 static-port\npass out inet6",
			client, server,
			fixed(addr("2001:db8:5::c0a8:10a"), 4000), fixed(addr("2001:db8:5::c633:6407"), 53), "2001:db8:5::c633:6407",
		}, {
			"put into another", "pass in on lan inet af-to inet6 from 2001:db8:5::5 static-port to 2001:db8:9::/96\npass out inet6",
			client, server,
			fixed(addr("2001:db8:5::5"), 4000), fixed(addr("2001:db8:9::c633:6407"), 53), "2001:db8:9::c633:6407",
		}, {
			"and sent elsewhere", "pass in on lan route-to (wan 203.0.113.254) inet6 to 64:ff9b::/96 af-to inet from 203.0.113.5 static-port\npass out",
			client6, nat64, fixed(gateway, 4000), fixed(server, 53), "203.0.113.254",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := ask1(t, Frame{Interface: lanIndex, Bytes: udp(t, test.src, 4000, test.dst, 53, "q")}, loaded(t, test.rules)...)
			if diff := cmp.Diff([]End{test.wantSrc, test.wantDst}, []End{got.Src, got.Dst}, comparable()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if !got.Pass || got.Interface != wanIndex || got.NextHop != addr(test.hop) {
				t.Errorf("passes %t (%v), out %d to %v; want %s", got.Pass, got.Reason, got.Interface, got.NextHop, test.hop)
			}
		})
	}
}

// An IPv4 address does not fit behind a prefix of 80 bits.
func TestAfToNoAddress(t *testing.T) {
	got := ask1(t, Frame{Interface: lanIndex, Bytes: udp(t, client6, 4000, addr("fd00:9::1"), 53, "q")},
		loaded(t, "pass in on lan inet6 to fd00:9::/80 af-to inet from 203.0.113.5\npass out")...)
	if got.Pass || got.Reason != reason.NATAddress {
		t.Errorf("passes %t, %v", got.Pass, got.Reason)
	}
}
