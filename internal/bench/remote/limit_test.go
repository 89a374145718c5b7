package remote

import (
	"errors"
	"math"
	"net/netip"
	"strings"
	"testing"
	"time"
)

func aRun() Run {
	return Run{Case: Case{TCP, Up, 2, 1e9, 0}, Omit: time.Second, Count: 3 * time.Second}
}

func TestGrant(t *testing.T) {
	l := Limits{Rate: 1e6, Run: 2500 * time.Millisecond, Session: time.Minute, Data: 1, Connections: 3}
	asked := aRun()
	asked.Connections, asked.Rate = 8, 0
	got, cut, err := l.grant(asked, 1e12)
	if err != nil || got.Connections != 3 || got.Rate != 1e6 || got.time() != 2*time.Second || len(cut) != 2 {
		t.Errorf("granted %+v, cut %q, %v", got, cut, err)
	}
	if got, cut, err := (Limits{Run: time.Minute, Connections: 64}).grant(asked, 1); err != nil || got != asked || len(cut) != 0 {
		t.Errorf("without bounds: %+v, cut %q, %v", got, cut, err)
	}
	// 1 Mbit/s is 125,000 bytes a second.
	for left, want := range map[int64]time.Duration{600e3: 2 * time.Second, 130e3: time.Second, 120e3: 0, 0: 0, -5: 0} {
		got, _, err := l.grant(asked, left)
		if want == 0 {
			if !errors.Is(err, errBudget) {
				t.Errorf("%d bytes left: %+v, %v; want %v", left, got, err, errBudget)
			}
			continue
		}
		if err != nil || got.time() != want || got.check() != nil {
			t.Errorf("%d bytes left: %+v, %v; want %s", left, got, err, want)
		}
	}
	asked.Direction = Both
	if _, _, err := l.grant(asked, 130e3); !errors.Is(err, errBudget) {
		t.Errorf("both directions with data for one: %v", err)
	}
}

func TestNoMoreThanAsked(t *testing.T) {
	asked := aRun()
	for name, change := range map[string]func(*Run){
		"more connections": func(r *Run) { r.Connections++ },
		"another way":      func(r *Run) { r.Direction = Both },
		"another protocol": func(r *Run) { r.Protocol = UDP },
		"a higher rate":    func(r *Run) { r.Rate *= 2 },
		"longer":           func(r *Run) { r.Count *= 2 },
		"larger":           func(r *Run) { r.Payload = 100 },
	} {
		g := asked
		change(&g)
		if g.noMore(&asked) == nil {
			t.Errorf("%s than asked for is accepted", name)
		}
	}
	less := asked
	less.Connections, less.Rate, less.Count = 1, 1e6, time.Second
	if err := less.noMore(&asked); err != nil {
		t.Errorf("less than asked for: %v", err)
	}
}

func TestPlain(t *testing.T) {
	for in, want := range map[string]string{
		"weir-fw": "weir-fw", "\x1b[2Jgone\r\n": "?[2Jgone??", "über": "über", "\xff\xfe": "??", "a\u202eb": "a?b",
		strings.Repeat("ü", maxText): strings.Repeat("ü", maxText/2),
	} {
		if got := plain(in); got != want {
			t.Errorf("plain(%q) = %q, want %q", in, got, want)
		}
	}
}

// TestOddRuns: both sides reject a run whose frame size does not fit its datagrams, or
// that Ethernet cannot carry.
func TestOddRuns(t *testing.T) {
	for name, change := range map[string]func(*Run){
		"no protocol":      func(r *Run) { r.Protocol = "icmp" },
		"no direction":     func(r *Run) { r.Direction = "" },
		"too many":         func(r *Run) { r.Connections = 1e6 },
		"not a rate":       func(r *Run) { r.Rate = Rate(math.NaN()) },
		"no rate":          func(r *Run) { r.Rate = 0 },
		"no time":          func(r *Run) { r.Count = 0 },
		"negative time":    func(r *Run) { r.Omit = -1 },
		"too long":         func(r *Run) { r.Count = math.MaxInt64 },
		"oversized":        func(r *Run) { r.Payload, r.Frame = maxPayload+1, maxPayload+1+overhead4 },
		"another payload":  func(r *Run) { r.Payload /= 2 },
		"negative payload": func(r *Run) { r.Payload = -r.Payload },
	} {
		asked := Case{UDP, Up, 1, 1e6, 1518}.request(netip.MustParseAddr("192.0.2.1"), time.Second)
		change(&asked)
		if err := asked.check(); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}
