package collect

import (
	"testing"

	"github.com/vishvananda/netlink/nl"
)

// TestCakeRate reads the options of a CAKE of 50 Mbit/s as the kernel sends them
// (TCA_CAKE_BASE_RATE64 among others), and those of another discipline.
func TestCakeRate(t *testing.T) {
	options := nl.NewRtAttr(nl.TCA_OPTIONS, nil)
	options.AddRtAttr(3, nl.Uint32Attr(1)) // TCA_CAKE_DIFFSERV_MODE
	options.AddRtAttr(cakeRate, []byte{0x10, 0x5e, 0x5f, 0, 0, 0, 0, 0})
	for kind, want := range map[string]uint64{"cake": 6250000, "fq_codel": 0} {
		message := append(nl.NewRtAttr(nl.TCA_KIND, nl.ZeroTerminated(kind)).Serialize(), options.Serialize()...)
		attributes, err := nl.ParseRouteAttr(message)
		if err != nil {
			t.Fatal(err)
		}
		if got := cakeRateOf(attributes); got != want {
			t.Errorf("%s: %d, want %d", kind, got, want)
		}
	}
}
