package daemon

import (
	"context"
	"sync"
	"time"

	"weir/internal/fw/control"
	"weir/internal/fw/dataplane"
)

// logPause is how long a record waits in the ring, unless the ring fills.
const logPause = 20 * time.Millisecond

// A logger reads what rules log and hands it to its readers. Each reader has its own
// queue. Without readers nothing is logged.
type logger struct {
	readiness
	box *box

	mu      sync.Mutex
	readers map[*logReader]bool
	ended   bool
	came    chan struct{} // holds one item when a reader has joined
}

// A logReader is one reader of the log.
type logReader struct {
	*queue
	of *logger
}

func newLogger(b *box) *logger {
	return &logger{readiness: newReadiness(), box: b, readers: make(map[*logReader]bool), came: make(chan struct{}, 1)}
}

func (*logger) String() string { return "log" }

// Run reads the ring while there are readers. It discards what an earlier daemon left in
// the ring.
func (l *logger) Run(ctx context.Context) error {
	defer l.end()
	l.setRecording()
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

// read reads the ring until there are no readers left.
func (l *logger) read(ctx context.Context, ring *dataplane.Ring) error {
	return follow(ctx, ring, logPause, l.deliver, l.queues)
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

// deliver passes a record to all readers.
func (l *logger) deliver(raw []byte, _ uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for r := range l.readers {
		r.add(raw)
	}
}

// setRecording makes the programs write records if there are readers.
func (l *logger) setRecording() {
	l.box.mu.Lock()
	defer l.box.mu.Unlock()
	l.box.dp.SetRecording(dataplane.LogRing, len(l.queues()) > 0)
}

// join adds a reader. It gets everything that is logged from now on.
func (l *logger) join() (*logReader, error) {
	r := &logReader{newQueue(), l}
	if !l.add(r) {
		return nil, control.ErrEnding
	}
	l.setRecording()
	signal(l.came)
	return r, nil
}

// add adds a reader, unless the daemon is ending.
func (l *logger) add(r *logReader) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended {
		l.readers[r] = true
	}
	return !l.ended
}

// Close ends the log for this reader, unless the daemon has already ended it.
func (r *logReader) Close() error {
	r.of.mu.Lock()
	present := r.of.readers[r]
	delete(r.of.readers, r)
	r.of.mu.Unlock()
	if present {
		r.of.setRecording()
	}
	return nil
}

// end ends the log for all readers.
func (l *logger) end() {
	l.mu.Lock()
	l.ended = true
	for r := range l.readers {
		r.queue.end()
	}
	clear(l.readers)
	l.mu.Unlock()
	l.setRecording()
}

// Log starts handing what rules log to a reader.
func (c *controller) Log() (control.Packets, error) { return c.logger.join() }
