package dataplane

import "testing"

// What packets of direction 0 become is said in their own half of the state: the
// other one, which lies elsewhere, is not looked at.
func TestOwnHalfTranslates(t *testing.T) {
	h := newHarness(t, masquerade+"pass")
	first := h.in(h.xdp, "lan", "udp 192.168.1.10:1000 > 198.51.100.9:53")
	for _, s := range h.dp.View().live() {
		s.Back.Tuple = xdpTuple{}
	}
	second := h.in(h.xdp, "lan", "udp 192.168.1.10:1000 > 198.51.100.9:53")
	if second.reason != "state" || second.packet() != first.packet() {
		t.Errorf("got %s %s, want the packet as the first left: %s", second.reason, second.packet(), first.packet())
	}
}
