// Package progress shows how far a long run is and how long it will take. On a terminal
// it redraws one line. Elsewhere it writes a line now and then.
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

// between is the minimum time between two lines that are not redrawn.
const between = 5 * time.Second

// Progress shows the progress of one run. A nil one accepts every call and shows nothing.
// Several goroutines may use it at once.
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
	drawn    bool      // the terminal shows a line that has to be erased
	said     time.Time // when the last line was written without a terminal
}

// A pace is how long a number of steps took.
type pace struct {
	time  float64 // ns
	steps float64
}

// New begins a run of planned steps. The estimate of the whole counts as much as a tenth
// of the steps, because steps differ: the first one includes setting up and says little
// about the others. With an estimate of 0 only finished steps count. If w is nil, New
// returns nil.
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

// Step sets what runs from now on.
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

// Done counts finished steps.
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

// Drop removes steps that will not be done.
func (p *Progress) Drop(steps int) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.planned = max(p.planned-steps, p.done)
}

// End erases the redrawn line at the end of the run.
func (p *Progress) End() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wipe()
	p.step = ""
}

// left estimates the remaining time. It returns 0 if that is unknown.
func (p *Progress) left() time.Duration {
	gone := p.now().Sub(p.begun)
	if p.done == 0 {
		return max(p.estimate-gone, 0)
	}
	each := (float64(gone) + p.expected.time) / (float64(p.done) + p.expected.steps)
	return time.Duration(each * float64(p.planned-p.done))
}

// line returns "[ 12 of 40, 1m20s left] weir-nat, round 2".
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
	if len(line) >= p.width { // a wrapped line cannot be redrawn
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

// bar draws a share in ten columns.
func bar(done, planned int) string {
	full := 0
	if planned > 0 {
		full = done * 10 / planned
	}
	return strings.Repeat("█", full) + strings.Repeat("░", 10-full)
}
