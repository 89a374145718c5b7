package keeper

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
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
	damage := func(folder, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, stampFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var said bytes.Buffer
	log = slog.New(slog.NewTextHandler(&said, nil))
	for _, torn := range []string{"{", "", "{}\n", "{\"sent\": \"2036-"} {
		said.Reset()
		stays, err := readStamp(state)
		if err != nil || stays.IsZero() {
			t.Fatalf("what stays is %v, %v", stays, err)
		}
		damage(folder, torn)
		if _, e := open(); !e.after.Equal(stays.Add(2*stampPause + stampSlack)) {
			t.Errorf("beside a file with %q it goes on from %v, want two minutes after %v", torn, e.after, stays)
		}
		if !strings.Contains(said.String(), "the one that stays over a boot is used") {
			t.Errorf("of a file with %q it says\n%s", torn, said.String())
		}
	}
	damage(folder, "{")
	damage(state, "{")
	if _, e := open(); !e.after.IsZero() || !strings.Contains(said.String(), "no record of the times of handshakes can be read") {
		t.Errorf("from files that are none it goes on from %v, and says\n%s", e.after, said.String())
	}
}

// What handshakes say is told if it is yet to come.
func TestStampsSay(t *testing.T) {
	now := time.Unix(2_000_000_000, 0)
	s := &stamps{folder: t.TempDir(), last: now.Add(time.Hour)}
	if got := s.says(&stamper{}, now); !got.Equal(s.last) {
		t.Errorf("an hour ahead handshakes say %v", got)
	}
	if got := s.says(nil, now); !got.IsZero() {
		t.Errorf("with an engine that says the clock's time handshakes say %v", got)
	}
	if got := s.says(&stamper{}, s.last.Add(-time.Second)); !got.IsZero() {
		t.Errorf("with the right clock handshakes say %v", got)
	}
}

// A folder that cannot be written is told once, and once more when it can.
func TestStampsFault(t *testing.T) {
	var said bytes.Buffer
	log, folder := slog.New(slog.NewTextHandler(&said, nil)), filepath.Join(t.TempDir(), "full")
	s, now := &stamps{folder: folder}, time.Unix(2_000_000_000, 0)
	count := func(what string, want int) {
		t.Helper()
		for range 3 {
			now = now.Add(time.Second)
			s.last = now
			s.write(now, false, log)
		}
		if n := strings.Count(said.String(), what); n != want {
			t.Errorf("%q is said %d times, want %d:\n%s", what, n, want, said.String())
		}
	}
	count("this is tried again each second", 1)
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	count("can be written again", 1)
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	count("this is tried again each second", 2)
}
