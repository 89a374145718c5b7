package dataplane

import "testing"

// The crossings of a forwarded packet have a cached result each, also if the rules ask for no
// direction and no interface, so that nothing but the direction tells them apart.
func TestBothCrossingsAreCached(t *testing.T) {
	h := newHarness(t, "block\npass proto udp")
	h.in(h.xdp, "lan", "udp 192.168.1.10:4000 > 203.0.113.1:53")
	entries := must(newPerCPU[xdpCacheEntry]())(t)
	cached := map[uint64]bool{} // by direction
	cache := h.dp.objects.Maps["rule_cache"]
	for at := range cache.MaxEntries() {
		check(t, cache.Lookup(at, entries))
		for _, e := range entries {
			if e.Key.Word[0] != 0 {
				cached[e.Key.Word[1]>>63] = true
			}
		}
	}
	if len(cached) != 2 {
		t.Errorf("results of the directions %v are cached", cached)
	}
}
