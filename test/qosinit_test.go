package test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/fw/view"
	"weir/internal/lab"
	"weir/test/lib"
)

// qosInitRules are those of a gateway, with the queues that weir qos init has written.
const qosInitRules = `
include "%s"
set skip on lo
match out on wan0 inet from (lan0:network) nat-to (wan0)
pass
`

// Rates of the line in Mbit/s, and what the queues get of them.
const (
	qosInitUp, qosInitUpPart     = 20, 0.95
	qosInitDown, qosInitDownPart = 40, 0.90
)

//	lan: downloads and uploads of TCP, a flood of BitTorrent ──▶ fw: queues of weir qos init ──▶ wan ══ delay ══ far
//	     a call of 64 kbit/s each way, names to look up     ──▶
//
// Whoever takes what weir qos init writes has a call without losses and quick names while the line
// is full in both directions; downloads still take nearly all of it, and BitTorrent what is left.
func TestQoSInit(t *testing.T) {
	weir.BothFar(t, func(b *lib.Box) {
		b.DelayLine(lab.WAN, "slow0", lib.Far, "slow0", shapeDelay)
		b.Address(lab.WAN, "slow0", "198.18.0.1/30")
		b.Address(lib.Far, "slow0", slowHost+"/30")
		b.IP(lib.Far, "route replace default via 198.18.0.1 dev slow0")
		b.IP(lab.FW, "route add 198.18.0.0/30 via "+wanHost)
		b.Address(lab.LAN, "eth0", secondHost+"/24")
		for _, port := range []uint16{5201, 5202, 5060, 5061, 6881} {
			b.Listen(lib.Far, port, "iperf3", "-s", "-p", strconv.Itoa(int(port)))
		}
		b.Start(lib.Far, "dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--no-resolv", "--no-hosts", "--user=root", "--pid-file",
			"--bind-interfaces", "--listen-address="+slowHost, "--address=/example.test/192.0.2.80")
		file := filepath.Join(b.TempDir(), "qos.conf")
		b.Weir("qos", "init", "-i", "wan0", "--up", fmt.Sprint(qosInitUp, "M"), "--down", fmt.Sprint(qosInitDown, "M"), "--line", "ethernet", "-o", file)
		b.WeirRun(fmt.Sprintf(qosInitRules, file))
		b.Until(10*time.Second, "names are answered", func() bool { return lookUp(b, 1) == 0 })
		fullLine(b)
	})
}

// lookUp looks a name up, so many times in a row, and returns how often there was no answer in time. Nothing is
// asked twice.
func lookUp(b *lib.Box, times int) (missed int) {
	b.Helper()
	out := b.Scapy(lab.LAN, fmt.Sprintf(`
missed = 0
for i in range(%d):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(0.3)
    s.bind((%q, 0))
    s.sendto(bytes(DNS(id=i, rd=1, qd=DNSQR(qname="example.test"))), (%q, 53))
    try:
        missed += DNS(s.recv(1500)).an is None
    except OSError:
        missed += 1
    time.sleep(0.05)
print("missed", missed)
`, times, secondHost, slowHost))
	if _, err := fmt.Sscanf(strings.TrimSpace(out), "missed %d", &missed); err != nil {
		b.Fatalf("%v:\n%s", err, out)
	}
	return missed
}

// A datagramReport is what iperf3 says of datagrams.
type datagramReport struct {
	End struct {
		Sum struct {
			Packets int     `json:"packets"`
			Lost    int     `json:"lost_packets"`
			Jitter  float64 `json:"jitter_ms"`
		} `json:"sum"`
	} `json:"end"`
}

// fullLine fills the line both ways, and looks at what small streams notice of it.
func fullLine(b *lib.Box) {
	const seconds = 8
	var all sync.WaitGroup
	var up, down float64
	var names int
	calls := make([]datagramReport, 2)
	run := func(of func()) { all.Go(of) }
	run(func() { up = iperf3Rate(b, "-p", "5201", "-P", "2", "-t", strconv.Itoa(seconds), "-O", "2") })
	run(func() { down = iperf3Rate(b, "-p", "5202", "-P", "2", "-t", strconv.Itoa(seconds), "-O", "2", "-R") })
	run(func() { iperf3Rate(b, "-p", "6881", "-u", "-b", "30M", "-l", "1400", "-t", strconv.Itoa(seconds)) })
	time.Sleep(2 * time.Second)
	for i, way := range [][]string{{"-p", "5060"}, {"-p", "5061", "-R"}} {
		run(func() {
			out := b.Run(lab.LAN, "iperf3", append([]string{"-c", slowHost, "-J", "-u", "-b", "64K", "-l", "160", "-t", "4", "-B", secondHost}, way...)...)
			if err := json.Unmarshal([]byte(out), &calls[i]); err != nil {
				b.Errorf("iperf3: %v\n%s", err, out)
			}
		})
	}
	run(func() { names = lookUp(b, 20) })
	all.Wait()

	for i, way := range []string{"up", "down"} {
		if c := calls[i].End.Sum; c.Packets < 150 || c.Lost > 0 {
			b.Errorf("of %d packets of a call %s %d are lost (jitter %.1f ms)", c.Packets, way, c.Lost, c.Jitter)
		}
	}
	if names > 0 {
		b.Errorf("%d of 20 names have no answer in 0.3 s", names)
	}
	// Bulk and normal share what the others leave by 1:5.
	isAbout(b, "upload", 0.5*qosInitUp*1e6*qosInitUpPart*payload, qosInitUp*1e6*qosInitUpPart*payload, up)
	isAbout(b, "download", 0.75*qosInitDown*1e6*qosInitDownPart*payload, qosInitDown*1e6*qosInitDownPart*payload, down)
	var shown view.Queues
	if err := json.Unmarshal([]byte(b.Weir("queues", "--json")), &shown); err != nil {
		b.Fatal(err)
	}
	for _, tree := range shown.Trees {
		for _, q := range tree.Queues {
			drops := q.Drops > 0
			if want := q.Name == "bulk" && !tree.In || q.Name == "normal" && !tree.In || tree.In && q.Name == "normal"; !q.Inner && drops != want && q.Name != "interactive" {
				b.Errorf("the queue %s of what goes in (%t) has dropped %d packets of %d", q.Name, tree.In, q.Drops, q.Packets)
			}
		}
	}
}

// isAbout checks that bit/s are within bounds.
func isAbout(b *lib.Box, what string, least, most, got float64) {
	b.Helper()
	if b.Logf("%s: %.3g bit/s", what, got); got < least || got > 1.05*most {
		b.Errorf("%s: %.3g bit/s, want %.3g to %.3g", what, got, least, most)
	}
}
