package test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"weir/internal/fw/reason"
	"weir/internal/fw/view"
	"weir/internal/lab"
	"weir/test/lib"
)

// The uplink has a modem: what leaves waits in the kernel's queues. What comes in is counted.
const heldRules = `
queue up on wan0 bandwidth 50M engine queue
queue bulk parent up bandwidth 30M
queue voice parent up bandwidth 10M
queue rest parent up bandwidth 10M default
queue down on wan0 in bandwidth 20M default modem

set skip on lo
match out on wan0 inet from (lan0:network) nat-to (wan0)
pass
pass out on wan0 proto tcp to port 5201 set queue bulk
pass out on wan0 proto tcp to port 5202 set queue voice
`

//	lan ──▶ fw: HTB on wan0 ──▶ wan ══ delay line ══ far: iperf3 -s
//
// An administrator's qdisc is named and left alone. Without it the kernel holds the packets of
// wan0, also those that XDP handles: one connection takes the whole rate, two share by weight,
// other rates change the classes in place, and all of this holds while the daemon is dead. weir
// stop leaves nothing.
func TestHeldQueues(t *testing.T) {
	weir.BothFar(t, func(b *lib.Box) {
		b.DelayLine(lab.WAN, "slow0", lib.Far, "slow0", 15*time.Millisecond)
		b.Address(lab.WAN, "slow0", "198.18.0.1/30")
		b.Address(lib.Far, "slow0", slowHost+"/30")
		b.IP(lib.Far, "route replace default via 198.18.0.1 dev slow0")
		b.IP(lab.FW, "route add 198.18.0.0/30 via "+wanHost)
		before := qdiscs(b)

		b.Run(lab.FW, "tc", "qdisc", "add", "dev", "wan0", "root", "handle", "5:", "tbf", "rate", "100mbit", "burst", "10k", "latency", "50ms")
		foreign := qdiscs(b)
		if out, status := b.WeirStatus("run", "-f", b.Rules(heldRules)); status == 0 || !strings.Contains(out, "wan0 has the qdisc tbf 5:") {
			b.Errorf("beside the administrator's qdisc weir run ends with status %d:\n%s", status, out)
		}
		if now := qdiscs(b); now != foreign {
			b.Errorf("the administrator's qdisc was\n%sand is\n%s", foreign, now)
		}
		b.Run(lab.FW, "tc", "qdisc", "del", "dev", "wan0", "root")

		daemon := b.WeirRun(heldRules)
		for _, port := range []uint16{5201, 5202, 5203} {
			b.Listen(lib.Far, port, "iperf3", "-s", "-p", strconv.Itoa(int(port)))
		}
		b.Tell("alone", heldAlone)
		b.Tell("weights", shapedByWeight)
		b.Tell("another rate", heldAnew)
		daemon.Kill()
		b.Tell("without a daemon", func(b *lib.Box) {
			isRate(b, "up", 10e6*payload, iperf3Rate(b, "-p", "5202", "-t", "5", "-O", "2"))
		})
		b.Weir("stop")
		if after := qdiscs(b); after != before {
			b.Errorf("the qdiscs were\n%sand are after weir stop\n%s", before, after)
		}
	})
}

// qdiscs returns those of wan0.
func qdiscs(b *lib.Box) string { return b.Run(lab.FW, "tc", "qdisc", "show", "dev", "wan0") }

func heldAlone(b *lib.Box) {
	isRate(b, "up", 50e6*payload, iperf3Rate(b, "-p", "5201", "-t", "5", "-O", "2"))
	isRate(b, "down", 20e6*payload, iperf3Rate(b, "-p", "5203", "-t", "5", "-O", "2", "-R"))
	if b.Hook == "xdp" && b.Packets("lan0", reason.UpDevice) == 0 {
		b.Errorf("XDP has sent nothing to the stack:\n%s", b.Weir("info"))
	}
	var shown view.Queues
	if err := json.Unmarshal([]byte(b.Weir("queues", "--json")), &shown); err != nil {
		b.Fatal(err)
	}
	up, down := &shown.Trees[0], &shown.Trees[1]
	if bulk := up.Queues[1]; up.Engine != "queue" || up.Holds == "" || bulk.Name != "bulk" || bulk.Sent < 30e6 || up.Queues[0].Sent < bulk.Sent {
		b.Errorf("weir queues shows %+v", up)
	}
	if rest := up.Queues[3]; rest.Sent == 0 || rest.Sent > up.Queues[1].Sent/4 {
		b.Errorf("acknowledgements and the like are not in the default queue: %+v", rest)
	}
	if down.Engine != "phantom" || down.Why == "" || down.Queues[0].Sent < 10e6 {
		b.Errorf("weir queues shows %+v", down)
	}
	if text := b.Weir("queues"); !strings.Contains(text, "wan0 out: engine queue ("+up.Holds+"): the file says so") {
		b.Errorf("weir queues prints\n%s", text)
	}
}

// A load with other rates changes the classes, and packets that wait stay.
func heldAnew(b *lib.Box) {
	leaf := func() string {
		return strings.Fields(b.Run(lab.FW, "tc", "qdisc", "show", "dev", "wan0", "parent", "7766:2"))[2]
	}
	before := leaf()
	b.Weir("load", b.Rules(strings.Replace(heldRules, "wan0 bandwidth 50M", "wan0 bandwidth 10M", 1)))
	if now := leaf(); now != before {
		b.Errorf("another rate has replaced the queue %s by %s", before, now)
	}
	isRate(b, "anew", 10e6*payload, iperf3Rate(b, "-p", "5201", "-t", "4", "-O", "1"))
	root := func() string { return b.Run(lab.FW, "tc", "class", "show", "dev", "wan0", "classid", "7766:1") }
	b.Weir("qos", "rate", "wan0", "20M")
	if is := root(); !strings.Contains(is, "ceil 20Mbit") {
		b.Errorf("at 20M the kernel has\n%s", is)
	}
	b.Weir("qos", "rate", "wan0", "rules")
	if is := root(); !strings.Contains(is, "ceil 10Mbit") {
		b.Errorf("at the rate of the rules the kernel has\n%s", is)
	}
}
