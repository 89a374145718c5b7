package dataplane

import (
	"net/netip"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"weir/internal/fw/reason"
	"weir/internal/fw/state"
)

// Only connections whose source port was translated count, separately for each protocol,
// address and far end.
func TestNATUses(t *testing.T) {
	h := newHarness(t, "pass on lan0\npass out on wan0\nmatch out on wan0 from 192.168.1.0/24 nat-to 203.0.113.5 port 2000:2031")
	commit(t, h.dp, nil)
	h.counted = make(map[int][reason.Count]uint64)
	for port := range 40 { // 8 find no port
		h.in(h.xdp, "lan", "udp 192.168.1.10:"+strconv.Itoa(1000+port)+" > 198.51.100.9:53 len 72")
	}
	for port := range 3 {
		h.in(h.xdp, "lan", "tcp 192.168.1.10:"+strconv.Itoa(1000+port)+" > 198.51.100.9:53 S")
		h.in(h.xdp, "lan", "udp 192.168.1.10:"+strconv.Itoa(1000+port)+" > 198.51.100.9:54 len 72")
	}
	v := must(Open(h.net.dir))(t)
	defer func() { check(t, v.Close()) }()
	use := func(proto uint8, far string, ports int) NATUse {
		return NATUse{Proto: proto, Address: netip.MustParseAddr("203.0.113.5"), Far: netip.MustParseAddrPort(far), Ports: ports}
	}
	got := v.NATUses(3)
	full := slices.IndexFunc(got, func(u NATUse) bool { return u.Ports == 32 })
	if full != 0 || got[0].Low != 2000 || got[0].High != 2031 {
		t.Errorf("%+v", got)
	}
	want := []NATUse{use(17, "198.51.100.9:53", 32), use(6, "198.51.100.9:53", 3), use(17, "198.51.100.9:54", 3)}
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Addr{}, netip.AddrPort{}), cmpopts.IgnoreFields(NATUse{}, "Low", "High")); diff != "" {
		t.Error(diff)
	}
	if got := v.NATUses(4); len(got) != 1 {
		t.Errorf("with 4 ports or more: %+v", got)
	}
}

// BenchmarkNATUses reads a million translated connections towards 50,000 far ends.
func BenchmarkNATUses(b *testing.B) {
	const states = 1 << 20
	v := &View{tables: &tables{states: make([]xdpState, states)}}
	for i := range v.tables.states {
		s := &v.tables.states[i]
		far := rawAddr(netip.AddrFrom4([4]byte{198, 51, byte(i >> 8), byte(i)}))
		if i < 14000 {
			far = rawAddr(netip.MustParseAddr("192.0.2.1"))
		}
		s.Status, s.Flags = statusLive, uint8(state.NAT)
		s.Back.Tuple = xdpTuple{Src: far, Dst: rawAddr(netip.MustParseAddr("203.0.113.5")), Sport: 443, Dport: uint16(i) | 1, Proto: 6}
	}
	for b.Loop() {
		if got := v.NATUses(7000); len(got) != 1 {
			b.Fatalf("%d", len(got))
		}
	}
}
