package test

import (
	"fmt"
	"strings"
	"sync"
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
		b.Tell("two at once", twoLinesAtOnce)
		b.Tell("only in dummynet", refusesDummynet)
	})
}

// refusesDummynet loads a pipe with a delay, which no queue here has. The rules of before stay.
func refusesDummynet(b *lib.Box) {
	before := len(lib.WeirJSON[view.Queues](b, "queues", "--json").Trees)
	said, status := b.WeirStatus("load", b.Rules("pipe 1 config bw 5Mbit/s delay 20ms\npass in on wan1 dnpipe 1\n"))
	if status == 0 || !strings.Contains(said, ":1:26: this version does not enforce delay of dummynet; tc-netem(8) does it on the interface") {
		b.Errorf("a pipe with a delay is loaded with status %d:\n%s", status, said)
	}
	if trees := lib.WeirJSON[view.Queues](b, "queues", "--json").Trees; len(trees) != before {
		b.Errorf("after a load that was refused there are %d trees of queues, before %d", len(trees), before)
	}
}

// twoLines have other rates in each direction.
const twoLines = `
queue up0 on wan0 bandwidth 20M default
queue down0 on wan0 in bandwidth 12M default
queue up1 on wan1 bandwidth 8M default
queue down1 on wan1 in bandwidth 30M default
set skip on lo
match out on wan0 inet from (lan0:network) nat-to (wan0)
match out on wan1 inet from (lan0:network) nat-to (wan1)
pass
`

// twoLinesAtOnce fills two lines at the same time, in one direction and then in the other. Each keeps its own rate.
func twoLinesAtOnce(b *lib.Box) {
	b.Weir("load", b.Rules(twoLines))
	b.Listen(lab.WAN, 5202, "iperf3", "-s", "-B", wanHost, "-p", "5202")
	b.Listen(lib.ISP, 5202, "iperf3", "-s", "-B", lib.ISPHost, "-p", "5202")
	for _, way := range []struct {
		flags []string
		rates [2]float64
	}{{nil, [2]float64{20e6, 8e6}}, {[]string{"-R"}, [2]float64{12e6, 30e6}}} {
		var both sync.WaitGroup
		for i, to := range []string{wanHost, lib.ISPHost} {
			both.Go(func() {
				flags := append([]string{"-p", "5202", "-P", "4", "-C", "cubic", "-t", "7", "-O", "1", "-l", "8000"}, way.flags...)
				carriesTo(b, lab.LAN, to, fmt.Sprintf("wan%d %v", i, way.flags), way.rates[i]*payload, flags...)
			})
		}
		both.Wait()
	}
}
