package test

import (
	"fmt"
	"testing"
	"time"

	"weir/internal/lab"
	"weir/test/lib"
)

//	lan ── fw ══ wg0 ══ wan, a weir as well
//
// Each end's address changes under traffic both ways. The other end follows it with the next message, by one port and by four, and
// connections live on.
func TestVPNRoaming(t *testing.T) {
	for name, width := range map[string]string{"one port": "", "four ports": "wide 4"} {
		t.Run(name, func(t *testing.T) {
			weir.UnderTCX(t, func(b *lib.Box) { roam(b, width) })
		})
	}
}

func roam(b *lib.Box, width string) {
	b.Helper()
	_, _, rulesWith := twoSites(b, width)
	b.Weir("load", b.Rules(rulesWith(width)+"pass in on wan0 inet proto udp from any port 51821:51824 to port 51820:51823\n"))
	if width != "" {
		b.Until(15*time.Second, "four ports are used", func() bool { return usedPorts(b) == 4 })
	}
	length := lib.Scaled(16 * time.Second).Round(time.Second)
	b.Listen(lab.WAN, 5201, "iperf3", "-s")
	client := b.Start(lab.LAN, "iperf3", "-c", tunnelFar, "-P", "8", "--bidir", "-b", "1M", "-t", fmt.Sprint(length.Seconds()), "-i", "0.25", "-J")
	time.Sleep(2 * time.Second)
	follows := func(what string, move func()) {
		b.Helper()
		began := time.Now()
		move()
		b.Until(10*time.Second, "the tunnel works after "+what, func() bool { return tunnelAnswers(b, lab.LAN, tunnelFar) })
		took := time.Since(began)
		if b.Logf("after %s: %v", what, took); took > lib.Scaled(3*time.Second) {
			b.Error("that is too late")
		}
		time.Sleep(2 * time.Second)
	}
	const near, far = "203.0.113.77", "203.0.113.99"
	follows("another address here", func() {
		b.IP(lab.FW, "address del 203.0.113.2/24 dev wan0", "address add "+near+"/24 dev wan0", "route replace default via "+wanHost+" dev wan0")
	})
	follows("another address there", func() {
		b.IP(lab.WAN, "address del "+wanHost+"/24 dev eth0", "address add "+far+"/24 dev eth0")
	})
	if e := tunnelOf(b).Peers[0].Endpoint; fmt.Sprint(e.Addr()) != far {
		b.Errorf("the endpoint is %v, want %s", e, far)
	}
	client.Wait(length+25*time.Second, 0)
	worst := 0
	for socket, bytes := range connections(b, client.Said()) {
		pause := 0
		for _, n := range bytes {
			if pause++; n > 0 {
				pause = 0
			}
			worst = max(worst, pause)
		}
		last := bytes[max(0, len(bytes)-12):]
		sum := uint64(0)
		for _, n := range last {
			sum += n
		}
		if sum == 0 {
			b.Errorf("connection %d does not go on: %v", socket, bytes)
		}
	}
	b.Logf("a connection stood still for %d quarters of a second", worst)
	if time.Duration(worst)*time.Second/4 > lib.Scaled(4*time.Second) {
		b.Error("that is too long")
	}
	if width != "" && usedPorts(b) != 4 {
		b.Errorf("%d ports are used", usedPorts(b))
	}
}
