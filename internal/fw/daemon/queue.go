package daemon

import (
	"context"
	"io"
	"sync"
	"time"

	"weir/internal/fw/dataplane"
	"weir/internal/fw/pktrecord"
)

// queueRoom is how many bytes of records wait for a reader; what comes then, it
// loses.
const queueRoom = 16 << 20

// A queue holds what a reader of records has not been sent yet, as a part of the
// stream (pktrecord.Stream). Whoever fills it never waits.
type queue struct {
	arrived chan struct{} // holds one when something waits

	mu      sync.Mutex
	waiting []byte
	spare   []byte
	lost    uint64 // ever
	told    uint64 // of lost
	ended   bool
}

func newQueue() *queue { return &queue{arrived: make(chan struct{}, 1)} }

// add keeps a record for the reader, or counts it as lost.
func (q *queue) add(raw []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting)+len(raw) > queueRoom {
		q.lost++
		return
	}
	if len(q.waiting) == 0 { // a reader that has the last record waits for nothing behind it
		q.tell()
	}
	q.waiting = pktrecord.AppendStream(q.waiting, raw)
}

// tell puts what was lost into the stream, if that is more than before. q.mu is held.
func (q *queue) tell() {
	if q.lost != q.told {
		q.waiting, q.told = pktrecord.AppendLost(q.waiting, q.lost), q.lost
	}
}

// announce wakes the reader if there is anything for it: after many records, not
// after each. lost of them were so before they got here.
func (q *queue) announce(lost uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lost += lost
	if len(q.waiting) > 0 || q.lost != q.told {
		notice(q.arrived)
	}
}

// end says that nothing will come any more.
func (q *queue) end() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ended = true
	notice(q.arrived)
}

// Next waits for records and returns them, and what was lost, as a part of the
// stream; good until the next call. The error is io.EOF at the end.
func (q *queue) Next(ctx context.Context) ([]byte, error) {
	for {
		if part, ended := q.take(); len(part) > 0 {
			return part, nil
		} else if ended {
			return nil, io.EOF
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-q.arrived:
		}
	}
}

// take returns what waits now.
func (q *queue) take() (part []byte, ended bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.tell()
	part = q.waiting
	q.waiting, q.spare = q.spare[:0], part
	return part, q.ended
}

// follow reads a ring, which wakes it at least each pause when something is in it, as
// long as somebody wants that. hand gives a record to the queues of those that do. At
// the end nothing old is left in the ring for who comes next.
func follow(ctx context.Context, ring *dataplane.Ring, pause time.Duration, hand func(raw []byte, wanted uint32), wanted func() []*queue) error {
	lost, err := ring.Lost()
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		queues := wanted()
		if len(queues) == 0 {
			break
		}
		if err := ring.ReadRaw(pause, hand); err != nil {
			return err
		}
		now, err := ring.Lost()
		if err != nil {
			return err
		}
		for _, q := range queues {
			q.announce(now - lost)
		}
		lost = now
	}
	return ring.ReadRaw(0, hand)
}
