package test

import (
	"encoding/json"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"weir/internal/fw/reason"
	"weir/internal/fw/view"
	"weir/internal/lab"
	"weir/test/lib"
)

// What leaves by the uplink waits in the kernel's queues, and so does what comes in by it.
const heldRules = `
queue up on wan0 bandwidth 50M engine queue
queue bulk parent up bandwidth 30M
queue voice parent up bandwidth 10M
queue rest parent up bandwidth 10M default
queue down on wan0 in bandwidth 20M engine queue
queue first parent down bandwidth 15M
queue other parent down bandwidth 5M default

set skip on lo
match out on wan0 inet from (lan0:network) nat-to (wan0)
match out on wan0 inet6 from (lan0:network) nat-to (wan0:0)
pass
pass out on wan0 proto tcp to port 5201 set queue bulk
pass out on wan0 proto tcp to port 5202 set queue voice
pass out on wan0 proto tcp to port 5203 set queue first
`

//	lan ──▶ fw: HTB on wan0 ──▶ wan ══ delay line ══ far: iperf3 -s
//	    ◀── HTB on weir-inN ◀──
//
// An administrator's qdiscs are named and left alone. Without them the kernel holds the packets of
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
		b.Tell("beside the administrator's IFB", heldForeign)

		daemon := b.WeirRun(heldRules, "--steer")
		for _, port := range []uint16{5201, 5202, 5203} {
			b.Listen(lib.Far, port, "iperf3", "-s", "-p", strconv.Itoa(int(port)))
		}
		b.Tell("a thousand queues", func(b *lib.Box) { holdsAThousand(b, "queue") })
		b.Weir("load", b.Rules(heldRules))
		b.Tell("alone", heldAlone)
		b.Tell("weights", shapedByWeight)
		b.Tell("coming in", heldIncoming)
		b.Tell("another rate", heldAnew)
		b.Tell("removed by somebody", func(b *lib.Box) { heldRemoved(b, daemon) })
		daemon.Kill()
		b.Tell("without a daemon", func(b *lib.Box) {
			carries(b, "up", 10e6*payload, "-p", "5202", "-t", "5", "-O", "2")
			carries(b, "down", 8e6*payload, "-p", "5202", "-t", "4", "-O", "1", "-R")
		})
		b.Weir("stop")
		if after := qdiscs(b); after != before {
			b.Errorf("the qdiscs were\n%sand are after weir stop\n%s", before, after)
		}
		if devices := b.Run(lab.FW, "ip", "-br", "link", "show", "type", "ifb"); strings.Contains(devices, "weir") || !strings.Contains(devices, "ifb0") {
			b.Errorf("weir stop leaves these devices:\n%s", devices)
		}
	})
}

// heldForeign has an administrator's own set-up for what comes in. Its device stays until the end.
func heldForeign(b *lib.Box) {
	b.IP(lab.FW, "link add ifb0 type ifb", "link set ifb0 up")
	b.Run(lab.FW, "tc", "qdisc", "add", "dev", "wan0", "handle", "ffff:", "ingress")
	foreign := qdiscs(b)
	if out, status := b.WeirStatus("run", "-f", b.Rules(heldRules)); status == 0 || !strings.Contains(out, "wan0 has the qdisc ingress ffff:") {
		b.Errorf("beside the administrator's IFB weir run ends with status %d:\n%s", status, out)
	}
	if now := qdiscs(b); now != foreign {
		b.Errorf("the administrator's qdiscs were\n%sand are\n%s", foreign, now)
	}
	b.Run(lab.FW, "tc", "qdisc", "del", "dev", "wan0", "ingress")
}

// heldIncoming downloads with IPv4 and IPv6, for a host behind the box and for the box itself.
func heldIncoming(b *lib.Box) {
	carriesTo(b, lab.LAN, lib.FarHost6, "IPv6", 20e6*1428/1538, "-p", "5203", "-t", "4", "-O", "1", "-R")
	carriesTo(b, lab.FW, lib.FarHost, "the box", 20e6*payload, "-p", "5201", "-t", "4", "-O", "1", "-R")
	other := make(chan float64)
	go func() { other <- iperf3Rate(b, "-p", "5201", "-t", "5", "-O", "2", "-R") }()
	most := iperf3Rate(b, "-p", "5203", "-t", "5", "-O", "2", "-R")
	least := <-other
	isRate(b, "both", 20e6*payload, most+least)
	if ratio := most / least; ratio < 2 || ratio > 4 {
		b.Errorf("queues of 15 and 5 Mbit/s give %.3g and %.3g bit/s", most, least)
	}
	b.Ping(lab.LAN, lib.FarHost, 5)
	b.Ping(lab.LAN, lib.FarHost6, 5)
	if b.Packets("wan0", reason.UpDevice) == 0 {
		b.Errorf("nothing that came in has gone to the stack:\n%s", b.Weir("info"))
	}
}

// qdiscs returns those of wan0.
func qdiscs(b *lib.Box) string { return b.Run(lab.FW, "tc", "qdisc", "show", "dev", "wan0") }

