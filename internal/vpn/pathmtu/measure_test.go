package pathmtu

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// A road is a path of a test. Its time is that of the bubble.
type road struct {
	limit   int           // of packets; larger ones vanish
	answers bool          // echo requests are answered
	keeps   bool          // the peer answers data with keepalives
	lost    int           // each packet of that number vanishes; 0: none
	other   time.Duration // between packets of somebody else; 0: there are none
	beats   time.Duration // between keepalives that answer nothing; 0: there are none
	longest int           // what the interface takes; 0: everything
	slow    time.Duration // answers take after the first; 0: as the first
	dark    time.Duration // for which nothing goes, from 1 s on

	asked          int
	begun          time.Time
	data           time.Time // the first that the peer has not answered
	sent, received uint64
	beat, others   time.Duration // of the last
}

func (*road) Targets() int { return 1 }

func (r *road) Ask(_ context.Context, _, size int, wait time.Duration) (time.Duration, bool) {
	r.live()
	r.asked++
	if r.longest > 0 && size > r.longest {
		return 0, false
	}
	r.sent += uint64(size + 32)
	goes := size <= r.limit && (r.lost == 0 || r.asked%r.lost != 0)
	if goes && r.data.IsZero() {
		r.data = time.Now()
	}
	if since := time.Since(r.begun); since >= time.Second && since < time.Second+r.dark {
		goes = false
	}
	took := 20 * time.Millisecond
	if r.slow > 0 && r.asked > 1 {
		took = r.slow
	}
	if goes && r.answers && took <= wait {
		time.Sleep(took)
		return took, true
	}
	time.Sleep(wait)
	return 0, false
}

// live does what was to be done until now.
func (r *road) live() {
	now := time.Now()
	if r.begun.IsZero() {
		r.begun = now
	}
	since := now.Sub(r.begun)
	for ; r.other > 0 && since-r.others >= r.other; r.others += r.other {
		r.received += 132
	}
	for ; r.beats > 0 && since-r.beat >= r.beats; r.beat += r.beats {
		r.received += 32
		r.data = time.Time{} // the peer need not answer it any more
	}
	if r.keeps && !r.data.IsZero() && now.Sub(r.data) >= 10*time.Second {
		r.received += 32
		r.beat = since
		r.data = time.Time{}
	}
}

func (r *road) Bytes() (sent, received uint64, ok bool) {
	r.live()
	return r.sent, r.received, true
}

