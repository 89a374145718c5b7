package test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/fw/reason"
	"weir/internal/fw/state"
	"weir/internal/fw/view"
	"weir/internal/host/doctor"
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
queue later on wan7 bandwidth 1M default

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
// Connections share by weight, BBR and CUBIC alike, and hosts behind translation by host. Queues change under
// traffic, and there may be a thousand. A flood takes nothing from the stream of another host. All of this holds
// while the daemon is dead.
func TestShaping(t *testing.T) {
	weir.BothFar(t, func(b *lib.Box) {
		b.DelayLine(lab.WAN, "slow0", lib.Far, "slow0", shapeDelay)
		b.Address(lab.WAN, "slow0", "198.18.0.1/30")
		b.Address(lib.Far, "slow0", slowHost+"/30")
		b.IP(lib.Far, "route replace default via 198.18.0.1 dev slow0")
		b.IP(lab.FW, "route add 198.18.0.0/30 via "+wanHost)
		b.Address(lab.LAN, "eth0", secondHost+"/24")
		slowIPv6(b)
		daemon := b.WeirRun(shapeRules)
		for _, port := range []uint16{5201, 5202, 5203} {
			b.Listen(lib.Far, port, "iperf3", "-s", "-p", strconv.Itoa(int(port)))
		}
		b.Tell("alone", shapedAlone)
		b.Tell("a short way", shapedNear)
		b.Tell("weights", shapedByWeight)
		b.Tell("other classes", shapedOtherClasses)
		b.Weir("load", b.Rules(shareRules))
		b.Tell("IPv6", shapedIPv6)
		b.Tell("hosts", shapedHosts)
		if b.Hook == "tcx" { // these are alike under both
			b.Tell("BBR", shapedBBR)
		} else {
			b.Tell("a thousand queues", func(b *lib.Box) { holdsAThousand(b, "phantom") })
		}
		b.Weir("load", b.Rules(shapeRules))
		b.Tell("another rate", shapedAnew)
		b.Tell("an interface that comes later", shapedLater)
		daemon.Kill()
		b.Tell("flood, without a daemon", shapedFlood)
	})
}

func shapedAlone(b *lib.Box) {
	up := runIperf3(b, lab.LAN, slowHost, "-p", "5201", "-t", "5", "-O", "2")
	isRate(b, "up", 50e6*payload, up.rate())
	seesLosses(b)
	seesRoundTrips(b, up.roundTrip())
	seesDrops(b)
	carries(b, "down", 20e6*payload, "-p", "5203", "-t", "5", "-O", "2", "-R")
	if b.Packets("lan0", reason.Queue) == 0 || b.Packets("wan0", reason.Queue) == 0 {
		b.Errorf("no packet was dropped by a queue:\n%s", b.Weir("info"))
	}
	var shown view.Queues
	if err := json.Unmarshal([]byte(b.Weir("queues", "--json")), &shown); err != nil {
		b.Fatal(err)
	}
	out, down := shown.Trees[0].Queues, shown.Trees[1].Queues
	if out[1].Name != "bulk" || out[1].Sent < 30e6 || out[1].Drops == 0 || out[0].Sent < out[1].Sent || down[0].Sent < 10e6 {
		b.Errorf("weir queues shows %+v", shown)
	}
	doctorSeesQueue(b, "bulk")
	if text := b.Weir("queues"); !strings.Contains(text, "wan0 out") || !strings.Contains(text, "    voice") {
		b.Errorf("weir queues prints\n%s", text)
	}
}

// shapedNear loads the uplink without the line's delay. Any window of TCP is too much there, so it lives on what it may send after
// its retransmission timers.
func shapedNear(b *lib.Box) {
	b.Listen(lab.WAN, 5201, "iperf3", "-s", "-p", "5201")
	for _, connections := range []string{"1", "8"} {
		part := 0.0
		for tries := 0; part < 0.88 && tries < 3; tries++ {
			part = runIperf3(b, lab.LAN, wanHost, "-p", "5201", "-C", "cubic", "-t", "6", "-P", connections).rate() / (50e6 * payload)
			b.Logf("%s connections over a short way: %.2f of the rate", connections, part)
		}
		if part < 0.88 || part > 1.08 {
			b.Errorf("%s connections over a short way have %.2f of the rate", connections, part)
		}
	}
}

