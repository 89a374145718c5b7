package test

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/fw/reason"
	"weir/internal/fw/state"
	"weir/internal/fw/view"
	"weir/internal/lab"
	"weir/test/lib"
)

// shapeDelay is the round-trip time of the delay line, slowHost far's address behind the delay line. secondHost is another one of lan.
const (
	shapeDelay = 30 * time.Millisecond
	slowHost   = "198.18.0.2"
	secondHost = "192.168.1.77"
)

// Queues for both directions of the uplink. Bulk and voice share what leaves by weight; a ping is in
// the default queue, as are floods.
const shapeRules = `
queue up on wan0 bandwidth 50M
queue bulk parent up bandwidth 30M
queue voice parent up bandwidth 10M
queue rest parent up bandwidth 10M default
queue down on wan0 in bandwidth 20M default

set skip on lo
match out on wan0 inet from (lan0:network) nat-to (wan0)
pass
pass out on wan0 proto tcp to port 5201 set queue bulk
pass out on wan0 proto tcp to port 5202 set queue voice
`

// Of what a line carries, payload is this part if packets are full: 1,448 of 1,538 bytes.
const payload = 1448.0 / 1538

//	lan ──▶ fw: queues ──▶ wan ══ delay line ══ far: iperf3 -s
//
// A TCP connection takes the whole rate and no more, over a long way and in both directions.
// Connections share by weight. A flood takes nothing from the stream of another host. All of
// this holds while the daemon is dead.
func TestShaping(t *testing.T) {
	weir.BothFar(t, func(b *lib.Box) {
		b.DelayLine(lab.WAN, "slow0", lib.Far, "slow0", shapeDelay)
		b.Address(lab.WAN, "slow0", "198.18.0.1/30")
		b.Address(lib.Far, "slow0", slowHost+"/30")
		b.IP(lib.Far, "route replace default via 198.18.0.1 dev slow0")
		b.IP(lab.FW, "route add 198.18.0.0/30 via "+wanHost)
		b.Address(lab.LAN, "eth0", secondHost+"/24")
		daemon := b.WeirRun(shapeRules)
		for _, port := range []uint16{5201, 5202, 5203} {
			b.Listen(lib.Far, port, "iperf3", "-s", "-p", strconv.Itoa(int(port)))
		}
		b.Tell("alone", shapedAlone)
		b.Tell("weights", shapedByWeight)
		b.Tell("another rate", shapedAnew)
		daemon.Kill()
		b.Tell("flood, without a daemon", shapedFlood)
	})
}

func shapedAlone(b *lib.Box) {
	isRate(b, "up", 50e6*payload, iperf3Rate(b, "-p", "5201", "-t", "5", "-O", "2"))
	seesLosses(b)
	seesRoundTrips(b)
	isRate(b, "down", 20e6*payload, iperf3Rate(b, "-p", "5203", "-t", "5", "-O", "2", "-R"))
	if b.Packets("lan0", reason.Queue) == 0 || b.Packets("wan0", reason.Queue) == 0 {
		b.Errorf("no packet was dropped by a queue:\n%s", b.Weir("info"))
	}
	var shown view.Queues
	if err := json.Unmarshal([]byte(b.Weir("queues", "--json")), &shown); err != nil {
		b.Fatal(err)
	}
	up, down := shown.Trees[0].Queues, shown.Trees[1].Queues
	if up[1].Name != "bulk" || up[1].Sent < 30e6 || up[1].Drops == 0 || up[0].Sent < up[1].Sent || down[0].Sent < 10e6 {
		b.Errorf("weir queues shows %+v", shown)
	}
	if text := b.Weir("queues"); !strings.Contains(text, "wan0 out") || !strings.Contains(text, "    voice") {
		b.Errorf("weir queues prints\n%s", text)
	}
}

// seesRoundTrips compares the median of bulk's round-trip times with the line's delay.
func seesRoundTrips(b *lib.Box) {
	var shown view.Queues
	if err := json.Unmarshal([]byte(b.Weir("queues", "--json")), &shown); err != nil {
		b.Fatal(err)
	}
	const way = float64(shapeDelay / time.Millisecond)
	if rtt := shown.Trees[0].Queues[1].RTT; rtt.Samples < 10 || rtt.Median < 0.9*way || rtt.Median > 1.1*way {
		b.Errorf("beyond a line of %v ms the round-trip times are %+v", way, rtt)
	}
}

