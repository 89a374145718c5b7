package probe

import (
	"context"
	"net/netip"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"weir/internal/testenv"
)

var loopback = netip.MustParseAddr("127.0.0.1")

// plausible fails unless nearly all packets arrived, with delays that loopback can have.
func plausible(t *testing.T, d *Delays, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if p50 := d.Millis.Median(); d.LostShare() > 0.1 || p50 <= 0.0005 || p50 > 20 || d.Millis.Min() <= 0 {
		t.Errorf("%d of %d lost, median %v ms, smallest %v ms", d.Lost, d.Sent, p50, d.Millis.Min())
	}
}

// TestEcho measures the same as ping, and agrees with it.
func TestEcho(t *testing.T) {
	testenv.NeedRoot(t)
	testenv.NeedProgram(t, "ping")
	e := Echo{From: Here, To: loopback, Interval: 2 * time.Millisecond, Count: 200}
	d, err := e.Run(t.Context())
	plausible(t, d, err)
	out, err := exec.Command("ping", "-q", "-i", "0.002", "-c", "200", "127.0.0.1").Output()
	m := regexp.MustCompile(`= ([0-9.]+)/([0-9.]+)/`).FindSubmatch(out)
	if err != nil || m == nil {
		t.Fatalf("ping: %v\n%s", err, out)
	}
	least, err := strconv.ParseFloat(string(m[1]), 64)
	if err != nil {
		t.Fatal(err)
	}
	if got := d.Millis.Min(); got > 10*least+0.05 || least > 10*got+0.05 {
		t.Errorf("the shortest round trip took %v ms, ping says %v ms", got, least)
	}
}

// TestUntil sends nothing after a moment, however many are left, and counts only what it
// sent.
func TestUntil(t *testing.T) {
	testenv.NeedRoot(t)
	const n, interval, span = 100, 10 * time.Millisecond, 95 * time.Millisecond
	e := Echo{From: Here, To: loopback, Interval: interval, Count: n, Until: time.Now().Add(span)}
	d, err := e.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if most := int(span/interval) + 1; d.Sent > most || d.Sent != len(d.Millis)+d.Lost {
		t.Errorf("%d sent in %v, want %d at most; %d arrived, %d lost", d.Sent, span, most, len(d.Millis), d.Lost)
	}
	o := OneWay{From: Here, To: Here, Source: loopback, Target: netip.AddrPortFrom(loopback, 5390), Interval: interval, Count: n,
		Length: 172, Until: time.Now().Add(-time.Second)}
	if d, err := o.Run(t.Context()); err != nil || d.Sent != 0 || d.Lost != 0 {
		t.Errorf("after its time: %+v, %v; want nothing sent", d, err)
	}
}

// TestEchoLost: nobody replies, which is an error.
func TestEchoLost(t *testing.T) {
	testenv.NeedRoot(t)
	e := Echo{From: Here, To: netip.MustParseAddr("127.255.255.255"), Interval: time.Millisecond, Count: 3}
	if d, err := e.Run(t.Context()); err == nil {
		t.Errorf("got %+v from an address that nobody has", d)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Run(ctx); err == nil {
		t.Error("a canceled run succeeded")
	}
}

func TestOneWay(t *testing.T) {
	testenv.NeedRoot(t)
	o := OneWay{From: Here, To: Here, Source: loopback, Target: netip.AddrPortFrom(loopback, 5391), Interval: time.Millisecond, Count: 200, Length: 172}
	d, err := o.Run(t.Context())
	plausible(t, d, err)
	if d.Jitter <= 0 || d.Jitter > 20 || len(d.Variation) != len(d.Millis)-1 {
		t.Errorf("jitter %v ms of %d variations", d.Jitter, len(d.Variation))
	}
	o.Length = 8
	if _, err := o.Run(t.Context()); err == nil {
		t.Error("datagrams without room for their number were sent")
	}
}

// TestResponsiveness measures both directions of loopback.
func TestResponsiveness(t *testing.T) {
	testenv.NeedRoot(t)
	for i, up := range []bool{false, true} {
		r := Responsiveness{Client: Here, Server: Here, Source: loopback, Address: netip.AddrPortFrom(loopback, uint16(5392+i)), Up: up,
			Interval: 100 * time.Millisecond, Most: 6 * time.Second} // a busy machine opens connections late
		rpm, err := r.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("up %v: %+v", up, *rpm)
		if !rpm.Stable && rpm.Connections < mostLoad {
			t.Errorf("up %v: %d connections carried load at the end, one more in each interval is wanted up to %d", up, rpm.Connections, mostLoad)
		}
		if rpm.Value < 60 || rpm.Value > 10e6 || rpm.Goodput < 50e6 || rpm.Connections < 1 || rpm.Probes < 2 || rpm.TCP <= 0 || rpm.TLS <= 0 || rpm.HTTP <= 0 || rpm.HTTPLoaded <= 0 {
			t.Errorf("up %v: %+v", up, *rpm)
		}
	}
}

// TestLoadEnds: if the load ends early, the rest would measure an idle line, so the test
// fails.
func TestLoadEnds(t *testing.T) {
	testenv.NeedRoot(t)
	r := Responsiveness{Client: Here, Server: Here, Source: loopback, Address: netip.AddrPortFrom(loopback, 5394), Interval: time.Second, Most: 30 * time.Second}
	server, err := newServer(Here, r.Address)
	if err != nil {
		t.Fatal(err)
	}
	defer server.close()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	l := &load{test: &r, trust: server.trust, fail: cancel}
	defer l.close()
	if err := l.add(ctx, 1); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(100*time.Millisecond, func() { l.clients[0].close() })
	if _, err := r.watch(ctx, l, &prober{}); err == nil || !strings.Contains(err.Error(), "carried load ended") {
		t.Errorf("the load ended early: %v", err)
	}
}

// TestProberRate: probes are sent although their rate changes more often than they come.
func TestProberRate(t *testing.T) {
	testenv.NeedRoot(t)
	r := Responsiveness{Client: Here, Server: Here, Source: loopback, Address: netip.AddrPortFrom(loopback, 5395)}
	server, err := newServer(Here, r.Address)
	if err != nil {
		t.Fatal(err)
	}
	defer server.close()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	l := &load{test: &r, trust: server.trust, fail: cancel}
	defer l.close()
	if err := l.add(ctx, 1); err != nil {
		t.Fatal(err)
	}
	p := startProber(ctx, l)
	for i := range 100 {
		p.setRate(20 + float64(i%2))
		time.Sleep(10 * time.Millisecond)
	}
	if n := len(p.since(time.Time{})); n < 5 || context.Cause(ctx) != nil {
		t.Errorf("%d probes in a second at 20 a second, %v", n, context.Cause(ctx))
	}
	cancel(nil)
	<-p.done
}
