package test

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"weir/internal/fw/reason"
	"weir/internal/fw/view"
	"weir/internal/lab"
	"weir/test/lib"
)

// heldLine has the kernel hold what leaves by a device and what comes in by it.
const heldLine = `
queue %[1]s-out on %[1]s bandwidth 8M engine queue
queue %[1]s-bulk parent %[1]s-out bandwidth 6M
queue %[1]s-rest parent %[1]s-out bandwidth 2M default
queue %[1]s-in on %[1]s in bandwidth 4M engine queue default
`

//	lan ══ wire ══ fw ══ tun, VLAN ══ wan
//
// The kernel holds packets at devices with and without Ethernet headers and at VLAN devices, in the
// best queues that it has: fq_codel, if it has that. They go through at the rate of the line, IPv4 and
// IPv6, translated or not. weir stop leaves nothing.
func TestHeldDevices(t *testing.T) {
	t.Parallel()
	b := weir.Box(t, "xdp")
	media := []lib.Medium{lib.Wire, lib.Tunnel}
	if lib.Has(lib.VLAN) {
		media = append(media, lib.VLAN)
	}
	lan, wan := b.Paths(media...)
	rules := ""
	for i := range wan {
		rules += fmt.Sprintf(heldLine, wan[i].Device)
	}
	rules += rulesFor(lan, wan)
	before := b.Run(lab.FW, "tc", "qdisc", "show")
	b.WeirRun(rules, "--steer")
	want := "bfifo"
	if exec.Command("modprobe", "--quiet", "sch_fq_codel").Run() == nil {
		want = "fq_codel"
	}
	for i := 1; i < len(wan); i++ { // TestHeldQueues has the wire
		b.Tell(string(wan[i].Medium), func(b *lib.Box) { heldAt(b, &lan[0], &wan[i], uint16(5301+i), want) })
	}
	// TCX finds what XDP has decided, also on another core
	if up, marked := b.Packets("lan-wire", reason.UpDevice), b.Packets("lan-wire", reason.Marked); up < 1000 || marked < up/10*9 {
		b.Errorf("XDP has left %d packets to TCX, which has taken over %d:\n%s", up, marked, b.Weir("info"))
	}
	b.Weir("stop")
	if after := b.Run(lab.FW, "tc", "qdisc", "show"); after != before {
		b.Errorf("the qdiscs were\n%sand are after weir stop\n%s", before, after)
	}
}

// heldAt sends both ways by a device whose packets the kernel holds.
func heldAt(b *lib.Box, from, to *lib.Path, port uint16, leaf string) {
	for _, own := range []string{from.Addr(20, false), from.Addr(10, true), from.Addr(20, true)} {
		b.Run(lab.LAN, "ping", "-n", "-c", "2", "-i", "0.1", "-W", "5", "-I", own, to.Addr(10, own != from.Addr(20, false)))
	}
	b.Listen(lab.WAN, port, "iperf3", "-s", "-p", fmt.Sprint(port))
	flags := []string{"-p", fmt.Sprint(port), "-B", from.Addr(10, false), "-t", "3", "-O", "1"}
	for name, line := range map[string]float64{"": 8e6, "-R": 4e6} { // an emulated machine may be slower
		got := 0.0
		for tries := 0; got < 0.2*line*payload && tries < 3; tries++ { // iperf3 sometimes counts nothing
			got = runIperf3(b, lab.LAN, to.Addr(10, false), append(flags, strings.Fields(name)...)...).rate()
		}
		if got < 0.2*line*payload || got > 1.08*line*payload {
			b.Errorf("a line of %.3g carries %.3g bit/s %s", line, got, name)
		}
	}
	var shown view.Queues
	if err := json.Unmarshal([]byte(b.Weir("queues", "--json")), &shown); err != nil {
		b.Fatal(err)
	}
	for _, tree := range shown.Trees {
		if tree.Interface != to.Device {
			continue
		}
		if tree.Engine != "queue" || tree.Holds != leaf || tree.Queues[0].Sent < 3e5 {
			b.Errorf("of %s weir queues shows %+v, want %s", to.Device, tree, leaf)
		}
	}
}
