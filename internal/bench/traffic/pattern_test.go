package traffic

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"weir/internal/bench/testbed"
	"weir/internal/fw/bpfload"
)

func patternSetup(t *testing.T, b *testbed.Testbed, pattern string, c Case) *Setup {
	t.Helper()
	c.Pattern = pattern
	c.Frame = PatternSize(pattern, c.Frame)
	return testSetup(t, b, c, Effect{ToDoor: true})
}

// TestOrdered compares frames in order with another implementation, and the checker knows
// each of them.
func TestOrdered(t *testing.T) {
	b := testTestbed(t)
	for _, c := range testKinds() {
		if c.Frame > 128 {
			continue
		}
		w := patternSetup(t, b, Ordered, c)
		s := w.FirstFrames()[0]
		k, err := newChecker(w, s, 1)
		if err != nil {
			t.Fatal(err)
		}
		frames := generated(t, w, s, 50)
		for number, frame := range frames {
			checkFrame(t, w, s, uint32(number), frame)
			if _, err := bpfload.RunXDP(k.objects.Programs["check"], bpfload.Run{Frame: frame}); err != nil {
				t.Fatal(err)
			}
		}
		if flows, err := k.verdict(); int(flows) != len(frames) || err != nil {
			t.Errorf("%s: the checker knows %d of %d flows: %v", c, flows, len(frames), err)
		}
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Flows in order differ at the far end, too.
func TestOrderedFlowsDiffer(t *testing.T) {
	type far struct {
		target uint32
		port   uint16
	}
	seen := map[far]bool{}
	const n = 200_000
	for i := range uint32(n) {
		f := flowInOrder(i)
		seen[far{f.target, f.targetPort}] = true
		if f.targetPort < firstPort || f.target != i/portsInOrder {
			t.Fatalf("flow %d: %+v", i, f)
		}
	}
	if len(seen) != n {
		t.Errorf("%d flows have %d far ends", n, len(seen))
	}
}

// TestIMIX checks sizes, lengths in the headers and checksums, of all kinds of frames.
func TestIMIX(t *testing.T) {
	b := testTestbed(t)
	for _, c := range testKinds() {
		if c.Frame > 128 {
			continue
		}
		w := patternSetup(t, b, IMIX, c)
		s := w.Steady(false)
		sizes := map[int]int{}
		for number, frame := range generatedOf(t, w, s, FlowRange{Count: 1000, Step: 1, Pattern: IMIX}, 24) {
			checkFrameOf(t, w, s, len(frame), uint32(number), frame)
			sizes[len(frame)+fcsLen]++
		}
		least := TrueSize(LeastFrame, c.IPv6(), c.TCP())
		if len(sizes) != 3 || sizes[least] != 14 || sizes[570] != 8 || sizes[imixLongest] != 2 {
			t.Errorf("%s: sizes %v", c, sizes)
		}
	}
}

// portsOf returns the target ports of frames, which tell flows in order apart.
func portsOf(t *testing.T, pattern string, count int) []uint16 {
	t.Helper()
	w := patternSetup(t, testTestbed(t), pattern, Case{Frame: 64, Flows: 1000, Family: 4, Protocol: UDP, Cores: 1, Direction: OneWay, Sink: Far})
	flows := w.SteadyFlows(1)[0]
	var ports []uint16
	for _, frame := range generatedOf(t, w, w.Steady(false), flows, count) {
		ports = append(ports, binary.BigEndian.Uint16(frame[36:]))
	}
	return ports
}

// TestTrains wants trains of 1 to 32 frames, all lengths about equally often.
func TestTrains(t *testing.T) {
	lengths := map[int]int{}
	ports := portsOf(t, Bursts, 4000)
	begin, trains := 0, 0
	for i := 1; i < len(ports); i++ {
		if ports[i] != ports[i-1] || i-begin == 2*longestTrain {
			lengths[i-begin]++
			begin, trains = i, trains+1
		}
	}
	mean := float64(begin) / float64(trains)
	if len(lengths) < longestTrain*3/4 || mean < 13 || mean > 20 {
		t.Errorf("%d trains of %.1f frames: lengths %v", trains, mean, lengths)
	}
	for n := range lengths {
		if n > longestTrain+1 { // two trains of flows with one target port
			t.Errorf("a train of %d frames", n)
		}
	}
}

// TestPopularity compares shares with n^-1.1.
func TestPopularity(t *testing.T) {
	const count, frames = 60_000, 1 << 20
	r := FlowRange{Count: count, Step: Stride(count), Pattern: Zipf}
	order := make([]uint64, frames)
	r.popularity(order)
	seen := make([]int, count)
	for _, flow := range order {
		seen[flow&FlowMask]++
	}
	sum := 0.0
	for k := range count {
		sum += math.Pow(float64(1+k), -zipfExponent)
	}
	for _, rank := range []int{0, 1, 9, 99} {
		flow := uint64(rank) * uint64(r.Step) % count
		got, want := float64(seen[flow])/frames, math.Pow(float64(1+rank), -zipfExponent)/sum
		if math.Abs(got-want) > 0.1*want {
			t.Errorf("rank %d: a share of %.5f, want %.5f", rank, got, want)
		}
	}
	other := make([]uint64, 100)
	r.popularity(other)
	for i := range other {
		if (other[i]^order[i])&FlowMask != 0 {
			t.Fatal("the order is another one each time")
		}
	}
}

// TestSequences wants segments of a connection one after the other, in all patterns and
// over several rounds: none is sent twice.
func TestSequences(t *testing.T) {
	b := testTestbed(t)
	for _, pattern := range Patterns {
		const flows, count = 20, 6000
		w := patternSetup(t, b, pattern, Case{Frame: 128, Flows: flows, Family: 4, Protocol: TCP, Cores: 1, Direction: OneWay, Sink: Far})
		frames := generatedOf(t, w, w.Steady(false), w.SteadyFlows(1)[0], count)
		last, times := map[gopacket.Flow]uint32{}, map[gopacket.Flow]int{}
		step := uint32(w.Steady(false).payload(w))
		for i, frame := range frames {
			p := gopacket.NewPacket(frame, layers.LayerTypeEthernet, gopacket.Default)
			tcp := p.TransportLayer().(*layers.TCP)
			flow := tcp.TransportFlow()
			if before, ok := last[flow]; ok && tcp.Seq <= before && before < nearSequence+1+224*step {
				t.Fatalf("%s: frame %d has sequence number %d after %d", pattern, i, tcp.Seq-nearSequence, before-nearSequence)
			}
			last[flow] = tcp.Seq
			times[flow]++
		}
		if len(times) < flows/2 || len(times) == count {
			t.Errorf("%s: frames of %d connections", pattern, len(times))
		}
	}
}

// The order says how many frames of each connection came before, and how many there are.
func TestOrderIsNumbered(t *testing.T) {
	r := FlowRange{Count: 1000, Step: Stride(1000), Pattern: Zipf}
	order := make([]uint64, 20_000)
	r.popularity(order)
	if order[0]&FlowMask != 0 {
		t.Errorf("the first frame is of connection %d", order[0]&FlowMask)
	}
	before, all := map[uint64]uint16{}, map[uint64]uint16{}
	for i, entry := range order {
		flow := entry & FlowMask
		if number := uint16(entry >> orderNumber); number != before[flow] {
			t.Fatalf("frame %d is number %d of its connection, want %d", i, number, before[flow])
		}
		before[flow]++
		all[flow] = uint16(entry >> orderFrames)
	}
	for flow, frames := range before {
		if all[flow] != frames {
			t.Errorf("connection %d: %d frames in the order, want %d", flow, all[flow], frames)
		}
	}
}

// The generator follows the order that it was given.
func TestZipfIsSent(t *testing.T) {
	ports := portsOf(t, Zipf, 300)
	r := FlowRange{Count: 1000, Step: Stride(1000), Pattern: Zipf}
	order := make([]uint64, orderLen)
	r.popularity(order)
	for i, port := range ports[1:] {
		if want := flowOf(uint32(order[i+1] & FlowMask)).targetPort; port != want {
			t.Fatalf("frame %d goes to port %d, want %d", i+1, port, want)
		}
	}
}
