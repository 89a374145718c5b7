package dataplane

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"weir/internal/fw/shaper"
)

// The states of a slot (bpf/queue/queue.h).
const (
	tripIdle = iota
	tripDue
	tripArmed
	tripUnderWay
)

// A segment meets the slots of connections at a millisecond.
type segment struct {
	at     uint32
	from   string
	packet string
}

// trips plays segments on which all slots are due at first, and returns the samples of the classes:
// "class milliseconds" for each.
func (h *harness) trips(all ...segment) (samples []string) {
	h.tb.Helper()
	data, rtts := h.dp.objects.Maps[mapQueueData], h.dp.objects.Maps[mapQueueRTTs]
	clear := func(raw []xdpQueueRtt) { clear(raw) }
	check(h.tb, changeArray(rtts, clear))
	check(h.tb, changeArray(data, func(raw []xdpQueueSection) {
		for i := range raw[0].On {
			raw[0].On[i] = tripDue
		}
	}))
	for _, s := range all {
		check(h.tb, changeArray(data, func(raw []xdpQueueSection) { raw[0].Clock.Ms = s.at }))
		if got := h.in(h.xdp, s.from, "tcp "+s.packet); got.verdict != redirect {
			h.tb.Fatalf("%s: %s, %s", s.packet, got.verdict, got.reason)
		}
	}
	check(h.tb, changeArray(rtts, func(raw []xdpQueueRtt) {
		for class := range raw {
			for i, n := range queueRTTOf(&raw[class], all[len(all)-1].at).counts {
				for range n {
					samples = append(samples, fmt.Sprint(class, " ", queueRTTBucket(i)))
				}
			}
		}
	}))
	return samples
}

// A sample is the time from a new segment to its acknowledgement. What is sent again gives none.
func TestQueueTrips(t *testing.T) {
	const forth, back = "192.168.1.10:4000 > 203.0.113.1:80", "203.0.113.1:80 > 192.168.1.10:4000"
	h := newQueued(t, "queue up on wan0 bandwidth 100M default\nqueue down on wan0 in bandwidth 100M default\npass\npass proto tcp to port 81 keep state (sloppy)")
	h.in(h.xdp, "lan", "tcp "+forth+" S seq 1000")
	h.in(h.xdp, "wan", "tcp "+back+" SA seq 5000 ack 1001")
	h.in(h.xdp, "lan", "tcp "+forth+" A seq 1001 ack 5001")
	seq, reply := 1001, 5001
	up := func(at uint32, seq, length int) segment {
		return segment{at, "lan", fmt.Sprintf("%s PA seq %d ack %d len %d", forth, seq, reply, length)}
	}
	down := func(at uint32, ack, length int) segment {
		return segment{at, "wan", fmt.Sprintf("%s A seq %d ack %d len %d", back, reply, ack, length)}
	}
	for _, c := range []struct {
		name     string
		want     []string
		segments func() []segment
	}{
		{"acknowledged", []string{"1 42"}, func() []segment {
			return []segment{up(1000, seq, 100), up(1010, seq+100, 100), down(1020, seq+100, 0), down(1052, seq+200, 0), down(1060, seq+200, 0)}
		}},
		{"at once", []string{"1 0"}, func() []segment {
			return []segment{up(1000, seq, 100), up(1010, seq+100, 100), down(1010, seq+200, 0)}
		}},
		{"sent again", nil, func() []segment {
			return []segment{up(1000, seq, 100), up(1010, seq+100, 100), up(1500, seq+100, 100), down(1540, seq+200, 0)}
		}},
		{"what is before it sent again", nil, func() []segment {
			return []segment{up(1000, seq, 100), up(1010, seq+100, 100), up(1500, seq, 100), down(1540, seq+200, 0)}
		}},
		{"what is behind it sent again", []string{"1 30"}, func() []segment {
			return []segment{up(1000, seq, 100), up(1010, seq+100, 100), up(1011, seq+200, 100), up(1020, seq+200, 100), down(1040, seq+200, 0)}
		}},
		{"the first sent again is not followed", []string{"1 80"}, func() []segment {
			return []segment{up(1000, seq, 100), up(1010, seq, 100), up(1020, seq+100, 100), down(1100, seq+200, 0)}
		}},
		{"never acknowledged", nil, func() []segment { return []segment{up(1000, seq, 100), up(1010, seq+100, 100)} }},
		{"samples of before are not shown", nil, func() []segment {
			return []segment{up(1000, seq, 100), up(1010, seq+100, 100), down(1020, seq+200, 0), up(1020+2*queueRTTMS, seq+200, 100)}
		}},
		{"the other way", []string{"2 7"}, func() []segment {
			reply += 200
			return []segment{
				{1000, "wan", fmt.Sprintf("%s A seq %d ack %d len 100", back, reply-200, seq)},
				{1010, "wan", fmt.Sprintf("%s A seq %d ack %d len 100", back, reply-100, seq)},
				{1017, "lan", fmt.Sprintf("%s A seq %d ack %d", forth, seq, reply)},
			}
		}},
	} {
		got := h.trips(c.segments()...)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: samples %q, want %q", c.name, got, c.want)
		}
		seq += 400
		h.in(h.xdp, "lan", fmt.Sprintf("tcp %s A seq %d ack %d", forth, seq, reply))
		h.in(h.xdp, "wan", fmt.Sprintf("tcp %s A seq %d ack %d", back, reply, seq))
	}
}

