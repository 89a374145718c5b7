package probe

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"

	"weir/internal/stats"
)

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9*math.Max(1, math.Abs(b)) }

// TestDelays evaluates a thousand packets with known delays: 1 ms, one in a hundred 10
// ms, a single one 100 ms; three are lost.
func TestDelays(t *testing.T) {
	const ms, n = 1_000_000, 1000
	var sent, arrived []int64
	for i := range int64(n) {
		sent = append(sent, 1e18+i*ms)
		late := int64(1)
		switch {
		case i == 500:
			late = 100
		case i%100 == 7:
			late = 10
		}
		at := sent[i] + late*ms
		if i == 3 || i == 4 || i == 999 {
			at = never
		}
		arrived = append(arrived, at)
	}
	d := delays(sent, arrived)
	if d.Sent != n || d.Lost != 3 || len(d.Millis) != n-3 || !near(d.LostShare(), 0.003) {
		t.Fatalf("%d sent, %d lost, %d arrived", d.Sent, d.Lost, len(d.Millis))
	}
	p50, p99, p999 := d.Quantiles()
	if !near(p50, 1) || p99 < 1 || p99 > 10 || p999 < 10 || p999 > 100 || d.Millis.Max() != 100 {
		t.Errorf("p50 %v, p99 %v, p99.9 %v", p50, p99, p999)
	}
}

// TestJitter expects the value of RFC 3550's formula for three packets.
func TestJitter(t *testing.T) {
	d := delays([]int64{1e9, 2e9, 3e9}, []int64{1e9 + 2e6, 2e9 + 10e6, 3e9 + 6e6})
	if diff := cmp.Diff(stats.Sample{8, 4}, d.Variation, cmp.Comparer(near)); diff != "" {
		t.Error(diff)
	}
	if want := 8.0/16 + (4-8.0/16)/16; !near(d.Jitter, want) {
		t.Errorf("jitter %v, want %v", d.Jitter, want)
	}
	steady := delays([]int64{1e9, 2e9, 3e9}, []int64{1e9 + 7e6, 2e9 + 7e6, 3e9 + 7e6})
	if steady.Jitter != 0 {
		t.Errorf("packets that are all equally late have a jitter of %v", steady.Jitter)
	}
}

func TestJoin(t *testing.T) {
	a := &Delays{Millis: stats.Sample{1, 2}, Sent: 3, Lost: 1, Jitter: 1}
	b := &Delays{Millis: stats.Sample{3}, Sent: 1, Jitter: 5}
	c := &Delays{Sent: 2, Lost: 2, Jitter: 2}
	want := &Delays{Millis: stats.Sample{1, 2, 3}, Sent: 6, Lost: 3, Jitter: 2}
	if got := Join([]*Delays{a, b, c}); !cmp.Equal(got, want) {
		t.Error(cmp.Diff(want, got))
	}
	if share := new(Delays).LostShare(); share != 0 {
		t.Errorf("of no packets %v were lost", share)
	}
}

// TestEchoMessages builds the reply of a host to a request and parses it.
func TestEchoMessages(t *testing.T) {
	ours := echoKind{ipv4.ICMPTypeEcho, ipv4.ICMPTypeEchoReply, true, false, 77}
	others := ours
	others.id++
	m, err := ours.message(300)
	if err != nil {
		t.Fatal(err)
	}
	ip := append([]byte{0x46}, make([]byte, 23)...) // with four bytes of IP options
	if _, ok := ours.answer(append(ip, m...)); ok {
		t.Error("a request was taken for an answer")
	}
	m[0] = byte(ipv4.ICMPTypeEchoReply)
	if i, ok := ours.answer(append(ip, m...)); !ok || i != 300 {
		t.Errorf("got %d, %v", i, ok)
	}
	if _, ok := others.answer(append(ip, m...)); ok {
		t.Error("the answer to somebody else's request was taken")
	}
	for n := range len(ip) + 8 {
		if _, ok := ours.answer(append(ip, m...)[:n]); ok {
			t.Errorf("an answer was read of %d bytes", n)
		}
	}
}

