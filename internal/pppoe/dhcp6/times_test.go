package dhcp6_test

import (
	"testing"
	"time"

	"weir/internal/pppoe/dhcp6"
)

// The times between messages are the client's if the server gives none, or such as make no sense.
func TestTimes(t *testing.T) {
	const forever = 0xffffffff * time.Second
	for _, test := range []struct {
		name                     string
		t1, t2, preferred, valid time.Duration
		renew, rebind            time.Duration // 0: never
	}{
		{"none", 0, 0, time.Hour, 2 * time.Hour, 30 * time.Minute, 48 * time.Minute},
		{"too late", 3 * time.Hour, 4 * time.Hour, time.Hour, 2 * time.Hour, 30 * time.Minute, 48 * time.Minute},
		{"short", 0, 0, 12 * time.Second, 24 * time.Second, 10 * time.Second, 10 * time.Second},
		{"for ever", 0, 0, forever, forever, 0, 0},
		{"for ever, but asked", time.Hour, 2 * time.Hour, forever, forever, time.Hour, 2 * time.Hour},
		{"never renewed", forever, forever, time.Hour, 2 * time.Hour, 30 * time.Minute, 48 * time.Minute},
		{"deprecated", 0, 0, 0, time.Hour, 30 * time.Minute, 48 * time.Minute},
		{"the second only", 0, 16 * time.Minute, time.Hour, 2 * time.Hour, 10 * time.Minute, 16 * time.Minute},
		{"the first only", 20 * time.Minute, 0, time.Hour, 2 * time.Hour, 20 * time.Minute, 32 * time.Minute},
		{"the first only, late", 50 * time.Minute, 0, time.Hour, 2 * time.Hour, 50 * time.Minute, time.Hour},
		{"the first at the end", time.Hour, time.Hour, time.Hour, 2 * time.Hour, 37*time.Minute + 30*time.Second, time.Hour},
		{"for ever, the second only", 0, 16 * time.Minute, forever, forever, 10 * time.Minute, 16 * time.Minute},
		{"for ever, the first only", 20 * time.Minute, 0, forever, forever, 20 * time.Minute, 32 * time.Minute},
		{"100 years", 0, 0, 876000 * time.Hour, 876000 * time.Hour, 438000 * time.Hour, 700800 * time.Hour},
	} {
		b := newBench(t, dhcp6.Config{})
		b.bind(grant{prefixes: good.prefixes, t1: test.t1, t2: test.t2, preferred: test.preferred, valid: test.valid})
		got := b.Lease()
		for _, one := range []struct {
			what string
			at   time.Time
			want time.Duration
		}{{"renewed", got.Renew, test.renew}, {"rebound", got.Rebind, test.rebind}} {
			if want := b.now.Add(one.want); one.want == 0 && !one.at.IsZero() || one.want != 0 && !one.at.Equal(want) {
				t.Errorf("%s: %s at %v, want after %v", test.name, one.what, one.at, one.want)
			}
		}
	}
}
