package advertise_test

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mdlayher/ndp"

	"weir/internal/pppoe/advertise"
)

var (
	t0   = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	mac  = net.HardwareAddr{2, 0, 0, 0, 0, 1}
	all  = netip.MustParseAddr("ff02::1")
	asks = netip.MustParseAddr("fe80::5")
)

func prefix(text string) netip.Prefix { return netip.MustParsePrefix(text) }

// halves are random numbers in the middle of their range.
type halves struct{}

func (halves) Read(b []byte) (int, error) {
	clear(b)
	b[0] = 0x80
	return len(b), nil
}

// sent is what was sent, and when.
type sent struct {
	At time.Duration
	To netip.Addr
}

// run lets time pass and returns what was sent meanwhile.
func run(a *advertise.Advertiser, from, to time.Duration) (all []sent) {
	now := t0.Add(from)
	for {
		for _, o := range a.Take() {
			all = append(all, sent{now.Sub(t0), o.To})
		}
		next := a.Next()
		if next.IsZero() || next.After(t0.Add(to)) {
			return all
		}
		now = next
		a.Tick(now)
	}
}

var compare = cmp.Comparer(func(a, b netip.Addr) bool { return a == b })

func lease(now time.Time) advertise.State {
	return advertise.State{
		Router:   true,
		Prefixes: []advertise.Prefix{{Prefix: prefix("2001:db8:1::/64"), Preferred: now.Add(time.Hour), Valid: now.Add(2 * time.Hour)}},
		DNS:      []netip.Addr{netip.MustParseAddr("2001:db8::53")},
	}
}

// A change is told three times; then all is repeated every few minutes. Nothing is said before
// there is something, and after it is gone.
func TestTimes(t *testing.T) {
	a := advertise.New(mac, halves{})
	a.Set(advertise.State{}, t0)
	a.Solicited(asks, t0)
	if got := run(a, 0, time.Hour); len(got) != 0 {
		t.Errorf("without a prefix: %v", got)
	}
	a.Set(lease(t0), t0)
	a.Set(lease(t0), t0)
	got := run(a, 0, 1000*time.Second)
	want := []sent{{0, all}, {4 * time.Second, all}, {8 * time.Second, all}, {408 * time.Second, all}, {808 * time.Second, all}}
	if diff := cmp.Diff(want, got, compare); diff != "" {
		t.Error(diff)
	}
	a.Set(advertise.State{}, t0.Add(1000*time.Second))
	if got := run(a, 1000*time.Second, 5000*time.Second); len(got) != 3 || !a.Next().IsZero() {
		t.Errorf("after the end: %v, next %v", got, a.Next())
	}
}

// Who asks is answered alone; one without an address is answered to all, not more often than every
// 3 s.
func TestSolicited(t *testing.T) {
	a := advertise.New(mac, halves{})
	a.Set(lease(t0), t0)
	run(a, 0, 100*time.Second)
	second := func(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }
	for _, at := range []float64{100, 100.1, 101} {
		a.Solicited(asks, t0.Add(second(at)))
		if got := a.Take(); len(got) != 1 || got[0].To != asks {
			t.Fatalf("after %v s: %v", at, got)
		}
	}
	var got []sent
	for _, at := range []float64{102, 102.1, 103, 120} {
		got = append(got, run(a, second(at-0.05), second(at))...)
		a.Solicited(netip.IPv6Unspecified(), t0.Add(second(at)))
		got = append(got, run(a, second(at), second(at))...)
	}
	if diff := cmp.Diff([]sent{{second(102), all}, {second(105), all}, {second(120), all}}, got, compare); diff != "" {
		t.Error(diff)
	}
	for range 1000 { // a flood
		a.Solicited(asks, t0.Add(second(121)))
	}
	if n := len(a.Take()); n > 64 {
		t.Errorf("%d answers at once", n)
	}
}

// The lifetimes that hosts are told follow the lease, and have limits.
func TestMessage(t *testing.T) {
	const minute = time.Minute
	for _, test := range []struct {
		name                               string
		preferred, valid                   time.Duration // until when; 0: for ever
		router                             bool
		wantPreferred, wantValid, lifetime time.Duration
	}{
		{"long", time.Hour, 2 * time.Hour, true, 45 * minute, 90 * minute, 30 * minute},
		{"for ever", 0, 0, true, 45 * minute, 90 * minute, 30 * minute},
		{"about to end", minute, 2 * minute, true, minute, 2 * minute, 30 * minute},
		{"deprecated", -1, time.Hour, true, 0, time.Hour, 30 * minute},
		{"withdrawn", -1, -1, true, 0, 0, 30 * minute},
		{"without the provider", time.Hour, 2 * time.Hour, false, 45 * minute, 90 * minute, 0},
	} {
		until := func(d time.Duration) time.Time {
			if d == 0 {
				return time.Time{}
			}
			return t0.Add(d)
		}
		s := lease(t0)
		s.Router = test.router
		s.Prefixes[0].Preferred, s.Prefixes[0].Valid = until(test.preferred), until(test.valid)
		s.GoneDNS = []netip.Addr{netip.MustParseAddr("2001:db8::54")}
		a := advertise.New(mac, halves{})
		a.Set(s, t0)
		want := &ndp.RouterAdvertisement{
			CurrentHopLimit: 64, RouterLifetime: test.lifetime,
			Options: []ndp.Option{
				&ndp.LinkLayerAddress{Direction: ndp.Source, Addr: mac},
				&ndp.PrefixInformation{
					PrefixLength: 64, OnLink: true, AutonomousAddressConfiguration: true, Prefix: netip.MustParseAddr("2001:db8:1::"),
					ValidLifetime: test.wantValid, PreferredLifetime: test.wantPreferred,
				},
				&ndp.RecursiveDNSServer{Lifetime: min(test.wantValid, 30*minute), Servers: s.DNS},
				&ndp.RecursiveDNSServer{Servers: s.GoneDNS},
			},
		}
		if diff := cmp.Diff(want, a.Message(t0), compare); diff != "" {
			t.Errorf("%s: %s", test.name, diff)
		}
		b, err := ndp.MarshalMessage(a.Message(t0))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := ndp.ParseMessage(b); err != nil || cmp.Diff(want, got, compare) != "" {
			t.Errorf("%s: read again: %v %s", test.name, err, cmp.Diff(want, got, compare))
		}
	}
}