// The timer makes idle slots due, and those that wait or follow a segment for too long.
func TestQueueTripTurn(t *testing.T) {
	h := newQueueHarness(t, 100, shaper.Shaper{Interface: "wan0", Classes: []shaper.Class{{Name: "all", Parent: -1, Default: true, Weight: 1, Max: shaper.Rate{Bytes: 1_000_000}}}})
	now := h.clock().Ms
	check(t, changeArray(h.objects.Maps[mapQueueData], func(raw []xdpQueueSection) {
		clear(raw[0].On[:])
		raw[0].On[1], raw[0].Trips[1].Ms = tripArmed, now
		raw[0].On[2], raw[0].Trips[2].Ms = tripArmed, now-2001
		raw[0].On[3], raw[0].Trips[3].Ms = tripUnderWay, now-9000
		raw[0].On[4], raw[0].Trips[4].Ms = tripUnderWay, now-10_001
	}))
	for range queueTrips / 64 {
		h.tick()
	}
	check(t, changeArray(h.objects.Maps[mapQueueData], func(raw []xdpQueueSection) {
		for i, on := range raw[0].On {
			want := uint8(tripDue)
			switch i {
			case 1:
				want = tripArmed
			case 3:
				want = tripUnderWay
			}
			if on != want {
				t.Errorf("slot %d is %d, want %d", i, on, want)
			}
		}
	}))
}

// Each time is in the bucket that shows it.
func TestQueueRTTBuckets(t *testing.T) {
	for ms := range uint32(20_000) {
		i := queueRTTBucketOf(ms)
		if i < 0 || i >= queueRTTBuckets || int(ms) < queueRTTBucket(i) || ms < 16384 && int(ms) >= queueRTTBucket(i+1) {
			t.Fatalf("%d ms are in bucket %d, of %d to %d", ms, i, queueRTTBucket(i), queueRTTBucket(i+1))
		}
	}
	var r QueueRTT
	for i := range uint32(100) {
		r.Count(31 + i/98*169)
	}
	if r.Samples != 100 || r.Median < 28 || r.Median > 31 || r.P99 < 192 || r.P99 > 223 {
		t.Errorf("%d samples, median %v, p99 %v", r.Samples, r.Median, r.P99)
	}
}

// BenchmarkQueued measures packets of a known TCP connection that meet a queue: the figure is the median of
// what the kernel says of each run. It tells builds apart that run in turn.
func BenchmarkQueued(b *testing.B) {
	const forth, back = "tcp 192.168.1.10:4000 > 203.0.113.1:80", "tcp 203.0.113.1:80 > 192.168.1.10:4000"
	for _, name := range []string{"acknowledgement", "data", "acknowledgement awaited", "data followed"} {
		b.Run(name, func(b *testing.B) {
			h := newQueued(b, "queue up on wan0 bandwidth 10G default\nqueue down on wan0 in bandwidth 10G default\npass")
			h.in(h.xdp, "lan", forth+" S seq 1000")
			h.in(h.xdp, "wan", back+" SA seq 5000 ack 1001")
			text := forth + " A seq 1001 ack 5001"
			if strings.HasPrefix(name, "data") {
				text += " len 10"
			}
			_, frame := h.arrive("lan", text)
			check(b, changeArray(h.dp.objects.Maps[mapQueueCounters], func(raw []xdpQueueCounter) {
				for i := range raw {
					raw[i].Until = raw[i].Sent + 1<<42
				}
			}))
			if strings.Contains(name, " ") { // its slot is under way, and stays so
				check(b, changeArray(h.dp.objects.Maps[mapQueueData], func(raw []xdpQueueSection) {
					for i := range raw[0].On {
						trip := &raw[0].Trips[i]
						raw[0].On[i], trip.Ms = tripUnderWay, raw[0].Clock.Ms+1<<30
						trip.Number, trip.End = uint32(i)<<1|1, 6000
						if strings.HasPrefix(name, "data") {
							trip.Number, trip.End = uint32(i)<<1, 1001
						}
					}
				}))
			}
			t := newTimer(h, h.net.lan0, frame)
			defer t.pins.Unpin()
			t.run.repeat = 1000
			for b.Loop() {
				t.once(b)
			}
			b.ReportMetric(t.share(2), "ns/packet")
			b.ReportMetric(0, "ns/op")
		})
	}
}
