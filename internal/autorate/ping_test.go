package autorate

import (
	"context"
	"encoding/csv"
	"log/slog"
	"math"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/testenv"
)

// The kernel answers for the box's own addresses: to requests for an echo, and for the time of
// day. Once the times have proven right, they say how long each way takes. An address that nobody has is
// lost.
func TestProber(t *testing.T) {
	testenv.NeedRoot(t)
	p, err := open([]netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("::1"), netip.MustParseAddr("127.0.0.2")}, "lo")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p.run(ctx)
	answers, split := make([]int, 3), make([]int, 3)
	for range 60 {
		for host := range 3 {
			p.ask(host)
		}
		time.Sleep(10 * time.Millisecond)
		done, _ := p.take()
		for _, probe := range done {
			if probe.Lost || probe.RTT < 0 || probe.RTT > time.Second {
				t.Errorf("a probe came back as %+v", probe)
			}
			answers[probe.Host]++
			if probe.Split {
				split[probe.Host]++
				if sum := probe.Ways[Up] + probe.Ways[Down] - probe.RTT; sum.Abs() > 3*time.Millisecond || probe.Ways[Up].Abs() > time.Second {
					t.Errorf("one-way delays of %v in %v", probe.Ways, probe.RTT)
				}
			}
		}
	}
	for host, n := range answers {
		if n < 50 || (split[host] > 40) != (host != 1) {
			t.Errorf("host %d: %d answers, %d of them for each way", host, n, split[host])
		}
	}
}

// A host's times count once some of them fit, and no more if they do not.
func TestTimesOfDay(t *testing.T) {
	for name, c := range map[string]struct {
		tells func(i int) time.Duration
		use   bool
	}{
		"right":         {func(i int) time.Duration { return time.Duration(i) * time.Second }, true},
		"over midnight": {func(i int) time.Duration { return (day - 5*time.Second + time.Duration(i)*time.Second) % day }, true},
		"always 0":      {func(int) time.Duration { return 0 }, false},
		"too fast":      {func(i int) time.Duration { return time.Duration(2*i) * time.Second }, false},
		"not UTC":       {func(i int) time.Duration { return day + time.Duration(i)*time.Second }, false},
	} {
		var h asked
		for i := range 10 {
			h.judge(c.tells(i), time.Duration(i+1)*time.Second, 10*time.Millisecond)
		}
		if h.told >= timesFit != c.use || h.wrong >= timesWrong == c.use {
			t.Errorf("%s: %+v", name, h)
		}
	}
}

// A fakeBox is a box whose queues carry what a test says.
type fakeBox struct {
	mu    sync.Mutex
	now   Traffic
	set   [][2]float64
	given int
}

func (b *fakeBox) Traffic() (Traffic, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for d := range b.now.Rates {
		bytes := uint64(b.now.Rates[d] / 8 * Interval.Seconds())
		b.now.Passed[d] += bytes
		b.now.Offered[d] += bytes
	}
	return b.now, nil
}

func (b *fakeBox) SetRate(_ context.Context, d int, rate float64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if rate == 0 {
		b.given++
		return nil
	}
	b.set = append(b.set, [2]float64{float64(d), rate})
	b.now.Rates[d] = rate
	return nil
}

func (*fakeBox) Waits(int, float64, time.Duration) {}

// While the queues are busy and nothing waits, rates are set up to their most, and all of it is in the log. A
// dry run sets none.
func TestFollower(t *testing.T) {
	testenv.NeedRoot(t)
	for _, dry := range []bool{false, true} {
		box := &fakeBox{now: Traffic{Rates: [2]float64{10e6, 0}}}
		var log strings.Builder
		f := &Follower{
			Config: Config{Bounds: [2]Bounds{{Min: 5e6, Base: 10e6, Max: 11e6}}, Delay: 30 * time.Millisecond},
			Hosts:  []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2")}, Device: "lo",
			DryRun: dry, Box: box, Log: &log, Say: slog.New(slog.DiscardHandler),
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer cancel()
		if err := f.Run(ctx); err != nil {
			t.Fatal(err)
		}
		lines, err := csv.NewReader(strings.NewReader(log.String())).ReadAll()
		if err != nil || len(lines) < 3 || len(lines[0]) != 13 {
			t.Fatalf("dry: %v: the log is %v\n%s", dry, err, log.String())
		}
		last := lines[len(lines)-1]
		switch {
		case dry && (len(box.set) > 0 || box.given > 0 || last[12] != "no"):
			t.Errorf("a dry run sets %v; the log ends with %v", box.set, last)
		case !dry && (len(box.set) < 3 || math.Abs(box.set[len(box.set)-1][1]-11e6) > 1e4 || box.given != 1):
			t.Errorf("the rates %v were set, and given back %d times", box.set, box.given)
		}
		if last[2] != "11.000" || last[6] != "" {
			t.Errorf("the log ends with %v", last)
		}
	}
}
