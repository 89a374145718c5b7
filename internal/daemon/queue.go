package daemon

import (
	"context"
	"io"
	"sync"

	"weir/internal/record"
)

// queueRoom is how many bytes of records wait for a reader; what comes then, it
// loses.
const queueRoom = 16 << 20

// A queue holds what a reader of records has not been sent yet, as a part of the
// stream (record.Stream). Whoever fills it never waits.
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
	} else {
		q.waiting = record.AppendStream(q.waiting, raw)
	}
	q.signal()
}

// lose counts records that were lost before they got here.
func (q *queue) lose(n uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lost += n
	q.signal()
}

// end says that nothing will come any more.
func (q *queue) end() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ended = true
	q.signal()
}

func (q *queue) signal() {
	select {
	case q.arrived <- struct{}{}:
	default:
	}
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
	part = q.waiting
	if q.lost != q.told {
		part, q.told = record.AppendLost(part, q.lost), q.lost
	}
	q.waiting, q.spare = q.spare[:0], part
	return part, q.ended
}
