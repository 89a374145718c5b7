package test

import (
	"fmt"
	"strings"
	"testing"

	"weir/internal/fw/reason"
	"weir/internal/lab"
	"weir/test/lib"
)

// pings sends echo requests from the LAN, and returns how many are answered.
func pings(b *lib.Box, n int) int {
	b.Helper()
	out, _ := b.Try(lab.LAN, "ping", "-n", "-q", "-i", "0.01", "-W", "1", "-c", fmt.Sprint(n), fwLAN)
	_, line, _ := strings.Cut(out, "statistics ---\n")
	var sent, answered int
	if _, err := fmt.Sscanf(line, "%d packets transmitted, %d received", &sent, &answered); err != nil || sent != n {
		b.Fatalf("ping has not sent %d packets:\n%s", n, out)
	}
	return answered
}

//	lan ── ping 40 times in half a second, curl ──▶ fw: pass … max-pkt-rate 20/300
//
// The packets beyond the rate are dropped, those of the state included, and others are not.
// The count stays when the rules are loaded again and when the daemon is killed.
func TestPacketRate(t *testing.T) {
	weir.UnderTCX(t, func(b *lib.Box) {
		const rules = "block\npass in on lan0 proto tcp to port 8000\npass in on lan0 inet proto icmp max-pkt-rate 20/300\n"
		b.ServeHello(lab.FW, 8000)
		daemon := b.WeirRun(b.Rules(rules))
		if n := pings(b, 40); n != 20 {
			b.Errorf("%d of 40 echo requests are answered, not 20", n)
		}
		if n := b.Packets("lan0", reason.MaxPktRate); n != 20 {
			b.Errorf("%d packets are counted as max-pkt-rate, not 20", n)
		}
		b.Run(lab.LAN, "curl", "-s", "-m", "2", fmt.Sprintf("http://%s:8000/", fwLAN))
		b.Weir("load", b.Rules("block in on lan0 proto udp\n"+rules))
		if n := pings(b, 5); n > 1 {
			b.Errorf("after a load %d of 5 more are answered", n)
		}
		daemon.Kill()
		if n := pings(b, 5); n > 1 {
			b.Errorf("without a daemon %d of 5 more are answered", n)
		}
	})
}
