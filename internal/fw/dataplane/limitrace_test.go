package dataplane

import (
	"fmt"
	"testing"
	"time"

	"weir/internal/fw/bpfload"
)

// Two cores open the same connections of the same sources, while the garbage collection
// ends states and forgets sources as fast as it can. No limit is exceeded, and in the end
// every count is 0: what leaked would keep sources out for ever.
func TestLimitsRace(t *testing.T) {
	const rounds, connections = 4, 4000
	h := newHarness(t, "set limit { states 9000, src-nodes 300 }\nset timeout { udp.first 1, src.track 0 }\n"+
		"pass in proto udp keep state (max 3000, max-src-nodes 40, max-src-states 50, source-track rule)\npass out proto udp keep state (source-track global)",
		func(c *Config) { c.Frozen = false })
	check(t, h.dp.startGC())
	limit := &h.dp.tables.limits[must(h.dp.View().RuleLimits())(t)[0]]
	for range rounds {
		h.onTwoCPUs(func(_ int) error {
			for i := range connections {
				text := fmt.Sprintf("udp 192.168.1.%d:%d > 198.51.100.9:53", 10+i%60, 1000+i)
				run := bpfload.Run{Frame: parsePkt(text).frame(lanHostMAC, lan0MAC), Ifindex: h.net.lan0}
				if _, err := bpfload.RunXDP(h.program("weir_xdp"), run); err != nil {
					return err
				}
				h.dp.Heartbeat()
			}
			return nil
		})
		for s := range h.dp.View().Sources() {
			if s.Limit != 0 && s.States > 50+2 {
				t.Errorf("%s has %d states, the limit is 50", s.Addr, s.States)
			}
		}
		if limit.States > 3000+2 || limit.Nodes > 40+2 {
			t.Errorf("the rule has %d states and %d sources", limit.States, limit.Nodes)
		}
	}
	if h.dp.tables.shared.StatesMade == 0 || h.dp.tables.shared.Sources == 0 {
		t.Fatal("nothing was made")
	}
	h.waitEmpty()
	s := h.dp.tables.shared
	for until := time.Now().Add(5 * time.Second); s.Sources != 0 && time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
	}
	if texts := h.sourceTexts(); texts != "" || s.Sources != 0 || h.limitTexts() != "0 0; 0 0" {
		t.Errorf("%d sources are left (%s), limits count %s", s.Sources, texts, h.limitTexts())
	}
	var key xdpSourceKey
	for all := h.dp.tables.maps[mapSourceIndex].Iterate(); all.Next(&key, new(uint32)); {
		t.Errorf("the index still has %s", key.Addr.addr())
	}
}
