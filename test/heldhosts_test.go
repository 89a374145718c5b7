package test

import (
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/lab"
	"weir/internal/testenv"
	"weir/test/lib"
)

// hostRules have the kernel hold the packets of hosts behind translation, and share the line among them.
const hostRules = `
queue up on wan0 bandwidth 2M engine queue fair host-flow default
queue down on wan0 in bandwidth 2M engine queue fair host-flow default
set skip on lo
match out on wan0 inet from (lan0:network) nat-to (wan0)
pass
`

//	lan: a host with one connection  ──▶ fw: nat-to, CAKE on wan0 ──▶ wan: iperf3 -s
//	     another one with eight      ◀── CAKE on weir-inN ◀──
//
// Each of two hosts gets half of the line, both ways, although the way out is behind translation; also
// while the daemon is dead. Without what tells the queue which host a packet is of, connections share.
func TestHeldHosts(t *testing.T) {
	weir.BothAtOnce(t, func(b *lib.Box) {
		if exec.Command("modprobe", "--quiet", "sch_cake").Run() != nil {
			testenv.SkipOutside(b, "this kernel has no CAKE; the emulated one has")
		}
		b.Address(lab.LAN, "eth0", secondHost+"/24")
		for _, port := range []string{"5201", "5202"} {
			b.Listen(lab.WAN, 5201+uint16(port[3]-'1'), "iperf3", "-s", "-p", port)
		}
		daemon := b.WeirRun(hostRules)
		if text := b.Weir("queues"); !strings.Contains(text, "wan0 out: engine queue (cake)") {
			b.Fatalf("weir queues prints\n%s", text)
		}
		b.Tell("up", func(b *lib.Box) { hostsShare(b, wanHost, 0.35, 0.65) })
		b.Tell("down", func(b *lib.Box) { hostsShare(b, wanHost, 0.35, 0.65, "-R") })
		b.Tell("set up again", func(b *lib.Box) {
			isThere := func() bool { return strings.Contains(hostFilter(b), "weir_queue_host") }
			b.Run(lab.FW, "tc", "qdisc", "del", "dev", "wan0", "parent", "7766:1")
			b.AwaitSaid(daemon, "they are set up again")
			b.Until(10*time.Second, "a new queue has a filter", isThere)
			b.Run(lab.FW, "tc", "filter", "del", "dev", "wan0", "parent", hostQueue(b))
			b.AwaitSaid(daemon, "it is set up again")
			b.Until(10*time.Second, "the queue has a filter again", isThere)
		})
		daemon.Kill()
		b.Tell("without a daemon", func(b *lib.Box) { hostsShare(b, wanHost, 0.35, 0.65) })
		b.Tell("nobody tells", func(b *lib.Box) {
			b.Run(lab.FW, "tc", "filter", "del", "dev", "wan0", "parent", hostQueue(b))
			hostsShare(b, wanHost, 0, 0.3)
		})
	})
}

// hostQueue returns the handle of the queue that holds what leaves.
func hostQueue(b *lib.Box) string {
	b.Helper()
	return strings.Fields(b.Run(lab.FW, "tc", "qdisc", "show", "dev", "wan0", "parent", "7766:1"))[2]
}

func hostFilter(b *lib.Box) string {
	b.Helper()
	return b.Run(lab.FW, "tc", "filter", "show", "dev", "wan0", "parent", hostQueue(b))
}

// hostsShare has one host send by one connection and another by eight, and checks the part of the first.
func hostsShare(b *lib.Box, to string, least, most float64, args ...string) {
	b.Helper()
	var rates [2]float64
	var both sync.WaitGroup
	for i, own := range [][]string{{"-p", "5201", "-B", lanHost}, {"-p", "5202", "-B", secondHost, "-P", "8"}} {
		both.Go(func() {
			// iperf3 counts a block when it is whole.
			rates[i] = runIperf3(b, lab.LAN, to, append(append(own, "-t", "5", "-O", "2", "-l", "1000"), args...)...).rate()
		})
	}
	both.Wait()
	part := rates[0] / (rates[0] + rates[1])
	if b.Logf("%.3g and %.3g bit/s", rates[0], rates[1]); part < least || part > most {
		b.Errorf("a host with one connection of nine has %.2f of the line, want %.2f to %.2f", part, least, most)
	}
}
