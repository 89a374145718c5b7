package forward

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/bench/paths"
	"weir/internal/bench/traffic"
	"weir/internal/units"
)

func TestCases(t *testing.T) {
	o := Defaults()
	if got, want := o.Cases(), []traffic.Case{{Frame: 64, Flows: 1000, Family: 4, Protocol: traffic.UDP, Cores: 1, Direction: traffic.OneWay, Sink: traffic.Far}}; !cmp.Equal(got, want) {
		t.Errorf("defaults: %v, want %v", got, want)
	}
	o.Families, o.Protocols, o.Frames = []int{4, 6}, []string{traffic.UDP, traffic.TCP}, []int{64, 66, 128}
	sizes := map[string][]int{}
	for _, c := range o.Cases() {
		key := strings.Repeat("6", c.Family/6) + c.Protocol
		sizes[key] = append(sizes[key], c.Frame)
	}
	want := map[string][]int{"udp": {64, 66, 128}, "tcp": {64, 66, 128}, "6udp": {66, 128}, "6tcp": {78, 128}}
	if diff := cmp.Diff(want, sizes); diff != "" {
		t.Errorf("true sizes (-want +got):\n%s", diff)
	}
}

// A pattern is a case of its own. One with sizes of its own is no size of frames.
func TestPatternCases(t *testing.T) {
	o := Defaults()
	o.Frames, o.Patterns = []int{64, 128}, []string{traffic.Scattered, traffic.Bursts, traffic.IMIX}
	type key struct {
		pattern string
		frame   int
	}
	var got []key
	for _, c := range o.Cases() {
		got = append(got, key{c.Pattern, c.Frame})
	}
	want := []key{{"", 64}, {"bursts", 64}, {"imix", 0}, {"", 128}, {"bursts", 128}}
	if !slices.Equal(got, want) {
		t.Errorf("cases %v, want %v", got, want)
	}
}

func TestCheckOptions(t *testing.T) {
	good := Defaults()
	if err := good.Check(); err != nil {
		t.Fatalf("the defaults are refused: %v", err)
	}
	for want, spoil := range map[string]func(*Options){
		"--frame":     func(o *Options) { o.Frames = []int{64, 1519} },
		"--flows":     func(o *Options) { o.Flows = []int{0} },
		"--prefetch":  func(o *Options) { o.Prefetch = "perhaps" },
		"--family":    func(o *Options) { o.Families = []int{5} },
		"--proto":     func(o *Options) { o.Protocols = []string{"sctp"} },
		"--cores":     func(o *Options) { o.Cores = nil },
		"--direction": func(o *Options) { o.Directions = []string{"back"} },
		"--sink":      func(o *Options) { o.Sinks = []string{""} },
		"--rules":     func(o *Options) { o.Rules = []int{0, paths.MaxRules + 1} },
		"--limit":     func(o *Options) { o.Flows, o.Limits = []int{1000, 100_000}, []int{0, 50_000} },
		"--pattern":   func(o *Options) { o.Patterns = []string{"random"} },
		"--paths":     func(o *Options) { o.Paths = []string{"weir", "iptables"} },
		"--hook":      func(o *Options) { o.Hook = "auto" },
		"--runs":      func(o *Options) { o.Runs = 0 },
		"--seconds":   func(o *Options) { o.Seconds = time.Hour },
		"--turns":     func(o *Options) { o.Turns = 0 },
		"--turns 100": func(o *Options) { o.Turns, o.Seconds = 100, 100*time.Millisecond },
		"--turns: ":   func(o *Options) { o.Turns, o.Flame = 2, true },

		"--against: two":        func(o *Options) { o.Against = "weir" },
		"--against: none":       func(o *Options) { o.Against, o.Turns, o.Paths = "weir", 2, []string{paths.Kernel} },
		"--against true: it is": func(o *Options) { o.Against, o.Turns = "true", 2 },
		"--against /none: it":   func(o *Options) { o.Against, o.Turns = "/none", 2 },
	} {
		o := Defaults()
		spoil(&o)
		if err := o.Check(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: error %v", want, err)
		}
	}
}

// The defaults take less than three minutes, as promised.
func TestEstimate(t *testing.T) {
	o := Defaults()
	if d := o.Estimate(); d > 3*time.Minute || d < 30*time.Second {
		t.Errorf("the defaults take %v", d)
	}
	more := o
	more.Flows = []int{1_000_000}
	if more.Estimate() <= o.Estimate() {
		t.Error("more flows take no longer")
	}
}

func TestThousands(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 65536: "65,536", 1000000: "1,000,000"} {
		if got := units.Thousands(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
