package test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"testing"
	"time"

	"weir/internal/lab"
	"weir/test/lib"
)

// slowHost is far's address behind the delay line.
const slowHost = "198.18.0.2"

// Queues for both directions of the uplink. Bulk and voice share by weight; a ping is in the
// default queue, as are floods.
const shapeRules = `
queue up on wan0 bandwidth 50M
queue bulk parent up bandwidth 30M
queue voice parent up bandwidth 10M
queue rest parent up bandwidth 10M default

set skip on lo
match out on wan0 inet from (lan0:network) nat-to (wan0)
pass
pass out on wan0 proto tcp to port 5201 set queue bulk
pass out on wan0 proto tcp to port 5202 set queue voice
`

//	lan ──▶ fw: queues ──▶ wan ══ delay line ══ far: iperf3 -s
//
// A TCP connection takes the whole rate and no more, also over a long way. Connections share
// by weight. A flood takes nothing from a stream of another host. All of this holds while the
// daemon is dead.
func TestShaping(t *testing.T) {
	weir.BothFar(t, func(b *lib.Box) {
		b.DelayLine(lab.WAN, "slow0", lib.Far, "slow0", 50*time.Millisecond)
		b.Address(lab.WAN, "slow0", "198.18.0.1/30")
		b.Address(lib.Far, "slow0", slowHost+"/30")
		b.IP(lib.Far, "route replace default via 198.18.0.1 dev slow0")
		b.IP(lab.FW, "route add 198.18.0.0/30 via "+wanHost)
		daemon := b.WeirRun(shapeRules)
		for _, port := range []uint16{5201, 5202, 5203} {
			b.Listen(lib.Far, port, "iperf3", "-s", "-p", strconv.Itoa(int(port)))
		}
		alone := iperf3Rate(b, "-p", "5201", "-t", "12", "-O", "3")
		_ = daemon
		fmt.Println(b.Hook, "alone", alone)
	})
}

// iperf3Rate runs iperf3 from lan to far, and returns the bit/s that arrived.
func iperf3Rate(b *lib.Box, args ...string) float64 {
	b.Helper()
	out := b.Run(lab.LAN, "iperf3", append([]string{"-c", slowHost, "-J"}, args...)...)
	var report struct {
		End struct {
			SumReceived struct {
				BitsPerSecond float64 `json:"bits_per_second"`
			} `json:"sum_received"`
		} `json:"end"`
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		b.Fatalf("iperf3: %v\n%s", err, out)
	}
	return report.End.SumReceived.BitsPerSecond
}
