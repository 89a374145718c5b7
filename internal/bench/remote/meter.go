package remote

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// interval is how often a receiver notes what has come.
const interval = 100 * time.Millisecond

// Why a direction ended before its time.
var (
	errNoData  = errors.New("no data came")
	errCutOff  = errors.New("the sender ended before its time")
	errBudget  = errors.New("the server's bound on data is reached (its --max-data)")
	errTooFast = errors.New("the client sends more than it was given")
)

// meter counts what one direction of a run has brought.
type meter struct{ bytes, packets atomic.Uint64 }

func (m *meter) add(bytes int) {
	m.bytes.Add(uint64(bytes))
	m.packets.Add(1)
}

// window counts what comes in the time that is asked for, from the first byte
// on. What it got is right also where it ends early, with the reason. Times are
// taken anew at each reading, so that a busy machine makes intervals longer and
// not rates wrong.
func (m *meter) window(ctx context.Context, omit, count time.Duration) (received, error) {
	var r received
	if err := m.await(ctx); err != nil {
		return r, err
	}
	if err := sleep(ctx, omit); err != nil {
		return r, err
	}
	step := max(interval, count/(maxSeries-1))
	begun := time.Now()
	first := m.bytes.Load()
	last, lastBytes := begun, first
	for time.Since(begun) < count {
		pause := step
		if left := count - time.Since(begun); left < step*3/2 {
			pause = left // rather than a last interval that is too short to say anything
		}
		err := sleep(ctx, pause)
		now, bytes := time.Now(), m.bytes.Load()
		r.Series = append(r.Series, float64(bytes-lastBytes)*8/now.Sub(last).Seconds())
		r.Bytes, r.Window = bytes-first, now.Sub(begun)
		last, lastBytes = now, bytes
		if err != nil {
			return r, err
		}
	}
	r.Whole = true
	return r, nil
}

// await waits for the first byte.
func (m *meter) await(ctx context.Context) error {
	end := time.Now().Add(answerPatience / 2)
	for m.bytes.Load() == 0 {
		if time.Now().After(end) {
			return errNoData
		}
		if err := sleep(ctx, time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// sleep waits, or gives the reason for which ctx has ended.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// account is what a client may still move, in bytes; nil: as much as it likes.
type account struct{ left atomic.Int64 }

func newAccount(bytes uint64) *account {
	a := new(account)
	a.left.Store(int64(bytes))
	return a
}

// spend reports whether that many bytes may be moved.
func (a *account) spend(n int) bool { return a == nil || a.left.Add(-int64(n)) >= 0 }

// bucket bounds a rate; nil: no bound.
type bucket struct {
	mu    sync.Mutex
	bytes float64 // per second
	next  time.Time
}

// bucketBurst is what may come at once after a pause: enough that a sender that
// keeps to its rate never waits, which TCP would take for a slow receiver.
const bucketBurst = 500 * time.Millisecond

func newBucket(bits float64) *bucket {
	if bits == 0 {
		return nil
	}
	return &bucket{bytes: bits / 8}
}

// take says how long to wait for having moved n bytes.
func (b *bucket) take(n int) time.Duration {
	if b == nil {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if least := now.Add(-bucketBurst); b.next.Before(least) {
		b.next = least
	}
	b.next = b.next.Add(time.Duration(float64(n) / b.bytes * float64(time.Second)))
	return b.next.Sub(now)
}

// piece is how many bytes to read at once, so that the wait for them is short.
func (b *bucket) piece() int {
	if b == nil {
		return block
	}
	return int(min(max(b.bytes*(bucketBurst/20).Seconds(), 4096), block))
}