// seesLosses looks for what the connection has lost.
func seesLosses(b *lib.Box) {
	var states []state.View
	if err := json.Unmarshal([]byte(b.Weir("states", "--json", "port", "5201")), &states); err != nil {
		b.Fatal(err)
	}
	if !slices.ContainsFunc(states, func(s state.View) bool { return s.Src.Lost != nil && s.Src.Lost.Packets > 0 }) {
		b.Errorf("no connection shows what it has lost:\n%s", b.Weir("states", "-v"))
	}
}

func shapedByWeight(b *lib.Box) {
	var rates [2]float64
	var both sync.WaitGroup
	for i := range rates {
		both.Go(func() { rates[i] = iperf3Rate(b, "-p", strconv.Itoa(5201+i), "-t", "7", "-O", "3") })
	}
	both.Wait()
	isRate(b, "both", 50e6*payload, rates[0]+rates[1])
	if ratio := rates[0] / rates[1]; ratio < 2.2 || ratio > 4 {
		b.Errorf("connections with the weights 3 and 1 get %.3g and %.3g bit/s", rates[0], rates[1])
	}
}

// Other rates are in force at once, also if a rule changes with them. The pings of another host lose
// nothing meanwhile, and counts go on.
func shapedAnew(b *lib.Box) {
	sent := func() uint64 { return lib.WeirJSON[view.Queues](b, "queues", "--json").Trees[0].Queues[0].Sent }
	before := sent()
	pings := b.Start(lab.LAN, "ping", "-q", "-I", secondHost, "-i", "0.02", "-c", "200", slowHost)
	text := strings.Replace(shapeRules, "wan0 bandwidth 50M", "wan0 bandwidth 10M", 1)
	b.Weir("load", b.Rules(text+"block out on wan0 proto tcp to port 5204\n"))
	isRate(b, "anew", 10e6*payload, iperf3Rate(b, "-p", "5201", "-t", "4", "-O", "1"))
	if out := pings.Wait(10*time.Second, 0); !strings.Contains(out, " 0% packet loss") {
		b.Errorf("while other rates are loaded a ping loses packets:\n%s", out)
	}
	if after := sent(); after < before {
		b.Errorf("the queues have sent %d bytes, and %d before they had other rates", after, before)
	}
}

func shapedFlood(b *lib.Box) {
	done := make(chan float64)
	go func() {
		done <- iperf3Rate(b, "-p", "5203", "-u", "-b", "20M", "-l", "1400", "-t", "6", "-B", "192.168.1.10")
	}()
	time.Sleep(time.Second)
	out := b.Run(lab.LAN, "ping", "-q", "-I", secondHost, "-i", "0.02", "-c", "200", slowHost)
	if !strings.Contains(out, " 0% packet loss") {
		b.Errorf("beside a flood of another host a ping loses packets:\n%s", out)
	}
	isRate(b, "a flood", 10e6*1400/1466, <-done)
}

// isRate compares bit/s with what a line carries.
func isRate(b *lib.Box, what string, want, got float64) {
	b.Helper()
	if got < 0.8*want || got > 1.08*want { // in 3 s a connection may be 0.2 s of the rate ahead
		b.Errorf("%s: %.3g bit/s, want %.3g", what, got, want)
	}
	b.Logf("%s: %.1f %% of the rate", what, 100*got/want)
}

// iperf3Rate runs iperf3 between lan and far, and returns the bit/s that arrived.
func iperf3Rate(b *lib.Box, args ...string) float64 {
	b.Helper()
	out := b.Run(lab.LAN, "iperf3", append([]string{"-c", slowHost, "-J"}, args...)...)
	var report struct {
		End struct {
			Received struct {
				BitsPerSecond float64 `json:"bits_per_second"`
			} `json:"sum_received"`
		} `json:"end"`
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		b.Errorf("iperf3: %v\n%s", err, out)
	}
	return report.End.Received.BitsPerSecond
}
