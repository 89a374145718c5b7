package dataplane

import (
	"runtime"
	"testing"
)

// BenchmarkScrub measures packets of a known connection under rules that normalise them.
// The figure is as in BenchmarkNew, and contains the work of a test run (about 30 ns).
func BenchmarkScrub(b *testing.B) {
	for _, c := range []struct{ name, rules string }{
		{"without", "pass"},
		{"no-df-max-mss", "match scrub (no-df max-mss 1400)\npass"},
		{"random-id-min-ttl", "match scrub (random-id min-ttl 100)\npass"},
		{"list", "scrub in all no-df random-id\npass"},
	} {
		b.Run(c.name, func(b *testing.B) {
			runtime.LockOSThread() // the caches belong to a core
			defer runtime.UnlockOSThread()
			h := newHarness(b, c.rules)
			ifindex, frame := h.arrive("lan", "udp 192.168.1.10:4000 > 203.0.113.1:53")
			frame = withHead(frame, 5, dontFragment)
			benchKnown(b, h, ifindex, frame)
		})
	}
}

// benchKnown measures the fast path under XDP for a frame, whose connection is known from its
// second time on. The caller has locked the thread, because caches belong to a core.
func benchKnown(b *testing.B, h *harness, ifindex int, frame []byte) {
	b.Helper()
	for range 2 {
		if r := h.xdp(ifindex, frame); r.verdict != redirect {
			b.Fatalf("%s (%s)", r.verdict, r.reason)
		}
	}
	t := newTimer(h, ifindex, frame)
	defer t.pins.Unpin()
	for b.Loop() {
		t.once(b)
	}
	b.ReportMetric(t.share(2), "ns/packet")
	b.ReportMetric(t.share(20), "ns/packet-5%")
}