func heldAlone(b *lib.Box) {
	carries(b, "up", 50e6*payload, "-p", "5201", "-t", "5", "-O", "2")
	var shown view.Queues
	if err := json.Unmarshal([]byte(b.Weir("queues", "--json")), &shown); err != nil {
		b.Fatal(err)
	}
	if rtt := shown.Trees[0].Queues[1].RTT; rtt.Samples < 10 || rtt.Median < 15 || rtt.Median > 1000 { // of the last 8 to 16 s
		b.Errorf("beyond a line of 15 ms the median of %d round-trip times is %.1f ms", rtt.Samples, rtt.Median)
	}
	carries(b, "down", 20e6*payload, "-p", "5203", "-t", "5", "-O", "2", "-R")
	heldInOrder(b)
	if b.Hook == "xdp" && b.Packets("lan0", reason.UpDevice) == 0 {
		b.Errorf("XDP has sent nothing to the stack:\n%s", b.Weir("info"))
	}
	shown = view.Queues{}
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
	if first := down.Queues[1]; down.Engine != "queue" || !strings.HasPrefix(down.Device, "weir-in") || first.Name != "first" || first.Sent < 10e6 || down.Queues[2].Sent > first.Sent/4 {
		b.Errorf("weir queues shows %+v", down)
	}
	if runtime.NumCPU() > 1 && (up.Core == "" || down.Core == "" || up.Core == down.Core) {
		b.Errorf("the cores %q and %q go on with the packets of two lines", up.Core, down.Core)
	}
	if text := b.Weir("queues"); !strings.Contains(text, "wan0 out: engine queue ("+up.Holds+")") {
		b.Errorf("weir queues prints\n%s", text)
	}
}

// heldInOrder sends datagrams: all that another core goes on with arrive in their order.
func heldInOrder(b *lib.Box) {
	var report struct {
		End struct {
			Streams []struct {
				UDP struct {
					Packets    int `json:"packets"`
					Lost       int `json:"lost_packets"`
					OutOfOrder int `json:"out_of_order"`
				} `json:"udp"`
			} `json:"streams"`
		} `json:"end"`
	}
	b.Until(20*time.Second, "iperf3 sends", func() bool { // its server may still be busy with the test before
		out, _ := b.Try(lab.LAN, "iperf3", "-c", slowHost, "-p", "5203", "-u", "-b", "6M", "-l", "500", "-t", "2", "-J") //nolint:errcheck // out says so
		return json.Unmarshal([]byte(out), &report) == nil && len(report.End.Streams) > 0
	})
	if u := report.End.Streams[0].UDP; u.Packets < 1000 || u.Lost > u.Packets/50 || u.OutOfOrder > 0 {
		b.Errorf("of %d datagrams %d are lost, %d out of order", u.Packets, u.Lost, u.OutOfOrder)
	}
}

// A load with other rates changes the classes, and packets that wait stay.
func heldAnew(b *lib.Box) {
	leaf := func() string {
		return strings.Fields(b.Run(lab.FW, "tc", "qdisc", "show", "dev", "wan0", "parent", "7766:2"))[2]
	}
	before := leaf()
	b.Weir("load", b.Rules(strings.Replace(heldRules, "wan0 bandwidth 50M", "wan0 bandwidth 10M", 1)))
	b.Weir("qos", "rate", "wan0", "in", "8M")
	if now := leaf(); now != before {
		b.Errorf("another rate has replaced the queue %s by %s", before, now)
	}
	carries(b, "anew", 10e6*payload, "-p", "5201", "-t", "4", "-O", "1")
	carries(b, "anew in", 8e6*payload, "-p", "5203", "-t", "4", "-O", "1", "-R")
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

// What somebody removes under traffic is set up again, and the daemon says so. Another qdisc in its
// place stays, and packets are counted until it is gone.
func heldRemoved(b *lib.Box, daemon *lib.Process) {
	waits := func() string {
		links := strings.Fields(b.Run(lab.FW, "ip", "-br", "link", "show", "type", "ifb"))
		return links[slices.IndexFunc(links, func(word string) bool { return strings.HasPrefix(word, "weir-in") })]
	}
	is := func(device, what string) {
		b.Helper()
		b.Until(10*time.Second, device+" has "+what, func() bool {
			out, err := b.Try(lab.FW, "tc", "qdisc", "show", "dev", device)
			return err == nil && strings.Contains(out, what)
		})
	}
	up := make(chan float64)
	go func() { up <- iperf3Rate(b, "-p", "5202", "-t", "8") }()
	for _, command := range []string{"tc qdisc del dev wan0 root", "tc class del dev wan0 classid 7766:4", "tc qdisc del dev wan0 parent 7766:3"} {
		said := strings.Count(daemon.Said(), "they are set up again")
		b.Run(lab.FW, strings.Fields(command)[0], strings.Fields(command)[1:]...)
		b.Until(10*time.Second, "what was removed is back after "+command, func() bool {
			return strings.Count(daemon.Said(), "they are set up again") > said
		})
		is("wan0", "parent 7766:4")
		is("wan0", "parent 7766:3")
	}
	b.IP(lab.FW, "link del "+waits())
	b.AwaitSaid(daemon, "device=weir-in")
	b.Until(10*time.Second, "packets come in again", func() bool {
		_, err := b.Try(lab.LAN, "ping", "-n", "-c", "1", "-W", "1", slowHost)
		return err == nil
	})
	if rate := <-up; rate > 1.2*10e6 {
		b.Errorf("while queues were removed a line of 10 Mbit/s carried %.3g bit/s", rate)
	}
	carries(b, "up", 10e6*payload, "-p", "5202", "-t", "4", "-O", "1")
	carries(b, "down", 8e6*payload, "-p", "5203", "-t", "4", "-O", "1", "-R")
	b.Run(lab.FW, "tc", "qdisc", "replace", "dev", "wan0", "root", "handle", "5:", "bfifo", "limit", "1000000")
	b.AwaitSaid(daemon, "wan0 has the qdisc bfifo 5:")
	carries(b, "counted", 10e6*payload, "-p", "5202", "-t", "4", "-O", "1")
	b.Run(lab.FW, "tc", "qdisc", "del", "dev", "wan0", "root")
	is("wan0", "tbf 7765:")
}
