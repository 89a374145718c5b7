package ladder

import (
	"math"
	"strings"
	"testing"

	"weir/internal/stats"
)

// around returns five runs with a spread of a hundredth.
func around(v float64) stats.Sample { return stats.Sample{v, v * 1.005, v * 0.995, v * 1.01, v * 0.99} }

func pair(alone, first, second float64) *pairFigures {
	return &pairFigures{around(alone), around(first), around(second)}
}

// wild returns five runs around a value with a spread of a third.
func wild(v float64) stats.Sample {
	return stats.Sample{v, v * 1.35, v * 0.65, v * 1.2, v * 0.8}
}

// TestPairVerdict draws conclusions from known figures. The first ones are those of a
// firewall that splits the rate of a single pair. Runs that spread too much prove
// nothing, even with equal medians.
func TestPairVerdict(t *testing.T) {
	direct := pair(5.74, 5.7, 5.7)
	for _, test := range []struct {
		name   string
		pairs  *pairFigures
		direct *pairFigures
		want   string
	}{
		{"4.29 alone, 2.07 and 2.26 together", pair(4.29, 2.07, 2.26), direct, "an even split of the single rate: the firewall is the limit"},
		{"the same, the wire not measured", pair(4.29, 2.07, 2.26), nil, "not decided: without the direct wire"},
		{"twice as much", pair(4.29, 4.2, 4.3), pair(6, 6, 6), "two pairs carry 2.0 times what one does: one connection was held back"},
		{"as much as without a firewall", pair(4.29, 2.07, 2.26), pair(5, 2.15, 2.25), "the hosts are the limit"},
		{"unevenly", pair(4, 3.2, 0.8), direct, "split 80 : 20: the firewall is the limit, and does not share it evenly"},
		{"less than one", pair(4, 1, 1), direct, "they hinder each other"},
		{"one alone spreads", &pairFigures{wild(4.29), around(2.07), around(2.26)}, direct, "not decided: two pairs carry 1.0 times"},
		{"the wire spreads", pair(4.29, 2.07, 2.26), &pairFigures{wild(5), wild(2.6), wild(2.6)}, "not decided: the runs spread too much to tell whether the same pairs carry more"},
		{"the split spreads", &pairFigures{around(4), stats.Sample{2, 3.2, 0.8, 2.8, 1.2}, stats.Sample{2, 0.8, 3.2, 1.2, 2.8}}, direct,
			"the single rate: the firewall is the limit; whether it shares it evenly is not decided"},
		{"one run", &pairFigures{stats.Sample{4}, stats.Sample{2}, stats.Sample{2}}, direct, "not decided"},
	} {
		if got := test.pairs.verdict(test.direct); !strings.Contains(got, test.want) {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

// TestAgainst tells limits of the endpoints from limits of the firewall, if the figures
// allow it.
func TestAgainst(t *testing.T) {
	for _, test := range []struct {
		name            string
		direct, through stats.Sample
		want            standing
	}{
		{"a quarter slower", around(10), around(7.5), slower},
		{"the same", around(10), around(10.01), asFast},
		{"faster", around(10), around(12), asFast},
		{"two hundredths slower, proven", around(10), stats.Sample{9.8, 9.8, 9.8, 9.8, 9.8}, asFast},
		{"a difference that the spread hides", stats.Sample{6, 14, 10, 8, 12}, stats.Sample{5, 13, 9, 7, 11}, undecided},
		{"equal medians that spread", wild(10), wild(10), undecided},
		{"no direct wire", nil, around(10), undecided},
		{"one run, half as fast", stats.Sample{10}, stats.Sample{5}, undecided},
		{"one run, as fast", stats.Sample{10}, stats.Sample{9.9}, undecided},
	} {
		if got := against(test.direct, test.through); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

func TestLimitOf(t *testing.T) {
	nat, direct := rungOf("nat, weir"), rungOf("direct")
	for _, test := range []struct {
		rung         *rung
		direct, rate stats.Sample
		core         float64
		want         string
	}{
		{nat, around(10), around(5), math.NaN(), "this step"},
		{nat, around(10), around(9.9), math.NaN(), "the hosts: the direct wire carries no more"},
		{nat, around(10), around(5), 0.97, "this step; iperf3 has its core full (97 %)"},
		{nat, wild(10), wild(10), math.NaN(), "not decided: the runs spread too much to tell it from the direct wire"},
		{direct, around(10), around(10), 0.5, "the hosts"},
		{nat, nil, around(10), math.NaN(), "not known: the direct wire was not measured"},
	} {
		if got := limitOf(test.rung, test.direct, test.rate, test.core); got != test.want {
			t.Errorf("%s: %q, want %q", test.rung.name, got, test.want)
		}
	}
}

func TestVersus(t *testing.T) {
	for _, test := range []struct {
		a, b stats.Sample
		want string
	}{
		{around(4), around(5), "weir carries 5.00 Gbit/s, nft 4.00: +25 ± "},
		{around(4), around(3), "−25 ± "},
		{around(4), around(4.001), "no difference is proven, and this run would have shown one of "},
		{stats.Sample{4}, stats.Sample{5}, "too few runs"},
	} {
		if got := versus("nft", "weir", test.a, test.b, "carries", "Gbit/s"); !strings.Contains(got, test.want) {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}

// TestOptions finds errors in options, and checks that a sketch takes no longer than
// promised.
func TestOptions(t *testing.T) {
	for want, spoil := range map[string]func(*Options){
		"--parts fast: want tcp, pairs": func(o *Options) { o.Parts = []string{"fast"} },
		"--offloads maybe":              func(o *Options) { o.Offloads = []string{"maybe"} },
		"--firewalls: nothing given":    func(o *Options) { o.Firewalls = nil },
		"--connections 0":               func(o *Options) { o.Connections = []int{1, 0} },
		"--runs 0":                      func(o *Options) { o.Runs = 0 },
		"--seconds 0":                   func(o *Options) { o.Seconds = 0 },
		"--rate 0":                      func(o *Options) { o.Rate = 0 },
	} {
		o := Defaults()
		spoil(&o)
		if err := o.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	all, quick := Defaults(), Quick()
	for _, o := range []*Options{&all, &quick} {
		if err := o.Check(); err != nil {
			t.Error(err)
		}
	}
	if s := quick.Estimate().Seconds(); s >= 50 || s < 20 || !quick.Sketch {
		t.Errorf("the sketch takes %v s", s)
	}
	l := &ladder{options: &quick}
	l.plan()
	many := 0
	for _, task := range l.tasks() {
		if strings.HasPrefix(task.what, "64") {
			many++
			if task.spot.rung.step != "nat" {
				t.Errorf("64 connections on %s", task.spot.rung.name)
			}
		}
	}
	if want := len(rungs) + 1 + 2; len(l.tasks()) != want || many != 2 {
		t.Errorf("%d tasks, %d with many connections, want %d and 2", len(l.tasks()), many, want)
	}
	// No firewall, the kernel, the kernel for the control, nft, weir: a round starts
	// each of them once.
	if len(l.boxes) != 5 {
		t.Errorf("%d boxes, want 5", len(l.boxes))
	}
}

// TestRungs: the rung below each rung exists.
func TestRungs(t *testing.T) {
	seen := map[string]bool{"": true}
	for _, r := range rungs {
		if seen[r.name] || !seen[r.below] {
			t.Errorf("%s stands on %q", r.name, r.below)
		}
		seen[r.name] = true
	}
	kernel, weir := Defaults(), Defaults()
	weir.Firewalls = []string{Weir}
	if a, b := kernel.control().name, weir.control().name; a != "routed, kernel" || b != "direct" {
		t.Errorf("the controls are %q and %q", a, b)
	}
}
