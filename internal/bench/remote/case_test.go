package remote

import (
	"net/netip"
	"testing"
	"time"

	"weir/internal/bench/iperf"
	"weir/internal/bench/sample"
)

func TestOptions(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"no host": func(o *Options) { o.Host = "" }, "protocol": func(o *Options) { o.Protocols = []string{"icmp"} },
		"unpaced UDP": func(o *Options) { o.Rates = []Rate{0} }, "frame": func(o *Options) { o.Frames = []int{63} },
		"connections": func(o *Options) { o.Connections = []int{0} },
		"runs":        func(o *Options) { o.Runs = 0 }, "time": func(o *Options) { o.Seconds = time.Hour },
	} {
		o := Defaults()
		o.Host = "h"
		if err := o.Check(); err != nil {
			t.Fatal(err)
		}
		if change(&o); o.Check() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// TestFrameSizes: a frame of 64 bytes has 64 bytes on the wire, and IPv6 needs 84.
func TestFrameSizes(t *testing.T) {
	for _, test := range []struct {
		addr         string
		frame        int
		payload, got int
	}{
		{"192.0.2.1", 64, 18, 64}, {"192.0.2.1", 1518, 1472, 1518}, {"2001:db8::1", 64, 18, 84}, {"2001:db8::1", 1518, 1452, 1518},
	} {
		r := Case{UDP, Up, 1, 1e6, test.frame}.request(netip.MustParseAddr(test.addr), time.Second)
		if r.Payload != test.payload || r.Frame != test.got || r.check() != nil {
			t.Errorf("%s, %d: %+v, %v", test.addr, test.frame, r, r.check())
		}
	}
}

// TestLimits: the report names a limit if most runs met it.
func TestLimits(t *testing.T) {
	asked := Case{TCP, Up, 1, 0, 0}.request(netip.MustParseAddr("192.0.2.1"), time.Second)
	full := []sample.Point{{Took: time.Second, Cores: []sample.Core{{ID: 0, Busy: 0.1}, {ID: 1, Busy: 0.99}}}}
	made := func(bits uint64, granted Rate, points []sample.Point) *result {
		r := &result{granted: asked, own: points, up: &direction{Result: iperf.Result{Rate: float64(bits)}}}
		r.granted.Rate = granted
		return r
	}
	for name, test := range map[string]struct {
		results []*result
		limits  int
	}{
		"the path":              {[]*result{made(500e6, 1e9, nil), made(501e6, 1e9, nil)}, 0},
		"the server":            {[]*result{made(999e6, 1e9, nil), made(990e6, 1e9, nil)}, 1},
		"the end":               {[]*result{made(500e6, 1e9, full), made(500e6, 1e9, full)}, 1},
		"the end in one of 3":   {[]*result{made(500e6, 1e9, full), made(500e6, 1e9, nil), made(500e6, 1e9, nil)}, 0},
		"both":                  {[]*result{made(999e6, 1e9, full)}, 2},
		"no bound of the other": {[]*result{made(999e6, 0, nil)}, 0},
	} {
		f := &findings{Case: Case{TCP, Up, 1, 0, 0}, results: test.results}
		if got := f.limits(asked); len(got) != test.limits {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestRateMet: if everything requested arrived, a busy machine was no limit.
func TestRateMet(t *testing.T) {
	asked := Case{TCP, Up, 1, 100e6, 0}.request(netip.MustParseAddr("192.0.2.1"), time.Second)
	full := []sample.Point{{Took: time.Second, Cores: []sample.Core{{ID: 0, Busy: 1}}}}
	for bits, want := range map[uint64]int{99e6: 0, 60e6: 1} {
		r := &result{granted: asked, own: full, up: &direction{Result: iperf.Result{Rate: float64(bits)}}}
		if got := r.limits(asked); len(got) != want {
			t.Errorf("%d of 100 Mbit/s: %q", bits/1e6, got)
		}
	}
}

// TestLoad: iperf3 counts payload, and the rate of each connection.
func TestLoad(t *testing.T) {
	a := netip.MustParseAddr("192.0.2.1")
	tcp := Case{TCP, Down, 4, 100e6, 0}.request(a, 2*time.Second)
	if l := tcp.load(a.String()); l.Pair.Address != "192.0.2.1" || l.Streams != 4 || l.Rate != 100e6 || !l.Reverse || l.Both || l.Time != 2*time.Second || l.Omit != omitted {
		t.Errorf("%+v", l)
	}
	udp := Case{UDP, Both, 1, 1518e3, 1518}.request(a, time.Second)
	if l := udp.load(a.String()); l.Length != 1472 || l.Rate != 1472000 || !l.UDP || !l.Both || l.Reverse {
		t.Errorf("%+v", l)
	}
}

func TestFullEnds(t *testing.T) {
	for name, test := range map[string]struct {
		got     iperf.Result
		threads bool
		full    int
	}{
		"one thread, one core": {iperf.Result{HostCPU: 98, RemoteCPU: 40, Streams: 4}, false, 1},
		"four threads":         {iperf.Result{HostCPU: 98, RemoteCPU: 40, Streams: 4}, true, 0},
		"both":                 {iperf.Result{HostCPU: 99, RemoteCPU: 99, Streams: 1}, true, 2},
	} {
		if got := fullEnds(&test.got, test.threads); len(got) != test.full {
			t.Errorf("%s: %q", name, got)
		}
	}
}
