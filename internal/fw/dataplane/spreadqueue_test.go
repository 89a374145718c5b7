package dataplane

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weir/internal/fw/bpfload"
	"weir/internal/fw/limits"
)

// TestSpreadFull checks that frames are dropped with a reason when too many wait for a core, and that a core for which
// none can wait is given frames again.
func TestSpreadFull(t *testing.T) {
	s := newSpreadNet(t, "pass")
	s.give(s.other+1, 1)
	time.Sleep(50 * time.Millisecond)
	s.forget()
	const text = "icmp 192.168.1.10 > 192.168.1.1 type 8 id 3"
	wait := func(ago uint32) {
		s.core(func(c *xdpSpreadCore) {
			s.waits(c, limits.SpreadRoom)
			c.Tick -= ago
		})
	}
	wait(0)
	if got := s.answers(text, time.Second); got != "nothing" {
		t.Errorf("with a full queue: %s", got)
	}
	if got := s.counts(s.net.lan0); !slices.Contains(strings.Fields(got), "queue") { // the kernel may send something, too
		t.Errorf("counted: %s", got)
	}
	if full := must(s.dp.HandedOver())(t)[s.other].Full; full != 1 {
		t.Errorf("%d frames found no room", full)
	}
	wait(100)
	if got := s.answers(text, spreadPatience); got != "icmp 192.168.1.1 > 192.168.1.10 id 3" {
		t.Errorf("a second later: %s", got)
	}
}

// TestSpreadLeaves checks that a bucket leaves a core whose queue is long although its frames come without a rest: they
// are dropped until those before have been taken.
func TestSpreadLeaves(t *testing.T) {
	s := newSpreadNet(t, "pass")
	const text, answer = "icmp 192.168.1.10 > 192.168.1.1 type 8 id 3", "icmp 192.168.1.1 > 192.168.1.10 id 3"
	s.give(s.other+1, 1)
	if got := s.answers(text, spreadPatience); got != answer {
		t.Fatalf("by the other core: %s", got)
	}
	queue := func(frames uint32) { s.core(func(c *xdpSpreadCore) { s.waits(c, frames) }) }
	queue(limits.SpreadLeave)
	if got := s.answers(text, spreadPatience); got != answer {
		t.Errorf("a bucket that stays has no room: %s", got)
	}
	s.give(0, 1)
	queue(limits.SpreadLeave)
	before := must(s.dp.HandedOver())(t)[s.other]
	if got := s.answers(text, time.Second); got != "nothing" {
		t.Errorf("a bucket that is to leave, with %d frames before it: %s", limits.SpreadLeave, got)
	}
	if now := must(s.dp.HandedOver())(t)[s.other]; now.Full != before.Full || now.Given != before.Given {
		t.Errorf("before %+v, now %+v", before, now)
	}
	s.core(func(c *xdpSpreadCore) { s.takes(c, c.Given-c.Taken) })
	if got := s.answers(text, spreadPatience); got != answer {
		t.Errorf("when all were taken: %s", got)
	}
	if now := must(s.dp.HandedOver())(t)[s.other]; now.Given != before.Given {
		t.Errorf("%d more frames were handed over", now.Given-before.Given)
	}
}

// lessRoom gives the generation in force a queue with less room, as other versions had, and a share that the core has.
func (s *spreadNet) lessRoom(text, answer string) {
	s.tb.Helper()
	s.give(s.other+1, 1)
	frames := s.dp.objects.Maps[mapSpreadFrames]
	check(s.tb, frames.Delete(uint32(s.other)))
	must(bpfload.OpenCoreWith(frames, uint32(s.other), limits.SpreadRoom, s.dp.objects.Programs[programSpreadTake]))(s.tb)
	s.byOther(text, answer)
}

// byOther checks that the other core answers.
func (s *spreadNet) byOther(text, answer string) {
	s.tb.Helper()
	before := must(s.dp.HandedOver())(s.tb)[s.other]
	if got := s.answers(text, spreadPatience); got != answer {
		s.tb.Errorf("%s: %s", text, got)
	}
	if now := must(s.dp.HandedOver())(s.tb)[s.other]; now.Taken != before.Taken+1 {
		s.tb.Errorf("%d frames were taken by the other core, not 1", now.Taken-before.Taken)
	}
}

