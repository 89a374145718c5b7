package daemon

import (
	"context"
	"sync"
	"time"

	"weir/internal/fw/control"
	"weir/internal/fw/dataplane"
)

// logPause is how long a record lies in the ring, unless the ring fills.
const logPause = 20 * time.Millisecond

// A logger reads what rules log and hands it to all who asked for it, each with a
// queue of its own. Nothing is logged while there is nobody.
type logger struct {
	readiness
	box *box

	mu      sync.Mutex
	readers map[*logReader]bool
	ended   bool
	came    chan struct{} // holds one when a reader has come
}

// A logReader is one that asked.
type logReader struct {
	*queue
	of *logger
}

func newLogger(b *box) *logger {
	return &logger{readiness: newReadiness(), box: b, readers: make(map[*logReader]bool), came: make(chan struct{}, 1)}
}

func (*logger) String() string { return "log" }

// Run reads the ring as long as somebody wants what is in it. What a daemon before
// this one has left in it is nobody's.
func (l *logger) Run(ctx context.Context) error {
	defer l.end()
	l.tell()
	ring, err := l.open()
	if err != nil {
		return err
	}
	defer ring.Close()
	if err := ring.ReadRaw(0, func([]byte, uint32) {}); err != nil {
		return err
	}
	l.set()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-l.came:
		}
		if err := l.read(ctx, ring); err != nil {
			return err
		}
	}
}

func (l *logger) open() (*dataplane.Ring, error) {
	l.box.mu.Lock()
	defer l.box.mu.Unlock()
	return l.box.dp.OpenRing(dataplane.LogRing)
}

// read reads the ring until nobody wants it any more.
func (l *logger) read(ctx context.Context, ring *dataplane.Ring) error {
	return follow(ctx, ring, logPause, l.hand, l.queues)
}

func (l *logger) queues() []*queue {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]*queue, 0, len(l.readers))
	for r := range l.readers {
		all = append(all, r.queue)
	}
	return all
}

// hand gives a record to all readers.
func (l *logger) hand(raw []byte, _ uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for r := range l.readers {
		r.add(raw)
	}
}

// tell has the programs write records if somebody wants them.
func (l *logger) tell() {
	l.box.mu.Lock()
	defer l.box.mu.Unlock()
	l.box.dp.SetRecording(dataplane.LogRing, len(l.queues()) > 0)
}

// join adds a reader: what is logged from now on is for it too.
func (l *logger) join() (*logReader, error) {
	r := &logReader{newQueue(), l}
	if !l.add(r) {
		return nil, control.ErrLeaving
	}
	l.tell()
	notice(l.came)
	return r, nil
}

// add adds a reader, unless the daemon ends.
func (l *logger) add(r *logReader) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended {
		l.readers[r] = true
	}
	return !l.ended
}

// Close ends the log for this reader, unless the daemon has.
func (r *logReader) Close() error {
	r.of.mu.Lock()
	present := r.of.readers[r]
	delete(r.of.readers, r)
	r.of.mu.Unlock()
	if present {
		r.of.tell()
	}
	return nil
}

// end ends the log for all.
func (l *logger) end() {
	l.mu.Lock()
	l.ended = true
	for r := range l.readers {
		r.queue.end()
	}
	clear(l.readers)
	l.mu.Unlock()
	l.tell()
}

// Log begins to hand what rules log to a reader.
func (c *controller) Log() (control.Packets, error) { return c.logger.join() }
