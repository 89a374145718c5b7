package test

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"weir/internal/host/netif"
	"weir/internal/host/proc"
	"weir/internal/lab"
	"weir/internal/testenv"
	"weir/test/lib"
)

// iperfSum is what iperf3 says of packets with numbers.
type iperfSum struct {
	Packets    int     `json:"packets"`
	Lost       int     `json:"lost_packets"`
	OutOfOrder int     `json:"out_of_order"`
	Start      float64 `json:"start"`
}

// iperfReport is what iperf3 says at the end.
type iperfReport struct {
	Intervals []struct {
		Sum iperfSum `json:"sum"`
	} `json:"intervals"`
	End struct {
		Sum  iperfSum `json:"sum"`
		Sent struct {
			Rate float64 `json:"bits_per_second"`
		} `json:"sum_sent"`
	} `json:"end"`
}

// readIperf reads what a client has printed.
func readIperf(b *lib.Box, said string) (r iperfReport) {
	b.Helper()
	if err := json.Unmarshal([]byte(said), &r); err != nil {
		b.Fatalf("iperf3 says %q: %v", said, err)
	}
	return r
}

// stackCounter returns one of the counters of a host's network stack.
func stackCounter(b *lib.Box, host, name string) (n int) {
	b.Helper()
	for line := range strings.Lines(b.Run(host, "nstat", "-asz", name)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == name {
			n, _ = strconv.Atoi(fields[1]) //nolint:errcheck // nstat prints numbers
		}
	}
	return n
}

//	                                     ┌ core 0 ─────────────────────────────┐
//	far ── far0 wan, a concentrator ══ PPPoE ══ wan0 fw lan0 ── lan    core 1: the programs that send and receive
//
// All that comes to wan0 comes by one core, as from a card that gives all PPPoE to one queue: wan receives on core 0, and a veth pair's other
// end goes on there. TCP by iperf3 fills that core, while the other one has time. set spread auto sees that, hands a part to the other
// core, and takes it back when the load has gone. weir interfaces says why. All the time iperf3 sends numbered packets, too: of these and of
// TCP's none is lost or overtaken, also in the moments of switching.
func TestSpreadAuto(t *testing.T) {
	if os.Getenv("WEIR_TEST_SPREAD_LOAD") == "" {
		testenv.SkipOutside(t, "it needs a machine without other programs for some minutes: make test-long")
	}
	testenv.NeedProgram(t, "taskset")
	testenv.NeedProgram(t, "nstat")
	if runtime.NumCPU() < 2 {
		testenv.SkipOutside(t, "there is one core")
	}
	weir.FarAlone(t, func(b *lib.Box) {
		p, password := b.Provider(1500)
		b.IP(lib.Far, "route add "+lib.ProviderClient+"/32 via 198.51.100.1")
		b.IP(lab.FW, "route del default", "-6 route del default")
		receiveOnCore0(b)
		daemon := b.WeirRun(b.Rules(fmt.Sprintf(`set spread wan0 auto
pppoe ppp0 on wan0 user me password file "%s"
match out on ppp0 inet from (lan0:network) nat-to (ppp0)
block
pass in on lan0
pass out on { lan0 ppp0 }
`, password)))
		p.Await(awaitPPPoE(b, "up").Session)
		b.Ping(lab.LAN, lib.FarHost, 3)
		why := func() string {
			for line := range strings.Lines(b.Weir("interfaces")) {
				if _, why, ok := strings.Cut(line, "set spread: "); ok {
					return strings.TrimSpace(why)
				}
			}
			return ""
		}
		const calm = "no core is full of what it receives"
		b.Until(20*time.Second, calm, func() bool { return why() == calm })
		for _, port := range []uint16{5201, 5202} {
			b.Listen(lib.Far, port, "taskset", "-c", "1", "iperf3", "-s", "-p", fmt.Sprint(port))
		}
		iperf := func(args ...string) *lib.Process {
			return b.Start(lab.LAN, "taskset", append([]string{"-c", "1", "iperf3", "-c", lib.FarHost, "-R", "--json"}, args...)...)
		}
		full := false
		spreads := func() bool {
			is := why()
			full = full || is == "core 0 is full of what it receives, core 1 has time"
			share := 100
			fmt.Sscanf(is, "core 0 receives and does about %d %%, core 1 the rest", &share) //nolint:errcheck // it may say something else
			return share <= 70
		}
		var numbered *lib.Process
		for tries, done := 0, false; !done; tries++ {
			if tries == 3 {
				b.Fatalf("with three loads core 0 hands no half of the frames over: %s", why())
			}
			awaitIdle(b)
			// The windows are small, so that TCP never has more on its way than there is room for.
			numbered = iperf("-p", "5201", "-u", "-b", "2M", "-l", "200", "-t", "60")
			load := iperf("-p", "5202", "-P", "4", "-w", "64K", "-t", "30")
			for end := time.Now().Add(28 * time.Second); !done && time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
				done = spreads()
			}
			b.Logf("TCP carried %.0f Mbit/s; core 0 handed frames over: %t", readIperf(b, load.Wait(time.Minute, 0)).End.Sent.Rate/1e6, done)
			if !done {
				numbered.Wait(time.Minute, 0)
			}
		}
		if !full {
			b.Error("weir interfaces has not said that core 0 is full, and core 1 is not")
		}
		b.Until(time.Minute, "the load has gone, and "+calm, func() bool { return why() == calm })
		for _, said := range []string{
			`frames may be handed to other cores interface=wan0 why="core 0 is full of what it receives, core 1 has time"`,
			`frames are handed to other cores no more interface=wan0 why="the core that receives can do the work alone"`,
		} {
			if !strings.Contains(daemon.Said(), said) {
				b.Errorf("the log has no %q:\n%s", said, daemon.Said())
			}
		}
		end := readIperf(b, numbered.Wait(time.Minute, 0))
		if n := end.End.Sum; n.Lost != 0 || n.OutOfOrder != 0 || n.Packets < 60_000 {
			b.Errorf("of numbered packets: %+v", n)
			for _, i := range end.Intervals {
				if i.Sum.Lost != 0 || i.Sum.OutOfOrder != 0 {
					b.Errorf("at second %.0f: %+v", i.Sum.Start, i.Sum)
				}
			}
		}
		// What came twice was sent again for nothing: a receiver that was not woken for some milliseconds.
		overtaken, again, twice := stackCounter(b, lab.LAN, "TcpExtTCPOFOQueue"), stackCounter(b, lib.Far, "TcpRetransSegs"), stackCounter(b, lib.Far, "TcpExtTCPDSACKRecvSegs")
		b.Logf("of TCP's segments %d were overtaken, %d were sent again, %d of these for nothing", overtaken, again, twice)
		if overtaken != 0 || again > twice {
			b.Errorf("of TCP's segments %d were overtaken, and %d lost", overtaken, again-twice)
		}
	})
}

