package dataplane

import (
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/fw/bpfload"
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
		check(t, changeArray(s.dp.objects.Maps[mapSpreadCores], func(cores []xdpSpreadCore) {
			c := &cores[s.other]
			c.Given, c.Tick = c.Taken+spreadRoom, s.dp.tables.shared.Now-ago
		}))
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
	queue := func(waits uint32) {
		check(t, changeArray(s.dp.objects.Maps[mapSpreadCores], func(cores []xdpSpreadCore) {
			c := &cores[s.other]
			c.Given, c.Tick = c.Taken+waits, s.dp.tables.shared.Now
		}))
	}
	queue(spreadLeave)
	if got := s.answers(text, spreadPatience); got != answer {
		t.Errorf("a bucket that stays has no room: %s", got)
	}
	s.give(0, 1)
	queue(spreadLeave)
	before := must(s.dp.HandedOver())(t)[s.other]
	if got := s.answers(text, time.Second); got != "nothing" {
		t.Errorf("a bucket that is to leave, with %d frames before it: %s", spreadLeave, got)
	}
	if now := must(s.dp.HandedOver())(t)[s.other]; now.Full != before.Full || now.Given != before.Given {
		t.Errorf("before %+v, now %+v", before, now)
	}
	check(t, changeArray(s.dp.objects.Maps[mapSpreadCores], func(cores []xdpSpreadCore) { cores[s.other].Taken = cores[s.other].Given }))
	if got := s.answers(text, spreadPatience); got != answer {
		t.Errorf("when all were taken: %s", got)
	}
	if now := must(s.dp.HandedOver())(t)[s.other]; now.Given != before.Given {
		t.Errorf("%d more frames were handed over", now.Given-before.Given)
	}
}

// TestSpreadQueues checks that queues of another version with less room are not taken over: the kernel would drop
// what does not fit, and nothing would count it. The next generation begins without shares.
func TestSpreadQueues(t *testing.T) {
	s := newSpreadNet(t, "pass")
	const text, answer = "icmp 192.168.1.10 > 192.168.1.1 type 8 id 3", "icmp 192.168.1.1 > 192.168.1.10 id 3"
	s.give(s.other+1, 1)
	before := s.dp.objects.Maps[mapSpreadFrames]
	if !must(queuesFit(before))(t) {
		t.Error("queues of this version do not fit")
	}
	check(t, before.Delete(uint32(s.other)))
	must(bpfload.OpenCoreWith(before, uint32(s.other), spreadRoom, s.dp.objects.Programs[programSpreadTake]))(t)
	s.load(true)
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