// What is found on paths of every kind.
func TestMeasure(t *testing.T) {
	for _, c := range []struct {
		name   string
		road   road
		bounds Bounds
		want   Found
		asked  int // at most
	}{
		{"all goes", road{limit: 1500, answers: true}, Bounds{Least: 1280, Most: 1420}, Found{1420, Echo, false, false}, 2},
		{"a smaller path", road{limit: 1392, answers: true}, Bounds{Least: 1280, Most: 1420}, Found{1392, Echo, false, false}, 30},
		{"the least", road{limit: 1280, answers: true}, Bounds{Least: 1280, Most: 1420}, Found{1280, Echo, false, false}, 50},
		{"less", road{limit: 1279, answers: true}, Bounds{Least: 1280, Most: 1420}, Found{1280, Echo, true, false}, 14},
		{"IPv4 alone", road{limit: 1220, answers: true}, Bounds{Least: 576, Most: 1420}, Found{1220, Echo, false, false}, 44},
		{"every third is lost", road{limit: 1337, answers: true, lost: 3}, Bounds{Least: 1280, Most: 1420}, Found{1337, Echo, false, false}, 44},
		{"ends become busy", road{limit: 1392, answers: true, slow: 900 * time.Millisecond}, Bounds{Least: 1280, Most: 1420}, Found{1392, Echo, false, false}, 50},
		{"nothing goes for a while", road{limit: 1392, answers: true, dark: 5 * time.Second}, Bounds{Least: 1280, Most: 1420}, Found{1392, Echo, false, false}, 50},
		{"nothing goes any more", road{limit: 1392, answers: true, dark: time.Hour}, Bounds{Least: 1280, Most: 1420}, Found{Ended: true}, 30},
		{"it is as before", road{limit: 1392, answers: true}, Bounds{Least: 1280, Most: 1420, Now: 1392}, Found{1392, Echo, false, false}, 2},
		{"it is smaller than before", road{limit: 1350, answers: true}, Bounds{Least: 1280, Most: 1420, Now: 1392}, Found{1350, Echo, false, false}, 34},
		{"it is larger, and nobody asks", road{limit: 1500, answers: true}, Bounds{Least: 1280, Most: 1420, Now: 1392}, Found{1392, Echo, false, false}, 2},
		{"it is larger", road{limit: 1500, answers: true}, Bounds{Least: 1280, Most: 1420, Now: 1392, Raise: true}, Found{1420, Echo, false, false}, 2},
		{"it is a bit larger", road{limit: 1400, answers: true}, Bounds{Least: 1280, Most: 1420, Now: 1392, Raise: true}, Found{1400, Echo, false, false}, 28},
		{"it is smaller, and a larger one is tried", road{limit: 1300, answers: true}, Bounds{Least: 1280, Most: 1420, Now: 1392, Raise: true}, Found{1300, Echo, false, false}, 42},
		{"what was before is out of bounds", road{limit: 1300, answers: true}, Bounds{Least: 1280, Most: 1360, Now: 1392}, Found{1300, Echo, false, false}, 40},
		{"nothing goes", road{}, Bounds{Least: 1280, Most: 1420, Now: 1392}, Found{}, 10},
		{"keepalives alone", road{limit: 1500, keeps: true}, Bounds{Least: 1280, Most: 1420}, Found{1420, Keepalive, false, false}, 10},
		{"keepalives on a smaller path", road{limit: 1392, keeps: true}, Bounds{Least: 1280, Most: 1420}, Found{1385, Keepalive, false, false}, 30},
		{"keepalives, and less than the least", road{limit: 1200, keeps: true}, Bounds{Least: 1280, Most: 1420}, Found{1280, Keepalive, true, false}, 30},
		{"the interface takes less", road{limit: 1500, keeps: true, longest: 1400}, Bounds{Least: 1280, Most: 1420}, Found{1397, Keepalive, false, false}, 30},
		{"others talk", road{limit: 1300, keeps: true, other: 3 * time.Second}, Bounds{Least: 1280, Most: 1420}, Found{1280, Assumed, false, false}, 10},
		{"others talk, and it was known", road{limit: 1300, keeps: true, other: 3 * time.Second}, Bounds{Least: 1280, Most: 1420, Now: 1400}, Found{1400, Assumed, false, false}, 10},
		{"others talk over IPv4 alone", road{limit: 1300, keeps: true, other: 3 * time.Second}, Bounds{Least: 576, Most: 1240}, Found{1240, Assumed, false, false}, 10},
		{"other keepalives", road{limit: 1392, keeps: true, beats: 25 * time.Second}, Bounds{Least: 1280, Most: 1420}, Found{1385, Keepalive, false, false}, 60},
		{"other keepalives, and nothing goes", road{beats: 25 * time.Second}, Bounds{Least: 1280, Most: 1420, Now: 1400}, Found{}, 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := c.road
				if got := Measure(t.Context(), &r, c.bounds); got != c.want || r.asked > c.asked {
					t.Errorf("found %+v, not %+v, after %d requests in %v", got, c.want, r.asked, time.Since(r.begun))
				}
			})
		})
	}
}

// Every size is found.
func TestSizes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for limit := 1280; limit <= 1500; limit++ {
			r := road{limit: limit, answers: true}
			if got := Measure(t.Context(), &r, Bounds{Least: 1280, Most: 1420}); got.Size != min(limit, 1420) || got.Below {
				t.Errorf("up to %d bytes go: found %+v", limit, got)
			}
		}
	})
}

// It ends when it is told to.
func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		begun := time.Now()
		Measure(ctx, &road{keeps: true}, Bounds{Least: 1280, Most: 1420})
		if took := time.Since(begun); took > 6*time.Second {
			t.Errorf("it ended after %v", took)
		}
	})
}