// awaitIdle waits until no other program works on this machine.
func awaitIdle(b *lib.Box) {
	b.Helper()
	idle := 0
	before, err := proc.Cores("/proc")
	for end := time.Now().Add(90 * time.Second); err == nil && time.Now().Before(end); {
		time.Sleep(time.Second)
		now, err := proc.Cores("/proc")
		if err != nil {
			b.Fatal(err)
		}
		idle++
		for core := range 2 {
			if d := now[core].Minus(before[core]); float64(d.Idle+d.IOWait+d.Nice) < 0.85*float64(d.Total()) {
				idle = 0
			}
		}
		if before = now; idle == 3 {
			return
		}
	}
	if err != nil {
		b.Fatal(err)
	}
	testenv.SkipOutside(b, "other programs work on this machine: no core has time")
}

// receiveOnCore0 has wan receive what far sends on core 0, one by one, and work for each packet.
func receiveOnCore0(b *lib.Box) {
	b.Helper()
	b.Run(lab.WAN, "ip", "netns", "exec", b.Namespace(lab.WAN), "sh", "-c", "for q in /sys/class/net/far0/queues/rx-*; do echo 1 >$q/rps_cpus; done")
	if err := b.Do(lab.WAN, func() error { return netif.SetFeatures("far0", netif.Features{"rx-gro": false}) }); err != nil {
		b.Fatal(err)
	}
	rules := "table ip work {\n\tchain forward {\n\t\ttype filter hook forward priority 0;\n"
	for i := range workRules {
		rules += fmt.Sprintf("\t\tip daddr 10.99.%d.%d drop\n", i>>8, i&0xff)
	}
	b.Run(lab.WAN, "nft", rules+"\t}\n}")
}

// workRules are as many as make a packet cost core 0 so much that the programs on core 1 have time.
const workRules = 1500
