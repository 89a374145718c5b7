package datapath

import (
	"net/netip"
	"testing"
	"time"
)

// Both halves of the work are done, by one worker and by two, with one peer and with many.
func TestStand(t *testing.T) {
	for _, workers := range []int{1, 2} {
		for _, peers := range []int{1, 100} {
			s := Stand{Workers: workers, Peers: peers, Time: 100 * time.Millisecond}
			out, err := s.Encrypt(netip.MustParseAddrPort("127.0.0.1:9"))
			if err != nil || out.Bytes == 0 {
				t.Errorf("%d workers, %d peers encrypt %+v, %v", workers, peers, out, err)
			}
			in, err := s.Decrypt()
			if err != nil || in.Bytes == 0 {
				t.Errorf("%d workers, %d peers decrypt %+v, %v", workers, peers, in, err)
			}
			if out.CPU <= 0 || out.CPU > float64(workers)*out.Seconds*1.1 || in.CPU > float64(workers)*in.Seconds*1.1 {
				t.Errorf("%d workers, %d peers use %.3f s of CPU in %.3f s, and %.3f in %.3f", workers, peers, out.CPU, out.Seconds, in.CPU, in.Seconds)
			}
			t.Logf("%d workers, %d peers: %.2f and %.2f Gbit/s", workers, peers, float64(out.Bytes)*8e-9/out.Seconds, float64(in.Bytes)*8e-9/in.Seconds)
		}
	}
}
