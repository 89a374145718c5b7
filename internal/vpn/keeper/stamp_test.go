package keeper

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"weir/internal/vpn/tunnel"
)

// stamper is an engine with a clock of its own.
type stamper struct {
	tunnel.Engine
	after, now time.Time
}

func (s *stamper) StampAfter(t time.Time) { s.after = t }
func (s *stamper) Stamped() time.Time     { return s.now }

// What a process has said last in handshakes, the next one goes on from: exactly in the same boot, and with what may be missing after
// another one.
func TestStamps(t *testing.T) {
	clock := time.Unix(2_100_000_000, 0)
	log, folder, state := slog.New(slog.DiscardHandler), t.TempDir(), filepath.Join(t.TempDir(), "state")
	open := func() (*stamps, *stamper) {
		s, e := &stamps{folder: folder, state: state}, &stamper{}
		s.read(log)
		s.begin(e, clock, log)
		return s, e
	}
	s, e := open()
	if !e.after.IsZero() {
		t.Errorf("at first it goes on from %v", e.after)
	}
	s.note(nil)
	s.write(time.Now(), true, log)
	now := time.Unix(2_000_000_000, 123).UTC()
	say := func(s *stamps, e *stamper, after time.Duration, end bool) {
		e.now = now.Add(after)
		s.note(e)
		s.write(e.now, end, log)
	}
	goesOn := func(what string, want time.Duration) {
		t.Helper()
		if _, e := open(); !e.after.Equal(now.Add(want + stampSlack)) {
			t.Errorf("%s it goes on from %v, want %v", what, e.after, now.Add(want+stampSlack))
		}
	}
	say(s, e, 0, false)
	goesOn("killed,", 0)
	say(s, e, 50*time.Second, false)
	goesOn("killed later,", 50*time.Second)
	s.note(&stamper{now: now}) // another tunnel
	s.write(now.Add(51*time.Second), false, log)
	goesOn("killed with two tunnels,", 50*time.Second)
	boot := func() {
		t.Helper()
		if err := os.Remove(filepath.Join(folder, stampFile)); err != nil {
			t.Fatal(err)
		}
	}
	boot()
	goesOn("after a boot,", 2*stampPause) // a minute has not passed since it was written
	say(s, e, 52*time.Second, true)
	boot()
	goesOn("ended before a boot,", 52*time.Second+2*stampPause)
	say(s, e, 3*time.Minute, false)
	boot()
	goesOn("after another minute,", 3*time.Minute+2*stampPause)
	say(s, e, 4*time.Minute, false)
	clock = time.Unix(1_000_000_000, 0) // it has gone back
	for i := range 3 {
		goesOn("with a clock that has gone back, killed at once,", 4*time.Minute+time.Duration(i)*stampSlack)
	}
	if err := os.WriteFile(filepath.Join(folder, stampFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, e := open(); !e.after.IsZero() {
		t.Errorf("from a file that is none it goes on from %v", e.after)
	}
}
