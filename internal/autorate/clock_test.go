package autorate_test

import (
	"fmt"
	"testing"
	"time"

	"weir/internal/autorate"
)

// Hosts set their clocks while they say how long each way takes, forward or back, by as little as NTP does at once
// or by seconds, and perhaps back again. The line is as it was: the rate does not fall for more than a second,
// whether one host does so or all, and goes on to follow.
func TestHostsSetTheirClocks(t *testing.T) {
	const when, again, slow = 60 * time.Second, 75 * time.Second, 90 * time.Second
	for _, hosts := range []int{1, 2, 4} {
		for _, set := range []int{1, 2, 4} {
			for _, by := range []time.Duration{45 * time.Millisecond, -45 * time.Millisecond, 128 * time.Millisecond, -time.Second, 5 * time.Second} {
				if set > hosts {
					continue
				}
				t.Run(fmt.Sprintf("%d of %d hosts, %v", set, hosts, by), func(t *testing.T) {
					l := &line{depth: 0.5, base: 40 * time.Millisecond, jitter: 4 * time.Millisecond, split: true}
					for d := range l.rate {
						l.rate[d], l.offered[d] = constant(50e6), constant(14e6)
					}
					l.rate[autorate.Up] = func(at time.Duration) float64 {
						return map[bool]float64{true: 50e6, false: 8e6}[at < slow]
					}
					l.clock = func(host int, at time.Duration) time.Duration {
						return map[bool]time.Duration{true: by}[host < set && at > when && at < again]
					}
					cfg := config(2e6, 15e6, 15e6)
					cfg.Hosts = hosts
					all := l.follow(cfg, slow+20*time.Second)
					low := time.Duration(0)
					for _, m := range between(all, when, slow) {
						for d := range m.rate {
							if m.rate[d] < 0.97*15e6 {
								low += every
								break
							}
						}
					}
					if low > time.Second {
						t.Errorf("the rate is low for %v", low)
					}
					if end := all[len(all)-1]; end.rate[autorate.Up] > 1.1*8e6 || end.rate[autorate.Down] < 0.97*15e6 {
						t.Errorf("behind a slower line up the rates are %.3g", end.rate)
					}
				})
			}
		}
	}
}