// TestSpreadQueues checks that queues of another version with less room are not taken over: the kernel would drop
// what does not fit, and nothing would count it. The next generation begins without shares.
func TestSpreadQueues(t *testing.T) {
	s := newSpreadNet(t, "pass")
	const text, answer = "icmp 192.168.1.10 > 192.168.1.1 type 8 id 3", "icmp 192.168.1.1 > 192.168.1.10 id 3"
	s.give(s.other+1, 1)
	if !must(queuesFit(s.dp.objects.Maps[mapSpreadFrames]))(t) {
		t.Error("queues of this version do not fit")
	}
	s.lessRoom(text, answer)
	before := s.dp
	s.load(true)
	if now := must(before.Shares(s.net.lan0))(t); now.Wanted != [SpreadBuckets]uint8{} {
		t.Errorf("frames of the generation before were not taken back: %v", now.Wanted)
	}
	if now := must(s.dp.Shares(s.net.lan0))(t); now.Known {
		t.Errorf("shares of queues with less room go on: %v", now.Wanted)
	}
	if room := must(bpfload.CoreRoom(s.dp.objects.Maps[mapSpreadFrames], uint32(s.other)))(t); room != 0 {
		t.Errorf("a queue of %d frames goes on", room)
	}
	if got := s.answers(text, spreadPatience); got != answer {
		t.Errorf("without shares: %s", got)
	}
	s.give(s.other+1, 1)
	if got := s.answers(text, spreadPatience); got != answer {
		t.Errorf("by the other core: %s", got)
	}
	if room := must(bpfload.CoreRoom(s.dp.objects.Maps[mapSpreadFrames], uint32(s.other)))(t); room != spreadQueue {
		t.Errorf("a queue of %d frames, not %d", room, spreadQueue)
	}
}

// TestSpreadFormat checks that the maps of a version whose programs count otherwise are not taken over: a bucket
// would wait for ever, or not at all.
func TestSpreadFormat(t *testing.T) {
	s := newSpreadNet(t, "pass")
	const text, answer = "icmp 192.168.1.10 > 192.168.1.1 type 8 id 3", "icmp 192.168.1.1 > 192.168.1.10 id 3"
	s.give(s.other+1, 1)
	s.byOther(text, answer)
	s.load(true)
	if now := must(s.dp.Shares(s.net.lan0))(t); !now.Known {
		t.Error("the shares of this version do not go on")
	}
	s.byOther(text, answer)
	check(t, changeArray(s.dp.objects.Maps[mapSpreadSlots], func(slots []xdpSpreadSlot) { slots[0].Format = 0 }))
	before := s.dp
	s.load(true)
	if now := must(before.Shares(s.net.lan0))(t); now.Wanted != [SpreadBuckets]uint8{} {
		t.Errorf("frames of the generation before were not taken back: %v", now.Wanted)
	}
	if now := must(s.dp.Shares(s.net.lan0))(t); now.Known {
		t.Errorf("shares of another version go on: %v", now.Wanted)
	}
	s.give(s.other+1, 1)
	time.Sleep(50 * time.Millisecond)
	s.byOther(text, answer)
}

