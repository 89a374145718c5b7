package sample

import (
	"context"
	"math"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"weir/internal/host/proc"
	"weir/internal/testenv"
)

func TestCores(t *testing.T) {
	before := proc.Times{User: 5, Nice: 5, System: 1, Idle: 100, IOWait: 25, IRQ: 4, Softirq: 5, Steal: 5}
	now := proc.Times{User: 10, Nice: 10, System: 31, Idle: 120, IOWait: 30, IRQ: 9, Softirq: 30, Steal: 10}
	want := Core{ID: 3, Busy: 0.75, Softirq: 0.25, User: 0.1, Steal: 0.05}
	if got := coreOf(3, now, before); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	back := now
	back.Idle = 0 // the kernel has corrected it
	if got := coreOf(3, back, before); got.Busy != 1-5.0/80 {
		t.Errorf("idle time went back: %+v", got)
	}
	if got := coreOf(3, before, before); got != (Core{ID: 3}) {
		t.Errorf("in no time: %+v", got)
	}
}

func TestSoftnet(t *testing.T) {
	at := func(n uint32) *reading {
		return &reading{cores: map[int]proc.Times{0: {}}, softnet: map[int]procfs.SoftnetStat{0: {Processed: n}}}
	}
	if p := at(4).since(at(math.MaxUint32)); p.Cores[0].Packets != 5 {
		t.Errorf("a counter that has wrapped: %+v", p.Cores)
	}
}

// TestThisMachine samples while datagrams cross lo, and has to see them.
func TestThisMachine(t *testing.T) {
	s, err := Open("")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 3*Interval)
	defer cancel()
	go func() {
		for ctx.Err() == nil {
			_, _ = c.WriteTo(make([]byte, 100), c.LocalAddr())
			time.Sleep(time.Millisecond)
		}
	}()
	var points []Point
	if err := s.Watch(ctx, func(p Point) { points = append(points, p) }); err != nil {
		t.Fatal(err)
	}
	if len(points) < 2 {
		t.Fatalf("%d points", len(points))
	}
	var lo uint64
	for i, p := range points {
		if err := p.Check(); err != nil {
			t.Error(err)
		}
		if len(p.Cores) == 0 || p.Took <= 0 || i > 0 && p.At <= points[i-1].At {
			t.Errorf("point %d: %+v", i, p)
		}
		for _, l := range p.Links {
			if l.Name == "lo" {
				lo += l.RxPackets
			}
		}
	}
	if lo < 50 {
		t.Errorf("%d packets on lo", lo)
	}
	if core, _ := Busiest(points); core < 0 {
		t.Error("no core is the busiest")
	}
}

func TestDropped(t *testing.T) {
	points := []Point{
		{Cores: []Core{{Dropped: 2}}, Links: []Link{{Name: "eth0", RxDropped: 1, QueueDrops: 4}}, Drops: map[string]uint64{"no-rule": 5}},
		{Drops: map[string]uint64{"no-rule": 1}},
	}
	want := map[string]uint64{"the kernel's backlog": 2, "eth0 on reception": 1, "eth0, its queue": 4, "weir: no-rule": 6}
	if diff := cmp.Diff(want, Dropped(points)); diff != "" {
		t.Error(diff)
	}
}

func TestForeignPoints(t *testing.T) {
	for name, p := range map[string]Point{
		"busy twice": {Cores: []Core{{Busy: 2}}}, "negative": {Took: -1}, "no number": {Cores: []Core{{Softirq: math.NaN()}}},
		"cores": {Cores: make([]Core, maxCores+1)}, "name": {Links: []Link{{Name: string(make([]byte, 1000))}}},
	} {
		if p.Check() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// TestOpenInOwnMounts: a program with mounts of its own, as ip netns exec and containers
// make them, can read the machine, with or without weir's counters.
func TestOpenInOwnMounts(t *testing.T) {
	testenv.NeedRoot(t)
	opened := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with its mounts
		if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
			opened <- err
			return
		}
		s, err := Open("")
		if err == nil {
			err = s.Close()
		}
		opened <- err
	}()
	if err := <-opened; err != nil {
		t.Error(err)
	}
}
