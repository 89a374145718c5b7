package dataplane

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"weir/internal/fw/bpfload"
	"weir/internal/fw/ruleset"
)

// While a load changes set implicit-pass and the rules, each packet meets either all of what was
// or all of what comes: neither of the two drops neighbour discovery, and neither forwards, as
// what one passes in, only the other passes out.
func TestLoadIsOneChange(t *testing.T) {
	h := newHarness(t, "block")
	commit(t, h.dp, nil)
	h.reset()
	sides := []string{
		"block\npass in on lan0 proto udp no state",
		"set implicit-pass no\nblock\npass in on lan0 proto icmp6 no state\npass out proto udp no state",
	}
	frames := []struct {
		packet string
		frame  []byte
		never  uint32
	}{
		{packet: "icmp6 fe80::1 > ff02::1:ff00:1 type 135 len 16 ttl 255", never: xdpDrop},
		{packet: "udp 192.168.1.10:1 > 198.51.100.9:53", never: xdpRedirect},
	}
	for i := range frames {
		frames[i].frame = parsePkt(frames[i].packet).frame(lanHostMAC, lan0MAC)
	}
	replace := func(n int) error {
		rs := h.parse(sides[n%2])
		next, err := h.dp.config.Program.Replace(rs, h.snapshot(), slices.Repeat([]int{ruleset.New}, len(rs.Rules)))
		if err != nil {
			return err
		}
		return h.dp.ReplaceRules(next, &h.dp.config.Options)
	}
	var sent, changes atomic.Int64
	var stopped atomic.Bool
	begin := time.Now()
	h.onTwoCPUs(func(cpu int) error {
		if cpu == 1 {
			defer stopped.Store(true)
			for n := 0; time.Since(begin) < 2*time.Second || n < 20 && time.Since(begin) < 20*time.Second; n++ {
				if err := replace(n); err != nil {
					if errors.Is(err, ErrNoRoom) { // indices of rules are used up
						break
					}
					return err
				}
				changes.Add(1)
			}
			return nil
		}
		for !stopped.Load() {
			for i := range frames {
				f := &frames[i]
				r, err := bpfload.RunXDP(h.program(entryXDP.name), bpfload.Run{Frame: f.frame, Ifindex: h.net.lan0})
				if err != nil {
					return err
				}
				if r.Result == f.never {
					return fmt.Errorf("%s: verdict %d after %d changes", f.packet, f.never, changes.Load())
				}
				sent.Add(1)
			}
		}
		return nil
	})
	t.Logf("%d packets during %d changes", sent.Load(), changes.Load())
	if sent.Load() < 100 || changes.Load() < 20 {
		t.Error("too few to say anything")
	}
}
