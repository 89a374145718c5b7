package daemon

import (
	"errors"
	"testing"
	"time"

	"weir/internal/pppoe/advertise"
)

// An interface that cannot be announced on rests ever longer, and is in the log once.
func TestRest(t *testing.T) {
	now := time.Unix(1000, 0)
	down, gone := errors.New("the network is down"), errors.New("no such device")
	var r rest
	for i, test := range []struct {
		why    error
		worked time.Duration
		length time.Duration
		news   bool
	}{
		{down, 0, 4 * time.Second, true},
		{down, 2 * time.Second, 8 * time.Second, false},
		{gone, 0, 16 * time.Second, true},
		{gone, 0, 32 * time.Second, false},
		{gone, 0, time.Minute, false},
		{gone, time.Minute, time.Minute, false},
		{gone, time.Hour, 4 * time.Second, true},
	} {
		if news := r.begin(test.why, test.worked, now); news != test.news || !r.until.Equal(now.Add(test.length)) {
			t.Errorf("fault %d: news %v, rests until %v", i, news, r.until)
		}
	}
}

// While an interface rests, nothing is opened, and the status says why.
func TestAnnounceRests(t *testing.T) {
	why := errors.New("the network is down")
	d := &delegation{settled: true, links: map[string]*announcer{}, rests: map[string]*rest{"none": {until: time.Now().Add(time.Hour), why: why}}}
	state := advertise.State{Prefixes: []advertise.Prefix{{}}}
	if err := d.announce("none", state); !errors.Is(err, why) {
		t.Errorf("it says %v", err)
	}
	d.rests["none"].until = time.Now()
	if err := d.announce("none", state); err == nil || errors.Is(err, why) {
		t.Errorf("after the rest it says %v", err)
	}
}
