package dataplane

import (
	"encoding/binary"
	"fmt"
	"maps"
	"testing"

	"weir/internal/fw/reason"
	"weir/internal/fw/shaper"
)

// A queueTrip is a way across the box, and the queue that its packets meet. There is no
// timer: what new connections may borrow is all the room there is.
type queueTrip struct {
	*harness
	t    *testing.T
	from string // where frames come in: lan or wan
	hook func(int, []byte) result
	port int // of the last connection
}

// Packets meet the queues of what comes in and of what leaves, under both hooks.
func TestQueuePackets(t *testing.T) {
	for _, c := range []struct {
		name, queue, from string
		tcx               bool
	}{
		{"xdp out", "queue q on wan0", "lan", false},
		{"xdp in", "queue q on lan0 in", "lan", false},
		{"xdp in at wan", "queue q on wan0 in", "wan", false},
		{"tcx out", "queue q on wan0", "lan", true},
		{"tcx in", "queue q on lan0 in", "lan", true},
		{"tcx out at lan", "queue q on lan0", "wan", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHarness(t, c.queue+" bandwidth 1M default ecn\npass")
			check(t, h.dp.SetQueues(h.net.lan0, QueueDevice{"lan0", shaper.Ethernet(0)}))
			check(t, h.dp.SetQueues(h.net.wan0, QueueDevice{"wan0", shaper.Ethernet(0)}))
			trip := &queueTrip{harness: h, t: t, from: c.from, hook: h.xdp, port: 4000}
			if c.tcx {
				trip.hook = h.tcIn
			}
			trip.testLine()
			trip.testMarks()
		})
	}
}

// testLine counts how many packets of a size fit into what new connections may take, which
// says how many bytes each takes on the line.
func (q *queueTrip) testLine() {
	for _, c := range []struct {
		link shaper.Link
		size int // payload of UDP
		v6   bool
		want int // bytes on the line
	}{
		{shaper.Link{}, 1000, false, 1000 + 28 + 38},
		{shaper.Link{}, 1000, true, 1000 + 48 + 38},
		{shaper.Link{}, 10, false, 84},
		{shaper.Link{Known: true}, 1000, false, 1028},
		{shaper.Link{Known: true, Overhead: 44, MPU: 64}, 1000, false, 1072},
		{shaper.Link{Known: true, Overhead: -20, MPU: 100}, 10, true, 100},
		{shaper.Link{Known: true, Overhead: -64, MPU: 60}, 10, false, 60}, // a packet of 38 bytes
		{shaper.Link{Known: true, Overhead: 40, Cells: shaper.ATM}, 1000, false, (1068 + 47) / 48 * 53},
		{shaper.Link{Known: true, Overhead: 30, Cells: shaper.PTM}, 1000, true, 1078 + (1078+63)/64},
	} {
		q.setLink(c.link)
		packet, passed := q.connection(c.v6), 0
		for range 2000 {
			r := q.in(q.hook, q.from, fmt.Sprintf("%s len %d", packet, c.size))
			if r.verdict == drop && r.reason == reason.Queue.String() {
				break
			}
			if r.verdict != redirect {
				q.t.Fatalf("packet %d of %+v: %s (%s)", passed+1, c, r.verdict, r.reason)
			}
			passed++
		}
		if want := queueFresh / c.want; passed != want {
			q.t.Errorf("%d packets passed, want %d: %+v", passed, want, c)
		}
	}
}

// A VLAN device without queues uses those of the device below. Its packets count with the bytes of their tag, unless the queues say what packets take.
func TestQueueOfDeviceBelow(t *testing.T) {
	for _, c := range []struct {
		overhead     string
		below, above int    // bytes that each device has in front of a packet: a tag, a session
		here, tagged uint64 // bytes of a packet beyond its IP packet: on the device below, and on the VLAN device
	}{{"", 0, 4, 38, 42}, {"", 4, 12, 42, 50}, {"overhead 50", 0, 4, 50, 50}} {
		h := newHarness(t, fmt.Sprintf("queue up on lan0 bandwidth 10M %s default\nqueue down on lan0 in bandwidth 10M %[1]s default\npass", c.overhead))
		check(t, h.dp.SetQueues(h.net.wan0, QueueDevice{"wan0", shaper.Ethernet(c.above)}, QueueDevice{"lan0", shaper.Ethernet(c.below)}))
		check(t, h.dp.SetQueues(h.net.lan0, QueueDevice{"lan0", shaper.Ethernet(c.below)}))
		for n, r := range []uint64{1, 2, 3} { // the first has no state yet
			h.in(h.xdp, "lan", "udp 192.168.1.10:4000 > 203.0.113.1:53 len 1000")
			h.in(h.xdp, "wan", "udp 203.0.113.1:53 > 192.168.1.10:4000 len 500")
			got := make(map[string]uint64)
			for _, q := range h.queueCounts() {
				got[fmt.Sprintf("%d %v", q.Class, q.Back)] = q.Sent
			}
			want := map[string]uint64{ // class 0 is what leaves
				"1 false": r * (1028 + c.here), "0 false": r * (1028 + c.tagged), "1 true": r * (528 + c.tagged), "0 true": r * (528 + c.here),
			}
			if !maps.Equal(got, want) {
				t.Errorf("%q, after %d packets: %v, want %v", c.overhead, n+1, got, want)
			}
		}
		check(t, h.dp.SetQueues(h.net.wan0))
	}
}

