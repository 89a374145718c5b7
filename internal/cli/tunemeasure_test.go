package cli

import (
	"context"
	"errors"
	"math"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/host/doctor"
	"weir/internal/host/tune"
	"weir/internal/host/tune/db"
)

// Two cores over two seconds. The kernel used one second of their time, in which a card
// took 200,000 packets and missed 2,000.
func snapshot() *doctor.Snapshot {
	return &doctor.Snapshot{
		Seconds: 2,
		Interfaces: []doctor.Interface{
			{Name: "eth0", Kind: "physical"}, {Name: "br0", Kind: "bridge"}, {Name: "veth1", Kind: "veth"},
		},
		Before: &doctor.Counters{
			CPUs:  map[int]doctor.CPUTimes{0: {Idle: 100}, 1: {Idle: 100}},
			Links: map[string]doctor.Link{"eth0": {RxPackets: 1000, RxMissed: 5}, "br0": {}, "veth1": {}},

			Softnet: map[int]doctor.Softnet{0: {}},
		},
		After: &doctor.Counters{
			CPUs: map[int]doctor.CPUTimes{0: {Idle: 200, Softirq: 80, IRQ: 10, System: 10}, 1: {Idle: 260, User: 40}},
			Links: map[string]doctor.Link{
				"eth0": {RxPackets: 201_000, RxMissed: 1005}, "br0": {RxPackets: 200_000}, "veth1": {RxPackets: 100_000},
			},
			Softnet: map[int]doctor.Softnet{0: {Dropped: 1000}},
		},
	}
}

func TestLiveRate(t *testing.T) {
	// 400 ticks are two cores for two seconds, so 100 of them are one second.
	got, err := liveRate(snapshot(), "eth0")
	if err != nil || math.Abs(got.Rate-200_000) > 1 || math.Abs(got.Loss-2000.0/202_000) > 1e-9 {
		t.Errorf("%+v, %v", got, err)
	}
	// A virtual card counts if it is the card under test.
	if got, err := liveRate(snapshot(), "veth1"); err != nil || math.Abs(got.Rate-300_000) > 1 {
		t.Errorf("of a veth: %+v, %v", got, err)
	}
	// A counter that went back, or did not exist before, has not grown.
	odd := snapshot()
	odd.Before.CPUs[1] = doctor.CPUTimes{Idle: 100, IOWait: 7}
	odd.After.CPUs[2] = doctor.CPUTimes{Idle: 1e9, System: 1e6}
	odd.After.Softnet[2] = doctor.Softnet{Dropped: 1e6}
	odd.Interfaces = append(odd.Interfaces, doctor.Interface{Name: "eth9", Kind: "physical"})
	odd.After.Links["eth9"] = doctor.Link{RxPackets: 1e9}
	if got, err := liveRate(odd, "eth0"); err != nil || math.Abs(got.Rate-200_000) > 1 || math.Abs(got.Loss-2000.0/202_000) > 1e-9 {
		t.Errorf("counters that went back: %+v, %v", got, err)
	}
	idle := snapshot()
	idle.After.Links["eth0"] = doctor.Link{RxPackets: 1100, RxMissed: 5}
	if _, err := liveRate(idle, "eth0"); err == nil || !strings.Contains(err.Error(), "measure under load") {
		t.Errorf("idle: %v", err)
	}
	once := snapshot()
	once.After = nil
	if _, err := liveRate(once, "eth0"); err == nil {
		t.Error("one sample is enough")
	}
}

// If the machine counts cycles, they are the cost of a packet.
func TestCycleRate(t *testing.T) {
	got, err := cycleRate(snapshot(), "eth0", 400e6)
	if err != nil || math.Abs(got.Rate-500) > 1e-9 || math.Abs(got.Loss-2000.0/202_000) > 1e-9 {
		t.Errorf("200,000 packets in 400 million cycles: %+v, %v", got, err)
	}
	if _, err := cycleRate(snapshot(), "eth0", 0); err == nil {
		t.Error("packets cost nothing")
	}
	m := &cycleMeasurer{&liveMeasurer{read: func(context.Context, time.Duration) (*doctor.Snapshot, error) {
		time.Sleep(20 * time.Millisecond)
		return snapshot(), nil
	}}, func() (*coreCounter, error) { // every machine counts this event
		return countOnCores(unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_CPU_CLOCK, "time")
	}}
	change := &tune.Change{Key: "nic.eth0.lro", Card: "eth0"}
	if why := m.Blind(change); why != "" {
		t.Fatal(why)
	}
	// at least 20 ms of one core, at most a minute of a thousand
	if got, err := m.Measure(t.Context(), change, ""); err != nil || got.Rate < 1e6*200_000/6e13 || got.Rate > 1e6*200_000/2e7 {
		t.Errorf("by a clock: %+v, %v", got, err)
	}
	if why := m.Blind(&tune.Change{Key: "cpu.governor"}); !strings.Contains(why, "clock") {
		t.Errorf("the governor: %q", why)
	}
	m.open = func() (*coreCounter, error) { return countOnCores(unix.PERF_TYPE_HARDWARE, 1<<30, "wonders") }
	if why := m.Blind(change); !strings.Contains(why, "does not count wonders") {
		t.Errorf("an event that no machine has: %q", why)
	}
}

// Which measurer measures which settings, and why not others.
func TestBlind(t *testing.T) {
	lab, live := newLabMeasurer("kernel"), &liveMeasurer{}
	for _, c := range []struct {
		change    tune.Change
		lab, live string
	}{
		{tune.Change{Key: "net.ipv4.ip_early_demux", Scope: "namespace", Role: db.Forwarder}, "", "cannot show its effect"},
		{tune.Change{Key: "net.core.netdev_budget", Scope: "host", Role: db.Forwarder}, "", "cannot show its effect"},
		{tune.Change{Key: "net.netfilter.nf_conntrack_max", Scope: "host", Role: db.Forwarder}, "room", "cannot show its effect"},
		{tune.Change{Key: "net.ipv4.tcp_rmem", Scope: "namespace", Role: db.Endpoint}, "end on the host", "cannot show its effect"},
		{tune.Change{Key: "net.ipv4.conf.all.accept_redirects", Scope: "namespace", Role: db.Hardening}, "does not affect speed", "cannot show its effect"},
		{tune.Change{Key: "nic.eth0.lro", Card: "eth0", Role: db.Forwarder}, "no card", ""},
		{tune.Change{Key: "cpu.governor", Role: db.Forwarder}, "no card", ""},
	} {
		for name, got := range map[string][2]string{"lab": {lab.Blind(&c.change), c.lab}, "live": {live.Blind(&c.change), c.live}} {
			if !strings.Contains(got[0], got[1]) || (got[0] == "") != (got[1] == "") {
				t.Errorf("%s: %s: %q, want %q", c.change.Key, name, got[0], got[1])
			}
		}
	}
}

// The reader may go. A process that has changes to undo lives on.
func TestTuneOutlivesPipe(t *testing.T) {
	const child = "WEIR_TEST_BROKEN_PIPE"
	if os.Getenv(child) != "" {
		defer outlivePipe()()
		for range 3 {
			if _, err := os.Stdout.WriteString("round\n"); !errors.Is(err, unix.EPIPE) {
				os.Exit(3)
			}
		}
		os.Exit(42)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestTuneOutlivesPipe$")
	// It ends without tidying up.
	c.Env, c.Stdout = append(os.Environ(), child+"=1", "TMPDIR="+t.TempDir()), w
	if err := errors.Join(r.Close(), c.Start(), w.Close()); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := c.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 42 {
		t.Errorf("it ended with %v", err)
	}
}
