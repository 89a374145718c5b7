package doctor

import (
	"fmt"

	"weir/internal/units"
)

// rate writes a number of packets between the samples as a rate.
func (v *view) rate(packets uint64) string { return packetRate(packets, v.Seconds) }

func packetRate(packets uint64, seconds float64) string {
	return units.Short(float64(packets)/seconds) + " packets/s"
}

// bitRate writes "9.41 Gbit/s".
func bitRate(bits float64) string {
	for _, u := range []struct {
		factor float64
		unit   string
	}{{1e9, "Gbit/s"}, {1e6, "Mbit/s"}, {1e3, "kbit/s"}} {
		if bits >= u.factor*0.9995 {
			return units.Digits(bits/u.factor, 3) + " " + u.unit
		}
	}
	return fmt.Sprintf("%.0f bit/s", bits)
}

// framing is what each frame takes on the wire beyond what interfaces count: preamble and
// start 8 bytes, frame check sequence 4, gap 12 (IEEE 802.3).
const framing = 24

// impossible is a share of a link's speed that no link can carry. The driver's speed is
// wrong, or its counters cover more time than lies between the samples.
const impossible = 1.1

// wire returns the use of a link in its busier direction, as a share of its speed. ok is
// false if speed or counters are unknown or contradict each other.
func (n *nic) wire(seconds float64) (share float64, sends, ok bool) {
	share, sends, ok = n.used(seconds)
	return share, sends, ok && share <= impossible
}

// used calculates the same share without checking it.
func (n *nic) used(seconds float64) (share float64, sends, ok bool) {
	if !n.counted || n.Mbit <= 0 || seconds <= 0 {
		return 0, false, false
	}
	use := func(bytes, packets uint64) float64 {
		return float64(bytes+framing*packets) * 8 / seconds / (float64(n.Mbit) * 1e6)
	}
	rx, tx := use(n.link.RxBytes, n.link.RxPackets), use(n.link.TxBytes, n.link.TxPackets)
	if tx > rx {
		return tx, true, true
	}
	return rx, false, true
}