// setLink sets what packets take on the line, and lets new connections borrow again.
func (q *queueTrip) setLink(link shaper.Link) {
	s := q.dp.config.Program.Shapers[0]
	s.Link = link
	check(q.t, changeArray(q.dp.objects.Maps[mapQueueData], func(data []xdpQueueSection) {
		data[0].Shapers[1] = rawShaper(&s, 1, data[0].Shapers[1].Epoch)
	}))
	check(q.t, changeArray(q.dp.objects.Maps[mapQueueClasses], func(all []xdpQueueClass) { all[1].Fresh = queueFresh }))
}

// connection returns a packet of a new connection.
func (q *queueTrip) connection(v6 bool) string {
	q.port++
	lan, wan := fmt.Sprintf("192.168.1.10:%d", q.port), "198.51.100.9:53"
	if v6 {
		lan, wan = fmt.Sprintf("[fd00:1::10]:%d", q.port), "[2001:db8:9::9]:53"
	}
	if q.from == "wan" {
		lan, wan = wan, lan
	}
	return "udp " + lan + " > " + wan
}

// testMarks checks what happens to packets of connections that their queue tells of congestion:
// one is marked, or dropped if a mark would have no effect.
func (q *queueTrip) testMarks() {
	for _, v6 := range []bool{false, true} {
		for _, ecn := range []uint8{0, 1} {
			for before := range byte(4) {
				q.testTold(v6, ecn, before)
			}
		}
	}
}

// testTold does that for a class with ECN or without, and packets with given bits of congestion.
func (q *queueTrip) testTold(v6 bool, ecn uint8, before byte) {
	q.setLink(shaper.Link{})
	packet := q.connection(v6)
	q.in(q.hook, q.from, packet)
	check(q.t, changeArray(q.dp.objects.Maps[mapQueueClasses], func(all []xdpQueueClass) { all[1].Ecn = ecn }))
	check(q.t, changeArray(q.dp.objects.Maps[mapQueueCounters], func(all []xdpQueueCounter) {
		for i := range all {
			if all[i].Key != 0 {
				all[i].Tell = 1
			}
		}
	}))
	for i, want := range []byte{3, before} { // it is told once
		ifindex, frame := q.arrive(q.from, packet)
		if v6 {
			frame[15] |= before << 4
		} else {
			frame[15] |= before
			setHeaderSum(frame[14:34])
		}
		r := q.hook(ifindex, frame)
		if i == 0 && (ecn == 0 || before == 0) {
			if r.verdict != drop || r.reason != reason.Queue.String() {
				q.t.Errorf("ecn %d, bits %02b: %s (%s), want a drop", ecn, before, r.verdict, r.reason)
			}
			continue
		}
		if r.verdict != redirect {
			q.t.Fatalf("ecn %d, bits %02b, packet %d: %s (%s)", ecn, before, i+1, r.verdict, r.reason)
		}
		got := r.frame[15] >> 4 & 3
		if !v6 {
			got = r.frame[15] & 3
			if headerSum(r.frame[14:34]) != 0 {
				q.t.Errorf("the header's checksum is wrong: % x", r.frame[14:34])
			}
		}
		if got != want {
			q.t.Errorf("%s: packet %d leaves with %02b, want %02b", packet, i+1, got, want)
		}
	}
}

// headerSum returns the sum of an IPv4 header; 0: its checksum is right.
func headerSum(header []byte) uint16 {
	sum := uint32(0)
	for i := 0; i < len(header); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(header[i:]))
	}
	sum = sum>>16 + sum&0xffff
	return ^uint16(sum + sum>>16)
}