// TestEchoKinds parses replies without an IP header: those of ICMPv6, and those of a ping
// socket, whose id the kernel chose.
func TestEchoKinds(t *testing.T) {
	for _, k := range []echoKind{
		{ipv6.ICMPTypeEchoRequest, ipv6.ICMPTypeEchoReply, false, false, 77}, {ipv4.ICMPTypeEcho, ipv4.ICMPTypeEchoReply, false, true, 77},
	} {
		m, err := k.message(300)
		if err != nil {
			t.Fatal(err)
		}
		m[0] = byte(ipv6.ICMPTypeEchoReply)
		if k.own {
			m[0] = byte(ipv4.ICMPTypeEchoReply)
		}
		if i, ok := k.answer(m); !ok || i != 300 {
			t.Errorf("%+v: got %d, %v", k, i, ok)
		}
		m[4]++
		if _, ok := k.answer(m); ok != k.own {
			t.Errorf("%+v: with another id: %v", k, ok)
		}
	}
}

// TestCalculate expects the values of the draft's formulas for known probes, one in
// twenty of which is an outlier.
func TestCalculate(t *testing.T) {
	var probes []probeTimes
	for i := range 40 {
		p := probeTimes{foreign: i%2 == 0, tcp: 10, tls: 20, http: 30, loaded: 40}
		if i < 2 {
			p.tcp, p.tls, p.http, p.loaded = 5000, 5000, 5000, 5000
		}
		probes = append(probes, p)
	}
	r := calculate(probes)
	if !near(r.TCP, 10) || !near(r.TLS, 20) || !near(r.HTTP, 30) || !near(r.HTTPLoaded, 40) || r.Probes != 40 {
		t.Errorf("trimmed means: %+v", r)
	}
	if !near(r.Foreign, 3000) || !near(r.Loaded, 1500) || !near(r.Value, 2250) {
		t.Errorf("got %v, %v and %v, want 3000, 1500 and 2250 round-trips per minute", r.Foreign, r.Loaded, r.Value)
	}
	if err := calculate(probes[:1]).check(); err == nil {
		t.Error("a result without loaded probes was accepted")
	}
}

func TestMovingAverage(t *testing.T) {
	var rising, flat movingAverage
	for i := range 12 {
		rising.add(float64(100 + 30*i))
		flat.add(100 + float64(i%2))
		if i < averageDistance-1 && steady(flat.averages) {
			t.Errorf("stable after %d intervals", i+1)
		}
	}
	if steady(rising.averages) || !steady(flat.averages) {
		t.Errorf("stable: rising %v, flat %v", steady(rising.averages), steady(flat.averages))
	}
	if !near(flat.now(), 100.5) {
		t.Errorf("average %v", flat.now())
	}
}

// TestSteady checks the draft's rule for responsiveness: the last four values, which are
// already means of four intervals, deviate by at most 5 % of the last.
func TestSteady(t *testing.T) {
	for _, test := range []struct {
		values stats.Sample
		want   bool
	}{
		{stats.Sample{100, 100, 100}, false},
		{stats.Sample{10, 100, 104, 96, 100}, true},
		{stats.Sample{100, 110, 90, 100}, false},      // averages 100, 105, 100 and 100
		{stats.Sample{130, 110, 120, 60, 60}, false},  // 4 % of 60 would be 2.4
		{stats.Sample{1000, 1000, 1000, 1150}, false}, // deviation 75; 5 % are 57
		{stats.Sample{1000, 1000, 1000, 1050}, true},
	} {
		if got := steady(test.values); got != test.want {
			t.Errorf("%v: steady %v, want %v", test.values, got, test.want)
		}
	}
}

// TestProbeRate: probes, of 3,000 bytes on average, use at most 5 % of a slow line.
func TestProbeRate(t *testing.T) {
	for _, test := range []struct{ goodput, want float64 }{{10e9, 100}, {48e6, 100}, {24e6, 50}, {480e3, 1}, {0, 1}} {
		if got := probeRate(test.goodput); !near(got, test.want) {
			t.Errorf("at %v bit/s: %v probes a second, want %v", test.goodput, got, test.want)
		}
	}
}
