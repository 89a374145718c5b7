package cpu

import (
	"math"
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/host/proc"
)

var coreTimes = map[int]proc.Times{
	0:  {User: 50, Nice: 5, System: 40, Idle: 500, IOWait: 10, Softirq: 3, Steal: 2},
	1:  {User: 60, System: 50, Idle: 500, Softirq: 3},
	10: {User: 70, System: 50, Idle: 500, Softirq: 3},
}

func TestSumCores(t *testing.T) {
	got, err := sum(coreTimes, []int{1, 0})
	if err != nil {
		t.Fatal(err)
	}
	if want := (Time{Idle: 10.1, Foreign: 1.17}); math.Abs(got.Idle-want.Idle) > 1e-9 || math.Abs(got.Foreign-want.Foreign) > 1e-9 {
		t.Errorf("%+v, want %+v", got, want)
	}
	if _, err := sum(coreTimes, []int{0, 7}); err == nil {
		t.Error("a core that is not there is not missed")
	}
}

func TestDisturbed(t *testing.T) {
	for _, c := range []struct {
		what          string
		idle, foreign float64
		took, worked  float64
		cores         int
		want          float64
	}{
		{"only its own setting up was idle", 0.03, 0, 1.03, 1, 1, 0},
		{"idle while it should work", 0.08, 0, 1.03, 1, 1, 0.05},
		{"another program", 0.03, 0.1, 1.03, 1, 1, 0.1},
		{"nothing came", 0, 0, 1, 0, 1, 1},
		{"two cores' setting up", 0.06, 0, 1.03, 1, 2, 0},
		{"one of two was done early", 0.16, 0, 1.03, 1, 2, 0.05},
		{"another program on one of two", 0.06, 0.1, 1.03, 1, 2, 0.05},
	} {
		if got := Disturbed(Time{1, 1}, Time{1 + c.idle, 1 + c.foreign}, c.took, c.worked, c.cores); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
}

func TestBusy(t *testing.T) {
	for _, c := range []struct {
		idle float64
		n    int
		want float64
	}{{2, 1, 0}, {1, 1, 0.5}, {1, 2, 0.75}, {2.02, 1, 0}, {0, 0, 0}} {
		if got := Busy(Time{Idle: 5}, Time{Idle: 5 + c.idle}, 2, c.n); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("idle for %v s of 2 on %d cores: %v, want %v", c.idle, c.n, got, c.want)
		}
	}
}

// The time of this process grows by the work that it does, as the kernel's clock of its
// CPU time does. How long that takes on a busy machine does not matter.
func TestProcessTime(t *testing.T) {
	clock := func() float64 {
		var now unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &now); err != nil {
			t.Fatal(err)
		}
		return time.Duration(now.Nano()).Seconds()
	}
	began := clock()
	before, err := ProcessTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for clock()-began < 0.2 {
	}
	after, err := ProcessTime(os.Getpid())
	if worked := clock() - began; err != nil || math.Abs(after-before-worked) > 0.05 {
		t.Errorf("%v s of work, of %v s by the clock, %v", after-before, worked, err)
	}
	if _, err := ProcessTime(-1); err == nil {
		t.Error("a process that is none has a time")
	}
}

// TestInterruptTime: the time grows, and by less than all cores could have spent.
func TestInterruptTime(t *testing.T) {
	begin := time.Now()
	before, err := InterruptTime()
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond)
	after, err := InterruptTime()
	if most := float64(runtime.NumCPU())*time.Since(begin).Seconds() + 0.1; err != nil || before <= 0 || after < before || after-before > most {
		t.Errorf("%v s, then %v s: %v", before, after, err)
	}
}
