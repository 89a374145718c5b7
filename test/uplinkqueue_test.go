package test

import (
	"testing"
	"time"

	"weir/internal/fw/view"
	"weir/internal/lab"
	"weir/test/lib"
)

// uplinkQueueRules send what the box sends by the second uplink, where the kernel holds packets.
const uplinkQueueRules = `
queue up on wan1 bandwidth 8M engine queue
queue first parent up bandwidth 6M
queue rest parent up bandwidth 2M default
set skip on lo
block
pass out on tun0 inet route-to (wan1 192.0.2.1)
pass out on wan1
pass out on wan1 inet proto udp to port 5201 set queue first
`

//	fw: the route says tun0, a rule says wan1 ── isp
//
// Packets of the box keep their queue if a rule sends them by another uplink than their route, from a device without
// Ethernet headers, too.
func TestQueueOfAnotherUplink(t *testing.T) {
	weir.BothUplinks(t, func(b *lib.Box) {
		b.Tunnel(lab.FW, "tun0", lib.ISP, "tun0")
		b.Address(lab.FW, "tun0", "10.8.0.1/24")
		b.Address(lib.ISP, "tun0", "10.8.0.2/24")
		b.IP(lab.FW, "route replace "+lib.FarHost+" via 10.8.0.2")
		b.Listen(lib.ISP, 5201, "iperf3", "-s", "-B", lib.FarHost, "-p", "5201")
		b.WeirRun(uplinkQueueRules)
		b.Until(10*time.Second, "iperf3 sends", func() bool {
			_, err := b.Try(lab.FW, "iperf3", "-c", lib.FarHost, "-B", lib.FWISP, "-p", "5201", "-u", "-b", "2M", "-l", "1000", "-t", "1")
			return err == nil
		})
		trees := lib.WeirJSON[view.Queues](b, "queues", "--json").Trees
		if len(trees) != 1 || len(trees[0].Queues) != 3 || trees[0].Engine != "queue" {
			b.Fatalf("the queues: %+v", trees)
		}
		if first, rest := trees[0].Queues[1], trees[0].Queues[2]; first.Sent < 100_000 || rest.Sent > first.Sent/4 {
			b.Errorf("2 Mbit/s of the box: %d bytes in their queue, %d in the default", first.Sent, rest.Sent)
		}
	})
}
