package test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"weir/internal/fw/control"
	"weir/internal/fw/view"
	"weir/internal/lab"
	"weir/test/lib"
)

// pppoeQueueRules has queues at ppp0, or at the interface below.
const pppoeQueueRules = `pppoe ppp0 on wan0 user me password file "%[1]s"
queue up on %[2]s bandwidth 8M%[3]s default
queue down on %[2]s in bandwidth 4M%[3]s default
set gateway %[4]s monitor ping
match out on ppp0 inet from (lan0:network) nat-to (ppp0)
block
pass in on lan0
pass in on lan0 inet proto tcp route-to (ppp0 %[4]s)
pass out on lan0 from self
pass out on ppp0
`

//	lan ── lan0 fw wan0 ══ ppp0 in a PPPoE session ══ wan, a concentrator
//
// Queues at a PPPoE interface, and at the one below it, count the frames of the session or hold them, both
// ways. A gateway behind the session is watched, and rules choose it.
func TestPPPoEQueues(t *testing.T) {
	weir.Both(t, func(b *lib.Box) {
		p, password := b.Provider(1492)
		b.IP(lab.FW, "route del default", "-6 route del default")
		rules := func(device, options string) string {
			return b.Rules(fmt.Sprintf(pppoeQueueRules, password, device, options, lib.ProviderPeer))
		}
		b.Listen(lab.WAN, 5201, "iperf3", "-s", "-p", "5201")
		b.WeirRun(rules("ppp0", ""))
		p.Await(awaitPPPoE(b, control.PPPoEUp).Session)
		gatewayIs(b, "up", "ppp0")
		pppoeLineBytes(b)
		pppoeRates(b, "at ppp0")
		b.Weir("load", rules("ppp0", " engine queue"))
		pppoeRates(b, "at ppp0, held")
		b.Weir("load", rules("wan0", " overhead 46"))
		pppoeLineBytes(b)
		pppoeRates(b, "at wan0")
		b.Weir("load", rules("wan0", " overhead 46 engine queue"))
		pppoeRates(b, "at wan0, held")
		b.Tell("classes", func(b *lib.Box) { pppoeClasses(b, password) })
		b.Weir("load", rules("wan0", " overhead 46 engine queue"))
		b.Weir("pppoe", "down", "ppp0")
		awaitPPPoE(b, control.PPPoEDown)
		gatewayIs(b, "down", "")
		b.Weir("pppoe", "reconnect", "ppp0")
		p.Await(awaitPPPoE(b, control.PPPoEUp).Session)
		b.Ping(lab.LAN, lib.ProviderPeer, 3)
	})
}

// pppoeClassRules have two queues below what the kernel holds at wan0.
const pppoeClassRules = `pppoe ppp0 on wan0 user me password file "%s"
queue up on wan0 bandwidth 8M overhead 46 engine queue
queue first parent up bandwidth 6M
queue rest parent up bandwidth 2M default
match out on ppp0 inet from (lan0:network) nat-to (ppp0)
block
pass in on lan0
pass out on lan0 from self
pass out on ppp0
pass out on ppp0 proto udp to port 5201 set queue first
`

// pppoeClasses checks that packets keep their queue on their way from ppp0 to wan0, forwarded ones and the box's own.
func pppoeClasses(b *lib.Box, password string) {
	b.Weir("load", b.Rules(fmt.Sprintf(pppoeClassRules, password)))
	for _, host := range []string{lab.LAN, lab.FW} {
		b.Until(10*time.Second, "iperf3 sends", func() bool { // its server may be busy with the one before
			_, err := b.Try(host, "iperf3", "-c", lib.ProviderPeer, "-p", "5201", "-u", "-b", "2M", "-l", "1000", "-t", "1")
			return err == nil
		})
		tree := lib.WeirJSON[view.Queues](b, "queues", "--json").Trees[0]
		if first, rest := tree.Queues[1], tree.Queues[2]; tree.Engine != "queue" || first.Sent < 200_000 || rest.Sent > first.Sent/4 {
			b.Errorf("2 Mbit/s of %s: %d bytes in their queue, %d in the default", host, first.Sent, rest.Sent)
		}
	}
}

// pppoeLineBytes compares what a queue has counted with what the frames take on the line.
func pppoeLineBytes(b *lib.Box) {
	b.Helper()
	sent := func() uint64 {
		var shown view.Queues
		if err := json.Unmarshal([]byte(b.Weir("queues", "--json")), &shown); err != nil {
			b.Fatal(err)
		}
		for _, tree := range shown.Trees {
			if !tree.In {
				return tree.Queues[0].Sent
			}
		}
		b.Fatalf("no queue: %+v", shown)
		return 0
	}
	const packets, size = 50, 528
	before := sent()
	b.Run(lab.LAN, "ping", "-n", "-c", fmt.Sprint(packets), "-i", "0.01", "-W", "2", "-s", fmt.Sprint(size-28), lib.ProviderPeer)
	// The daemon pings the gateway once a second, with 40 bytes.
	if got := sent() - before; got < packets*(size+46) || got > packets*(size+46)+5*(40+46) {
		b.Errorf("%d frames with packets of %d bytes count %d bytes on the line, want %d", packets, size, got, packets*(size+46))
	}
}

// pppoeRates sends more than the queues let through, both ways, by a host behind the box. TCP needs a longer way
// than this one, or queues that hold packets.
func pppoeRates(b *lib.Box, what string) {
	b.Helper()
	const payload = 1400.0 / (1428 + 46)
	flood := []string{"-p", "5201", "-t", "3", "-u", "-b", "12M", "-l", "1400"}
	carriesTo(b, lab.LAN, lib.ProviderPeer, what+", out", 8e6*payload, flood...)
	carriesTo(b, lab.LAN, lib.ProviderPeer, what+", in", 4e6*payload, append(flood, "-R")...)
}

// gatewayIs waits until weir says that about the provider's gateway.
func gatewayIs(b *lib.Box, state, by string) {
	b.Helper()
	b.Until(lib.StartPatience, "the gateway is "+state, func() bool {
		return slices.ContainsFunc(lib.WeirJSON[[]control.Gateway](b, "gateways"), func(g control.Gateway) bool {
			return g.Address.String() == lib.ProviderPeer && g.State == state && (by == "" || g.Interface == by)
		})
	})
}
