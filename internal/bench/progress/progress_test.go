package progress

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// fake returns a progress with a clock set by hand.
func fake(terminal bool) (*Progress, *bytes.Buffer, *time.Time) {
	var b bytes.Buffer
	now := time.Unix(1000, 0)
	p := New(&b, 10, time.Minute)
	p.now, p.begun, p.terminal, p.width = func() time.Time { return now }, now, terminal, 60
	return p, &b, &now
}

func TestElsewhereALineNowAndThen(t *testing.T) {
	p, b, now := fake(false)
	p.Step("first")
	*now = now.Add(time.Second)
	p.Done(1)
	p.Step("too soon")
	*now = now.Add(between)
	p.Done(1)
	p.Drop(2)
	p.Step("third")
	p.Say("skipped: %s", "nft")
	p.End()
	want := "[0 of 10, 1m0s left] first\n[2 of 8, 24s left] third\nskipped: nft\n"
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b, want)
	}
}

func TestTerminalRedrawsOneLine(t *testing.T) {
	p, b, now := fake(true)
	p.Step("first")
	*now = now.Add(2 * time.Second)
	p.Done(1)
	p.Say("a line that stays")
	p.Step("%s", strings.Repeat("long ", 40))
	p.End()
	text := b.String()
	if n := strings.Count(text, "\n"); n != 1 {
		t.Errorf("%d lines stay, want 1: %q", n, text)
	}
	if !strings.Contains(text, "[1 of 10, 36s left] first") || !strings.HasSuffix(text, "\r\x1b[K") {
		t.Errorf("no time left, or the line stays: %q", text)
	}
	for _, line := range strings.FieldsFunc(text, func(r rune) bool { return r == '\r' || r == '\n' }) {
		if n := len([]rune(strings.TrimPrefix(line, "\x1b[K"))); n >= 60 {
			t.Errorf("%d columns on a terminal of 60: %q", n, line)
		}
	}
}

func TestLongFirstStep(t *testing.T) {
	begun := time.Unix(1000, 0)
	now := begun
	p := New(&bytes.Buffer{}, 240, 24*time.Minute)
	p.now, p.begun = func() time.Time { return now }, begun
	now = now.Add(40 * time.Second)
	p.Done(1)
	if left := p.left(); left < 24*time.Minute || left > 35*time.Minute {
		t.Errorf("%s left after one step of 40 s where 239 of 6 s were expected", left)
	}
	now = begun.Add(60 * time.Minute)
	p.Done(119)
	if left := p.left(); left < 50*time.Minute || left > time.Hour {
		t.Errorf("%s left after half the steps took an hour", left)
	}
}

func TestNilSaysNothing(t *testing.T) {
	p := New(nil, 3, 0)
	p.Say("x")
	p.Step("y")
	p.Done(1)
	p.End()
	if p != nil {
		t.Error("a progress that nobody hears")
	}
}
