package dhcp6_test

import (
	"math/rand/v2"
	"net"
	"slices"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/insomniacslk/dhcp/iana"

	"weir/internal/pppoe/dhcp6"
)

// FuzzReceive has a hostile server answer in each phase: nothing crashes, and every prefix that
// is taken is one that a link can use.
func FuzzReceive(f *testing.F) {
	f.Add(uint64(1), []byte{2, 0, 0, 0})
	for _, g := range []grant{good, {ofIA: iana.StatusNoPrefixAvail}, {}} {
		m := &dhcpv6.Message{MessageType: dhcpv6.MessageTypeAdvertise}
		pd := &dhcpv6.OptIAPD{IaId: iaid, T1: g.t1}
		for _, p := range g.prefixes {
			pd.Options.Add(&dhcpv6.OptIAPrefix{PreferredLifetime: g.preferred, ValidLifetime: g.valid, Prefix: &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), 128)}})
		}
		m.AddOption(pd)
		f.Add(uint64(2), m.ToBytes())
	}
	f.Fuzz(func(t *testing.T, seed uint64, text []byte) {
		chooses := rand.New(rand.NewPCG(seed, 1))
		c := dhcp6.New(dhcp6.Config{DUID: duid, IAID: iaid, Random: zeros{}})
		now := t0
		c.Up(false, now)
		for range 20 {
			message := slices.Clone(text)
			if sent, _ := c.Take(); len(sent) > 0 && len(message) >= 4 && chooses.IntN(8) > 0 {
				copy(message[1:4], sent[len(sent)-1][1:4]) // the number of the exchange
				message[0] = []byte{2, 7, 7, message[0]}[chooses.IntN(4)]
				message = append(message, byte(0), 1, 0, byte(len(duid)))
				message = append(append(message, duid...), 0, 2, 0, 1, byte(chooses.IntN(3)))
			}
			c.Receive(message, now)
			if next := c.Next(); chooses.IntN(2) == 0 && !next.IsZero() {
				if next.Before(now) {
					t.Fatalf("the next tick is at %v, before %v", next, now)
				}
				now = next
				c.Tick(now)
			}
			lease := c.Lease()
			for _, p := range lease.Prefixes {
				if !p.Prefix.IsValid() || p.Prefix.Bits() > 64 || p.Prefix.Bits() == 0 || p.Prefix != p.Prefix.Masked() {
					t.Fatalf("the prefix %v", p.Prefix)
				}
			}
		}
	})
}