// TestSpreadSharedCore checks that frames of an interface which wait for a core are not taken for those of another
// interface, which another core has given: they may have been given before, and wait behind these. So a bucket
// of theirs would be overtaken.
func TestSpreadSharedCore(t *testing.T) {
	const others = 4 * limits.SpreadTaken
	s := newSpreadNet(t, "pass")
	frame := parsePkt("udp 192.168.1.10:4000 > 198.51.100.9:53 len 40").frame(lanHostMAC, lan0MAC)
	other := parsePkt("udp 198.51.100.9:53 > 192.168.1.10:4000 len 40").frame(wanHostMAC, wan0MAC)
	send := func(ifindex int, frame []byte) error {
		_, err := bpfload.RunXDP(s.dp.objects.Programs[programSpread], bpfload.Run{Frame: slices.Clone(frame), Ifindex: ifindex})
		return err
	}
	s.give(0, 1)
	bucket := s.bucket(frame)
	var shares [SpreadBuckets]uint8
	for i := range shares {
		shares[i] = uint8(s.other + 1)
	}
	check(t, s.dp.SetShares(s.net.lan0, &shares))
	check(t, s.dp.SetShares(s.net.wan0, &shares))
	time.Sleep(50 * time.Millisecond) // so that buckets get their core
	core := func() int { return int(must(s.dp.Shares(s.net.lan0))(t).Cores[bucket]) }
	move := func(core int) {
		var one unix.CPUSet
		one.Set(core)
		check(t, unix.SchedSetaffinity(0, &one))
	}
	s.core(func(c *xdpSpreadCore) { // RunXDP hands none over, but the program counts it as given
		check(t, send(s.net.lan0, frame))
		move(s.other)
		for range others {
			check(t, send(s.net.wan0, other))
		}
		move(s.here)
		if waits := c.Given - c.Taken; waits != others+1 {
			t.Fatalf("%d frames wait, want %d", waits, others+1)
		}
		// The core has taken those of wan0: that of lan0 has come behind them.
		c.Taken += others
		c.Took[s.net.wan0%limits.SpreadSlots] += others
		shares = [SpreadBuckets]uint8{}
		check(t, s.dp.SetShares(s.net.lan0, &shares))
		check(t, send(s.net.lan0, frame))
		if got := core(); got != s.other+1 {
			t.Errorf("core %d has the bucket, and a frame of it still waits for core %d", got-1, s.other)
		}
		s.takes(c, 2)
		time.Sleep(50 * time.Millisecond)
		check(t, send(s.net.lan0, frame))
		if got := core(); got != 0 {
			t.Errorf("all were taken, and core %d has the bucket", got-1)
		}
	})
}

// TestSpreadQueuesOfFailedLoad checks that a load which fails leaves shares as they are, also if its queues are others:
// before it is committed, and when that fails.
func TestSpreadQueuesOfFailedLoad(t *testing.T) {
	s := newSpreadNet(t, "pass")
	const text, answer = "icmp 192.168.1.10 > 192.168.1.1 type 8 id 3", "icmp 192.168.1.1 > 192.168.1.10 id 3"
	s.lessRoom(text, answer)
	want := must(s.dp.Shares(s.net.lan0))(t).Wanted
	still := func(when string) {
		t.Helper()
		if now := must(s.dp.Shares(s.net.lan0))(t); now.Wanted != want {
			t.Errorf("%s, shares are others: %v", when, now.Wanted)
		}
		s.byOther(text, answer)
	}
	next := build(t, s.config())
	check(t, next.Spread(s.net.lan0, true))
	still("when it is built")
	elsewhere := s.net.blank()
	elsewhere.Dir += "2"
	foreign := build(t, elsewhere)
	check(t, netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "other0"}, PeerName: "other0-far"}))
	taken := must(netlink.LinkByName("other0"))(t).Attrs().Index
	link := must(bpfload.Attach(foreign.objects.Programs["weir_xdp_miss"], bpfload.XDP, taken))(t)
	defer link.Close()
	all := append(s.net.attachments(true), Attachment{Name: "other0", Ifindex: taken, XDP: true})
	if _, err := next.Commit(all); !errors.Is(err, ErrForeign) {
		t.Fatalf("commit over a foreign program: %v", err)
	}
	still("when its commit has failed")
	check(t, next.Close())
	still("when it is closed")
}

