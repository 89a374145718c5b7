package iperf

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestParse reads outputs of all versions. Those of 3.12 are recordings; the others say
// that they are not.
func TestParse(t *testing.T) {
	tcp := func(version string, host float64) *Result {
		return &Result{Version: version, Protocol: "TCP", Streams: 1, Seconds: 2.0004, Sent: 250000000, Received: 249000000,
			Rate: 995800839.8, HostCPU: host, RemoteCPU: 60.5, Congestion: "cubic", Retransmits: 3}
	}
	udp := func(version string, received, rate, seconds float64) *Result {
		return &Result{Version: version, Protocol: "UDP", Streams: 1, Seconds: seconds, Sent: 2500000, Received: received, Rate: rate,
			HostCPU: 97.1, RemoteCPU: 60.5, Retransmits: -1, Packets: 1700, Lost: 17, Jitter: 0.021}
	}
	for file, want := range map[string]*Result{
		"v39-tcp.json":  tcp("3.9", 97.1),
		"v39-udp.json":  udp("3.9", 2475000, 9900000, 2),
		"v310-tcp.json": tcp("3.10.1+", 97.1),
		"v312-tcp.json": {Version: "3.12", Protocol: "TCP", Streams: 2, Seconds: 1.013647, Sent: 487587840, Received: 484966400,
			Rate: 3827497343.749846, HostCPU: 13.590372090367877, RemoteCPU: 12.858745179820206, Congestion: "bbr", Retransmits: 1},
		"v312-udp.json": {Version: "3.12", Protocol: "UDP", Streams: 1, Seconds: 1.0005, Sent: 1277952, Received: 1277952,
			Rate: 10218506.746626686, Retransmits: -1, Packets: 39, Jitter: 0.012091032548643252},
		"v316-tcp.json": tcp("3.16", 180.2),
		"v317-udp.json": udp("3.17.1", 2475000, 9899010.1, 2),
		"v318-tcp.json": tcp("3.18", 180.2),
	} {
		got := parseFile(t, file, nil)
		if file == "v312-udp.json" { // recorded, with an unknown value
			want.HostCPU, want.RemoteCPU = got.HostCPU, got.RemoteCPU
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
	}
}

func parseFile(t *testing.T, file string, want error) *Result {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	r, err := Parse(text)
	if !errors.Is(err, want) {
		t.Fatalf("%s: %v, want %v", file, err, want)
	}
	return r
}

// TestParseReverse uses the rate of what arrived, even if the server sent it.
func TestParseReverse(t *testing.T) {
	r := parseFile(t, "v312-reverse.json", nil)
	if r.Rate <= 0 || r.Received <= 0 || r.Streams != 1 {
		t.Errorf("got %+v", r)
	}
}

// TestParseErrors finds iperf3's own error, which comes with exit status 0.
func TestParseErrors(t *testing.T) {
	for file, want := range map[string]string{
		"v312-refused.json": "iperf3: unable to connect to server: Connection refused",
		"v318-broken.json":  "iperf3: control socket has closed unexpectedly",
	} {
		text, err := os.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		var said *ToolError
		if _, err := Parse(text); !errors.As(err, &said) || err.Error() != want {
			t.Errorf("%s: %v, want %s", file, err, want)
		}
	}
	for _, text := range []string{"", "iperf3: error - unable", `{"start":`, "[]"} {
		if r, err := Parse([]byte(text)); err == nil {
			t.Errorf("%q was read as %+v", text, r)
		}
	}
	if _, err := Parse([]byte(`{"start":{"version":"iperf 3.12"},"end":{}}`)); !errors.Is(err, errNoResult) {
		t.Errorf("a test without sums: %v", err)
	}
}

func TestVersions(t *testing.T) {
	for text, want := range map[string]Version{
		"iperf 3.12 (cJSON 1.7.15)": {3, 12}, "iperf 3.9 (cJSON 1.7.13)": {3, 9}, "iperf 3.10.1+": {3, 10}, "iperf 3.18": {3, 18},
	} {
		if v, err := ParseVersion(text); err != nil || v != want {
			t.Errorf("%q: %v %v, want %v", text, v, err, want)
		}
	}
	if _, err := ParseVersion("iperf"); err == nil {
		t.Error("a version was found in a text without one")
	}
	for v, want := range map[Version]bool{{3, 9}: false, {3, 15}: false, {3, 16}: true, {3, 18}: true, {4, 0}: true, {2, 20}: false} {
		if v.Threads() != want {
			t.Errorf("%v: threads %v", v, !want)
		}
	}
}

// TestProcesses divides streams among processes: as many as there are cores if each uses
// only one, and never more streams than one process accepts.
func TestProcesses(t *testing.T) {
	old, young := Version{3, 12}, Version{3, 18}
	for _, test := range []struct {
		version        Version
		streams, cores int
		want           []int
	}{
		{old, 1, 4, []int{1}},
		{old, 4, 2, []int{2, 2}},
		{old, 3, 2, []int{1, 2}},
		{old, 64, 4, []int{16, 16, 16, 16}},
		{old, 1000, 2, []int{125, 125, 125, 125, 125, 125, 125, 125}},
		{young, 64, 4, []int{64}},
		{young, 129, 4, []int{64, 65}},
	} {
		if got := test.version.processes(test.streams, test.cores); !cmp.Equal(got, test.want) {
			t.Errorf("%v, %d streams, %d cores: %v, want %v", test.version, test.streams, test.cores, got, test.want)
		}
	}
}

func TestTotal(t *testing.T) {
	parts := []*Result{
		{Version: "3.12", Streams: 2, Seconds: 1, Rate: 5, Received: 10, HostCPU: 50, Retransmits: 1, Jitter: 2},
		{Version: "3.12", Streams: 3, Seconds: 2, Rate: 7, Received: 20, HostCPU: 60, Retransmits: 2, Jitter: 1},
	}
	want := &Result{Version: "3.12", Streams: 5, Seconds: 2, Rate: 12, Received: 30, HostCPU: 110, Retransmits: 3, Jitter: 2}
	if diff := cmp.Diff(want, Total(parts)); diff != "" {
		t.Error(diff)
	}
	parts[1].Retransmits = -1
	if got := Total(parts).Retransmits; got != -1 {
		t.Errorf("retransmits %d, though one part does not know", got)
	}
}

// TestParseBothWays separates the two directions of --bidir.
func TestParseBothWays(t *testing.T) {
	for file, least := range map[string]float64{"v312-bidir.json": 39e6, "v312-bidir-udp.json": 4.9e6} {
		text, err := os.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		r, err := Parse(text)
		if err != nil || r.Back == nil {
			t.Fatalf("%s: %+v, %v", file, r, err)
		}
		for _, d := range []*Result{r, r.Back} {
			if d.Rate < least || d.Rate > 1.1*least || d.Seconds <= 0 || d.Received <= 0 {
				t.Errorf("%s: %+v", file, d)
			}
		}
		forward, reverse := Series(text)
		if len(forward) != 2 || len(reverse) != 2 { // plus two intervals that do not count
			t.Errorf("%s: %v and %v", file, forward, reverse)
		}
	}
	r := parseFile(t, "v312-tcp.json", nil)
	if r.Back != nil {
		t.Errorf("one direction was read as two: %+v", r.Back)
	}
}
