package qosinit

import (
	"net/netip"
	"strings"
	"testing"

	"weir/pf/lint"
	"weir/pf/resolve"
)

// TestKinds checks the text for each kind of line: weir accepts it and has no doubt, each
// direction has its share of the rate, and the smallest line has room for all classes.
func TestKinds(t *testing.T) {
	host := &resolve.Host{Interfaces: []resolve.HostInterface{{Name: "wan0", Addresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.1/24")}}}}
	for i := range Kinds {
		k := &Kinds[i]
		t.Run(k.Word, func(t *testing.T) {
			for _, rate := range []uint64{LeastRate, 100_000_000, MostRate} {
				var text strings.Builder
				if err := (&Line{Interface: "wan0", Down: rate, Up: rate, Kind: k}).Fprint(&text); err != nil {
					t.Fatal(err)
				}
				rules, list := resolve.Load("qos.conf", []byte(text.String()), host)
				if rules == nil {
					t.Fatal(list.Err())
				}
				lint.Warn(rules, &list)
				for _, d := range list.Items {
					if d.Construct == "" {
						t.Errorf("a line of %s: %s", Rate(rate), d.Text())
					}
				}
				if len(rules.Queues) != 2 || rules.Queues[0].In || !rules.Queues[1].In || !rules.Queues[0].Link.Known {
					t.Fatalf("trees %+v; want one for each direction, with the line", rules.Queues)
				}
				for n, share := range []uint64{k.Up, k.Down} {
					if got, want := rules.Queues[n].Queues[0].Max.Bits, rate/100*share; got != want {
						t.Errorf("tree %d has %d bit/s, want %d", n, got, want)
					}
				}
			}
		})
	}
	if err := (&Line{Interface: "wan0", Down: LeastRate - 1, Up: MostRate, Kind: &Kinds[0]}).Check(); err == nil {
		t.Error("a line that is too slow is accepted")
	}
}