// doctorSeesQueue checks that doctor reads what a queue has counted.
func doctorSeesQueue(b *lib.Box, name string) {
	bundle, err := doctor.Read(strings.NewReader(b.Weir("doctor", "--interval", "200ms", "--collect", "-")))
	if err != nil {
		b.Fatal(err)
	}
	found := slices.ContainsFunc(bundle.After.Weir.Queues, func(q doctor.WeirQueue) bool {
		return q.Name == name && q.Interface == "wan0" && !q.In && q.Drops > 0 && q.Bytes > 30e6
	})
	if !found {
		b.Errorf("doctor reads %+v", bundle.After.Weir.Queues)
	}
}

// seesRoundTrips compares the median of bulk's round-trip times with the line's delay. On a busy machine the
// packets take longer, as the sender has seen.
func seesRoundTrips(b *lib.Box, seen time.Duration) {
	var shown view.Queues
	if err := json.Unmarshal([]byte(b.Weir("queues", "--json")), &shown); err != nil {
		b.Fatal(err)
	}
	least, most := 0.9*shapeDelay.Seconds()*1000, 1.1*max(seen, shapeDelay).Seconds()*1000
	if rtt := shown.Trees[0].Queues[1].RTT; rtt.Samples < 10 || rtt.Median < least || rtt.Median > most {
		b.Errorf("beyond a line of %v, and %v for the sender, the median of %d round-trip times is %.1f ms", shapeDelay, seen, rtt.Samples, rtt.Median)
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

// seesDrops captures a flood, in text and for Wireshark: dropped packets name their class.
func seesDrops(b *lib.Box) {
	file := filepath.Join(b.TempDir(), "drops.pcapng")
	text, toFile := capture(b, "lan0", "proto", "udp", "to", "port", "5203", "-s", "60"), capture(b, "lan0", "proto", "udp", "to", "port", "5203", "-s", "60", "-w", file)
	iperf3Rate(b, "-p", "5203", "-u", "-b", "80M", "-l", "1400", "-t", "1")
	interrupt(toFile)
	if said := interrupt(text); !strings.Contains(said, "/(queue)") || strings.Count(said, "/(queue)") != strings.Count(said, ", queue: class rest on wan0: ") {
		b.Errorf("captured packets do not name the queue that has dropped them:\n%.2000s", said)
	}
	comments := b.Run(lab.FW, "tshark", "-r", file, "-T", "fields", "-e", "frame.comment", "-Y", "frame.comment contains \"queue: class rest on wan0\"")
	if !strings.Contains(comments, "verdict drop, reason queue") {
		b.Errorf("tshark shows no packet that a queue has dropped: %.2000s", comments)
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
	carries(b, "anew", 10e6*payload, "-p", "5201", "-t", "4", "-O", "1")
	if out := pings.Wait(10*time.Second, 0); !strings.Contains(out, " 0% packet loss") {
		b.Errorf("while other rates are loaded a ping loses packets:\n%s", out)
	}
	const asPfctl = "queue up on wan0 bandwidth 10M\nqueue bulk parent up bandwidth 30M\n"
	if text := b.Weir("pfctl", "-sq"); !strings.HasPrefix(text, asPfctl) {
		b.Errorf("pfctl -sq prints, want %q\n%s", asPfctl, text)
	}
	if after := sent(); after < before {
		b.Errorf("the queues have sent %d bytes, and %d before they had other rates", after, before)
	}
}

// shapedLater adds the interface of a tree that has not been in force.
func shapedLater(b *lib.Box) {
	const absent = "wan7 out: not in force: wan7 does not exist\n"
	later := func() view.QueueTree {
		trees := lib.WeirJSON[view.Queues](b, "queues", "--json").Trees
		return trees[len(trees)-1]
	}
	if text := b.Weir("queues"); !strings.Contains(text, absent) || !later().Absent {
		b.Errorf("weir queues does not print %q:\n%s", absent, text)
	}
	b.IP(lab.FW, "link add wan7 type veth peer name wan8", "link set wan7 up", "link set wan8 up")
	b.Address(lab.FW, "wan7", "198.18.7.1/24")
	b.IP(lab.FW, "neigh add 198.18.7.2 lladdr 02:00:00:00:00:07 dev wan7")
	b.Until(10*time.Second, "the queues of wan7 count", func() bool {
		b.Run(lab.FW, "sh", "-c", "ping -q -c 1 -W 0.05 198.18.7.2 || :")
		return later().Queues[0].Packets > 0
	})
	if text := b.Weir("queues"); strings.Contains(text, absent) || later().Absent {
		b.Errorf("wan7 exists; weir queues prints\n%s", text)
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

// carries measures what a line carries from lan to far.
func carries(b *lib.Box, what string, want float64, args ...string) {
	b.Helper()
	carriesTo(b, lab.LAN, slowHost, what, want, args...)
}

// carriesTo measures what a line carries between two hosts. If other tests keep the processors busy that
// may be less, and iperf3 sometimes counts nothing: so it measures up to three times.
func carriesTo(b *lib.Box, host, to, what string, want float64, args ...string) {
	b.Helper()
	got := runIperf3(b, host, to, args...).rate()
	for tries := 1; got < leastOfRate*want && tries < 3; tries++ {
		b.Logf("%s: %.1f %% of the rate", what, 100*got/want)
		got = runIperf3(b, host, to, args...).rate()
	}
	isRate(b, what, want, got)
}

// leastOfRate is how much of a line's rate has to arrive.
const leastOfRate = 0.8

// isRate compares bit/s with what a line carries.
func isRate(b *lib.Box, what string, want, got float64) {
	b.Helper()
	if got < leastOfRate*want || got > 1.08*want { // in 3 s a connection may be 0.2 s of the rate ahead
		b.Errorf("%s: %.3g bit/s, want %.3g", what, got, want)
	}
	b.Logf("%s: %.1f %% of the rate", what, 100*got/want)
}

// An iperf3Report is what iperf3 says at its end.
type iperf3Report struct {
	End struct {
		Received struct {
			BitsPerSecond float64 `json:"bits_per_second"`
		} `json:"sum_received"`
		Streams []struct {
			Sender struct {
				MeanRTT int `json:"mean_rtt"` // microseconds
			} `json:"sender"`
		} `json:"streams"`
	} `json:"end"`
}

// rate returns the bit/s that arrived.
func (r *iperf3Report) rate() float64 { return r.End.Received.BitsPerSecond }

// roundTrip returns the mean round-trip time that the sender has seen.
func (r *iperf3Report) roundTrip() time.Duration {
	if len(r.End.Streams) == 0 {
		return 0
	}
	return time.Duration(r.End.Streams[0].Sender.MeanRTT) * time.Microsecond
}

// iperf3Rate runs iperf3 between lan and far, and returns the bit/s that arrived.
func iperf3Rate(b *lib.Box, args ...string) float64 {
	b.Helper()
	return runIperf3(b, lab.LAN, slowHost, args...).rate()
}

// runIperf3 runs iperf3 between two hosts.
func runIperf3(b *lib.Box, host, to string, args ...string) (report *iperf3Report) {
	b.Helper()
	report = new(iperf3Report)
	out := b.Run(host, "iperf3", append([]string{"-c", to, "-J"}, args...)...)
	if err := json.Unmarshal([]byte(out), report); err != nil {
		b.Errorf("iperf3: %v\n%s", err, out)
	}
	return report
}
