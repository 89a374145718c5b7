package dataplane

import (
	"testing"
	"time"

	"weir/internal/fw/bpfload"
)

// The cost of logging for a packet, and for packets of other rules: blocked incoming
// packets, and packets of a state that the box sends.
func BenchmarkLog(b *testing.B) {
	const repeat = 200_000
	const others = "block log quick proto tcp to port 9\nmatch log (all) proto tcp to port 10\n"
	for _, c := range []struct {
		name, rules string
		out, read   bool // otherwise the ring is full
	}{
		{"block", "block quick proto udp to port 53\npass", false, true},
		{"block-others-log", others + "block quick proto udp to port 53\npass", false, true},
		{"block-log", "block log quick proto udp to port 53\npass", false, true},
		{"block-log-full", "block log quick proto udp to port 53\npass", false, false},
		{"state", "pass", true, true},
		{"state-others-log", others + "pass", true, true},
		{"state-log-all", "pass log (all)", true, true},
		{"state-log-all-full", "pass log (all)", true, false},
	} {
		b.Run(c.name, func(b *testing.B) {
			h := newHarness(b, c.rules)
			ring := must(h.dp.OpenRing(LogRing))(b)
			defer ring.Close()
			_, came := h.arrive("lan", "udp 192.168.1.10:4000 > 203.0.113.1:53")
			own := parsePkt("udp 203.0.113.2:4000 > 203.0.113.1:53").frame(wan0MAC, wanHostMAC)
			h.dp.SetRecording(LogRing, true)
			done := make(chan struct{})
			go func() {
				defer close(done)
				for c.read && ring.Read(time.Millisecond, func(Record) {}) == nil { //nolint:revive // until the ring is closed
				}
			}()
			times := func() time.Duration {
				began := time.Now()
				if c.out {
					_, err := bpfload.RunTC(h.program("weir_tc_out"), bpfload.Run{Frame: own, Ifindex: h.net.wan0, Repeat: repeat})
					check(b, err)
				} else {
					_, err := bpfload.RunXDP(h.program("weir_xdp"), bpfload.Run{Frame: came, Ifindex: h.net.lan0, Repeat: repeat})
					check(b, err)
				}
				return time.Since(began)
			}
			least := time.Hour
			for b.Loop() {
				least = min(least, times())
			}
			b.ReportMetric(float64(least)/repeat, "ns/packet")
			b.ReportMetric(0, "ns/op")
			if c.read {
				check(b, ring.ring.Close())
			}
			<-done
		})
	}
}
