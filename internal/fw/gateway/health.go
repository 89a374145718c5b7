package gateway

import "time"

// When a gateway goes down and comes up again, in samples. There is one each second.
const (
	window        = 30
	lostInRow     = 5
	lossDown      = window / 5
	answeredInRow = 10
)

// A health is what the last samples of a gateway say.
type health struct {
	lost   [window]bool
	taken  int // samples in lost; at most window
	next   int
	row    int // samples in a row that are like the last: > 0 answered, < 0 lost
	down   bool
	since  time.Time // it was up or down; zero: it has not been decided
	answer time.Duration
}

// add adds a sample. It returns whether the gateway went down or came up.
func (h *health) add(answered bool, took time.Duration, now time.Time) bool {
	h.lost[h.next] = !answered
	h.next = (h.next + 1) % window
	h.taken = min(h.taken+1, window)
	switch {
	case answered:
		h.row = max(h.row, 0) + 1
		h.average(took)
	default:
		h.row = min(h.row, 0) - 1
	}
	switch {
	case !h.down && (h.row <= -lostInRow || h.taken == window && h.losses() >= lossDown):
		h.set(true, now)
		return true
	case h.down && h.row >= answeredInRow:
		h.set(false, now)
		return true
	case h.since.IsZero() && answered:
		h.since = now
	}
	return false
}

// set notes the change. A gateway that comes up begins a new window: what made it go down
// must not do so again at once.
func (h *health) set(down bool, now time.Time) {
	if !down {
		*h = health{answer: h.answer}
	}
	h.down, h.since = down, now
}

// average is the mean of the last answers, with more weight for later ones, as TCP's
// (RFC 6298, 2).
func (h *health) average(took time.Duration) {
	if h.answer == 0 {
		h.answer = took
	}
	h.answer += (took - h.answer) / 8
}

func (h *health) losses() int {
	n := 0
	for _, lost := range h.lost[:h.taken] {
		if lost {
			n++
		}
	}
	return n
}

// loss is the part of the window's samples that were lost.
func (h *health) loss() float64 {
	if h.taken == 0 {
		return 0
	}
	return float64(h.losses()) / float64(h.taken)
}
