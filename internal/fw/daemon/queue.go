package daemon

import (
	"context"
	"io"
	"sync"
	"time"

	"weir/internal/fw/dataplane"
	"weir/internal/fw/pktrecord"
)

// queueRoom is how many bytes of records wait for a reader. Records beyond that are lost
// to it.
const queueRoom = 16 << 20

// A queue holds the records that were not sent to a reader yet, as a part of the stream
// (pktrecord.Stream). The writer never waits.
type queue struct {
	arrived chan struct{} // holds one item when something waits

	mu      sync.Mutex
	waiting []byte
	spare   []byte
	lost    uint64 // records lost so far
	noted   uint64 // losses that are already in the stream
	ended   bool
}

func newQueue() *queue { return &queue{arrived: make(chan struct{}, 1)} }

// add queues a record for the reader, or counts it as lost.
func (q *queue) add(raw []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting)+len(raw) > queueRoom {
		q.lost++
		return
	}
	if len(q.waiting) == 0 { // once the reader has the last record, nothing waits behind it
		q.noteLost()
	}
	q.waiting = pktrecord.AppendStream(q.waiting, raw)
}

// noteLost writes the number of lost records into the stream if it has grown. The caller
// holds q.mu.
func (q *queue) noteLost() {
	if q.lost != q.noted {
		q.waiting, q.noted = pktrecord.AppendLost(q.waiting, q.lost), q.lost
	}
}

// wake wakes the reader if there is anything for it. It is called after a batch of
// records. lost is how many were lost before they got here.
func (q *queue) wake(lost uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lost += lost
	if len(q.waiting) > 0 || q.lost != q.noted {
		signal(q.arrived)
	}
}

// end says that no more records will come.
func (q *queue) end() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ended = true
	signal(q.arrived)
}

// Next waits for records and returns them, with the number lost, as a part of the stream.
// The result is valid until the next call. At the end Next returns io.EOF.
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
	q.noteLost()
	part = q.waiting
	q.waiting, q.spare = q.spare[:0], part
	return part, q.ended
}

// follow reads a ring while anyone wants its records. The ring wakes it at least once per
// pause if it holds anything. hand passes a record to the queues of the readers that want
// it. At the end follow empties the ring for the next readers.
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
			q.wake(now - lost)
		}
		lost = now
	}
	return ring.ReadRaw(0, hand)
}
