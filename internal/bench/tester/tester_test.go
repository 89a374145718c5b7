package tester

import (
	"testing"

	"weir/internal/bench/paths"
	"weir/internal/bench/testbed"
	"weir/internal/bench/traffic"
	"weir/internal/lab"
	"weir/internal/testenv"
)

// openRoute builds a testbed with one path.
func openRoute(t *testing.T, path string, c traffic.Case) *Tester {
	t.Helper()
	return openRouteOf(t, path, Options{Hook: "xdp", Case: c})
}

func openRouteOf(t *testing.T, path string, o Options) *Tester {
	t.Helper()
	testenv.NeedRoot(t)
	testenv.NeedKernelThreads(t)
	bed, err := testbed.Open(t.Context(), testbed.Options{Name: "weir-test-tester", Offloads: lab.OffloadsOff})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := bed.Close(); err != nil {
			t.Error(err)
		}
		testenv.NothingLeft(t, "weir-test-tester")
	})
	if len(bed.Cores) < 2 {
		testenv.Skip(t, "one core: the firewall has none of its own")
	}
	route, err := Start(t.Context(), bed, path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := route.Stop(); err != nil {
			t.Error(err)
		}
	})
	return route
}

// TestRoutePace sends at a rate. It checks what was sent, when, and how long it was under
// way.
func TestRoutePace(t *testing.T) {
	c := traffic.Case{Frame: 128, Flows: 100, Family: 4, Protocol: traffic.UDP}
	route := openRoute(t, paths.Kernel, c)
	if err := route.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	const rate, frames = 50_000, 10_000
	o, err := route.Send(t.Context(), Load{Rate: rate, Frames: frames, Stamps: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("offered %.0f, late %.3f, foreign %.3f, lost %.3f, p99 %.0f ns", o.Offered, o.Late, o.Foreign, o.Loss(), o.Latency.Quantile(0.99))
	if o.Sent != frames || o.Loss() > 0.5 || o.Arrived > frames {
		t.Errorf("%d of %d arrived", o.Arrived, o.Sent)
	}
	// If others take the core it sends less and says so. It never sends more.
	if o.Offered > 1.05*rate || o.Offered <= 0 || o.Offered < 0.8*rate && o.Foreign < 0.05 && o.Late == 0 {
		t.Errorf("offered %v frames per second instead of %v", o.Offered, rate)
	}
	if o.Latency.Least < 500 || o.Latency.Quantile(0.5) > 1e9 || o.Latency.Mean < o.Latency.Least {
		t.Errorf("frames were under way for %v to %v ns", o.Latency.Least, o.Latency.Most)
	}
	if o, err = route.Send(t.Context(), Load{Frames: frames}); err != nil || o.Arrived == 0 {
		t.Errorf("unpaced: %+v, %v", o, err)
	}
	if _, err := route.Send(t.Context(), Load{Rate: 1, Frames: frames}); err == nil {
		t.Error("one frame per second was not refused")
	}
}

// TestRouteHold makes up for time in which the generator could not send.
func TestRouteHold(t *testing.T) {
	route := openRouteOf(t, paths.Kernel, Options{First: true, Case: traffic.Case{Frame: 64, Flows: 100, Family: 4, Protocol: traffic.UDP}})
	if err := route.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	l := Load{Rate: 50_000, Frames: 10_000, Hold: true}
	o, err := route.Send(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("offered %.0f, late %.3f, busy %.3f, foreign %.3f, lost %.3f", o.Offered, o.Late, o.Busy, o.Foreign, o.Loss())
	if o.Arrived == 0 || o.Offered <= 0 || o.Offered > 1.01*l.Rate || o.Busy <= 0 || o.Busy > 1 {
		t.Errorf("%+v", o)
	}
	for _, wrong := range []Load{{Frames: 10, Hold: true}, {Rate: 1000, Frames: 10, Hold: true, Stamps: true}} {
		if _, err := route.Send(t.Context(), wrong); err == nil {
			t.Errorf("%+v was not refused", wrong)
		}
	}
	var held float64
	for range 5 { // a busy machine may stall at the end, which cannot be made up for
		if held = max(held, rateAcrossStall(t, route, l)); held > 0.97*l.Rate {
			return
		}
	}
	t.Errorf("%.0f of %.0f frames per second were offered", held, l.Rate)
}

// rateAcrossStall sends in two runs with 50 ms between them in which nothing can be sent.
// It returns the rate of both together.
func rateAcrossStall(t *testing.T, route *Tester, l Load) float64 {
	t.Helper()
	g, err := route.generatorFor(l)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	const first = 500
	for _, frames := range []uint32{first, l.Frames} {
		if err := g.Run(frames); err != nil {
			t.Fatal(err)
		}
	}
	p, err := g.Paced()
	if err != nil {
		t.Fatal(err)
	}
	return float64(first+l.Frames) / (float64(p.LastNs-p.FirstNs) / 1e9)
}

// TestRouteIllegal mixes forbidden frames with others.
func TestRouteIllegal(t *testing.T) {
	testenv.NeedProgram(t, "nft")
	route := openRoute(t, paths.Nft, traffic.Case{Frame: 128, Flows: 100, Family: 4, Protocol: traffic.UDP})
	if err := route.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	o, err := route.Send(t.Context(), Load{Rate: 20_000, Frames: 4000, Stamps: true, IllegalEvery: 4})
	if err != nil {
		t.Fatal(err)
	}
	if o.Sent != 3000 || o.Arrived < 1500 || o.Illegal != 0 {
		t.Errorf("of %d legal frames %d arrived, and %d illegal ones", o.Sent, o.Arrived, o.Illegal)
	}
}

// TestRouteIllegalUnfiltered shows that illegal frames would be noticed.
func TestRouteIllegalUnfiltered(t *testing.T) {
	route := openRoute(t, paths.Kernel, traffic.Case{Frame: 128, Flows: 100, Family: 4, Protocol: traffic.UDP})
	o, err := route.Send(t.Context(), Load{Rate: 20_000, Frames: 4000, Stamps: true, IllegalEvery: 4})
	if err != nil {
		t.Fatal(err)
	}
	if o.Illegal < 500 || o.Illegal > 1000 {
		t.Errorf("%d of 1,000 illegal frames arrived by bare routing", o.Illegal)
	}
}