// TestSpreadHeavyLeaves plays a core that works off less than it is given: what waits there at two looks of the daemon is
// a queue that does not empty. A heavy bucket whose frames come without a rest leaves it all the same.
func TestSpreadHeavyLeaves(t *testing.T) {
	s := newSpreadNet(t, "pass")
	s.give(0, 1)
	heavy := parsePkt("udp 192.168.1.10:4000 > 198.51.100.9:53 len 40").frame(lanHostMAC, lan0MAC)
	bucket := s.bucket(heavy)
	var light []byte
	for port := 4001; light == nil || s.bucket(light) == bucket; port++ {
		light = parsePkt(fmt.Sprintf("udp 192.168.1.10:%d > 198.51.100.9:53 len 40", port)).frame(lanHostMAC, lan0MAC)
	}
	for _, c := range []struct {
		what  string
		turn  [][]byte // that come in
		taken uint32   // meanwhile
	}{
		{"beside as many of others", [][]byte{heavy, light}, 2},
		{"beside a few of others", [][]byte{heavy, heavy, heavy, light}, 3},
		{"alone", [][]byte{heavy, heavy}, 1},
	} {
		core := func() int { return int(must(s.dp.Shares(s.net.lan0))(t).Cores[bucket]) }
		send := func(frame []byte) {
			must(bpfload.RunXDP(s.dp.objects.Programs[programSpread], bpfload.Run{Frame: slices.Clone(frame), Ifindex: s.net.lan0}))(t)
		}
		var shares [SpreadBuckets]uint8
		for i := range shares {
			shares[i] = uint8(s.other + 1)
		}
		check(t, s.dp.SetShares(s.net.lan0, &shares))
		time.Sleep(50 * time.Millisecond) // so that buckets get their core
		for _, frame := range c.turn {    // RunXDP hands none over, but the program counts it as given
			send(frame)
		}
		s.core(func(queue *xdpSpreadCore) {
			s.takes(queue, queue.Given-queue.Taken)
			for queue.Given-queue.Taken < limits.SpreadStanding {
				send(heavy)
			}
			if got := core(); got != s.other+1 {
				t.Fatalf("%s: core %d has the bucket, not %d", c.what, got-1, s.other)
			}
			shares[bucket] = 0
			check(t, s.dp.SetShares(s.net.lan0, &shares))
			turns := 0
			for deadline := time.Now().Add(spreadPatience); core() != 0 && time.Now().Before(deadline); turns++ {
				for _, frame := range c.turn {
					send(frame)
				}
				s.takes(queue, min(c.taken, queue.Given-queue.Taken))
				queue.Tick = s.dp.tables.shared.Now
			}
			if got := core(); got != 0 {
				t.Errorf("%s: core %d has the bucket after %d turns, and %d frames wait there", c.what, got-1, turns, queue.Given-queue.Taken)
			}
			s.takes(queue, queue.Given-queue.Taken)
		})
	}
}

// TestSpreadOldNumbers checks that a bucket leaves a core which was never given one of its frames: the first was dropped,
// and the number of its last frame is another core's.
func TestSpreadOldNumbers(t *testing.T) {
	s := newSpreadNet(t, "pass")
	s.give(0, 1)
	frame := parsePkt("udp 192.168.1.10:4000 > 198.51.100.9:53 len 40").frame(lanHostMAC, lan0MAC)
	bucket := s.bucket(frame)
	send := func() {
		must(bpfload.RunXDP(s.dp.objects.Programs[programSpread], bpfload.Run{Frame: slices.Clone(frame), Ifindex: s.net.lan0}))(t)
	}
	for _, ahead := range []uint32{1 << 15, 1<<15 + 5, 1<<16 - 1<<10} {
		s.give(s.other+1, 1)
		time.Sleep(50 * time.Millisecond) // so that it gets that core
		send()
		queue := func(frames uint32) {
			s.core(func(c *xdpSpreadCore) {
				s.waits(c, frames)
				check(t, changeArray(s.dp.objects.Maps[mapSpreadSlots], func(slots []xdpSpreadSlot) {
					slots[s.slot()].Bucket[bucket].Given = uint32(c.Took[s.slot()]) + ahead
				}))
			})
		}
		queue(limits.SpreadRoom)
		send() // finds no room
		s.give(0, 1)
		queue(limits.SpreadLeave)
		send()
		if now := must(s.dp.Shares(s.net.lan0))(t); now.Cores[bucket] != 0 {
			t.Errorf("%d frames ahead: core %d still has the bucket", ahead, now.Cores[bucket]-1)
		}
		queue(0)
	}
}
