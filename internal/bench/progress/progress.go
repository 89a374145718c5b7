// Package progress tells a person how far a long run is and how long it will
// go on: on a terminal in one line that is drawn anew, elsewhere in a line now
// and then.
package progress

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// between is the least time between two lines where none is redrawn.
const between = 5 * time.Second

// Progress is of one run. A nil one hears everything and says nothing. It may be
// used by several goroutines at once.
type Progress struct {
	mu       sync.Mutex
	w        io.Writer
	terminal bool
	width    int
	now      func() time.Time

	begun    time.Time
	estimate time.Duration
	planned  int
	done     int
	expected pace
	step     string
	drawn    bool      // a line stands on the terminal that has to be taken away
	said     time.Time // when the last line was written elsewhere
}

// A pace is how long a number of steps take.
type pace struct {
	time  float64 // ns
	steps float64
}

// New begins a run of a number of steps. The estimate of the whole counts as much
// as a tenth of the steps, which need not take equally long: the first, with what
// it sets up, does not say how long the others take. 0 is none: then the steps
// that are over count alone. w nil makes a nil Progress.
func New(w io.Writer, planned int, estimate time.Duration) *Progress {
	if w == nil {
		return nil
	}
	p := &Progress{w: w, planned: planned, estimate: estimate, now: time.Now}
	if estimate > 0 {
		p.expected = pace{float64(estimate) / 10, float64(planned) / 10}
	}
	if f, ok := w.(*os.File); ok {
		if size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ); err == nil {
			p.terminal, p.width = true, max(int(size.Col), 40)
		}
	}
	p.begun = p.now()
	return p
}

// Say writes a line that stays.
func (p *Progress) Say(format string, args ...any) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wipe()
	fmt.Fprintf(p.w, format+"\n", args...)
	p.draw()
}

// Step says what runs from now on.
func (p *Progress) Step(format string, args ...any) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.step = fmt.Sprintf(format, args...)
	if p.terminal {
		p.wipe()
		p.draw()
	} else if now := p.now(); now.Sub(p.said) >= between {
		p.said = now
		fmt.Fprintln(p.w, p.line())
	}
}

// Done says that a number of steps are over.
func (p *Progress) Done(steps int) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done = min(p.done+steps, p.planned)
	p.wipe()
	p.draw()
}

// Drop says that a number of steps will not be done.
func (p *Progress) Drop(steps int) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.planned = max(p.planned-steps, p.done)
}

// End takes the redrawn line away; the run is over.
func (p *Progress) End() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wipe()
	p.step = ""
}

// left is about how long the run will go on; 0 if that cannot be known yet.
func (p *Progress) left() time.Duration {
	gone := p.now().Sub(p.begun)
	if p.done == 0 {
		return max(p.estimate-gone, 0)
	}
	each := (float64(gone) + p.expected.time) / (float64(p.done) + p.expected.steps)
	return time.Duration(each * float64(p.planned-p.done))
}

// line is "[ 12 of 40, 1m20s left] weir-nat, round 2".
func (p *Progress) line() string {
	left := ""
	if d := p.left(); d > 0 {
		left = ", " + d.Round(time.Second).String() + " left"
	}
	return fmt.Sprintf("[%d of %d%s] %s", p.done, p.planned, left, p.step)
}

func (p *Progress) draw() {
	if !p.terminal || p.step == "" {
		return
	}
	line := []rune(bar(p.done, p.planned) + " " + p.line())
	if len(line) >= p.width { // a line that wraps cannot be redrawn
		line = append(line[:p.width-2], '…')
	}
	fmt.Fprint(p.w, string(line))
	p.drawn = true
}

func (p *Progress) wipe() {
	if p.drawn {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.drawn = false
	}
}

// bar shows a share in ten places.
func bar(done, planned int) string {
	full := 0
	if planned > 0 {
		full = done * 10 / planned
	}
	return strings.Repeat("█", full) + strings.Repeat("░", 10-full)
}
