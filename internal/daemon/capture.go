package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"weir/internal/api"
	"weir/internal/dataplane"
	"weir/internal/record"
)

const (
	// capturePause is how long captured packets lie in the ring, unless it fills.
	capturePause = 10 * time.Millisecond
	// captureBacklog is how many bytes wait for a reader; what comes then, it loses.
	captureBacklog = 16 << 20
)

// capturer reads what the programs capture and hands it to those who asked for
// it. Nothing is captured while there is nobody.
type capturer struct {
	readiness
	box *box

	mu      sync.Mutex // held while readers change
	readers [dataplane.CaptureReaders]atomic.Pointer[captureReader]
	changed chan struct{} // holds one when readers have changed
	ended   chan struct{} // closed when the task ends
}

// A captureReader is one that asked.
type captureReader struct {
	of      *capturer
	number  int
	snap    int
	filters []dataplane.CaptureFilter
	before  uint64 // what the ring had lost when it began
	arrived chan struct{}

	mu      sync.Mutex
	waiting []byte // of the stream (record.AppendStream)
	spare   []byte
	lost    uint64 // it was too slow for
	ring    uint64 // lost by the ring, ever
	told    uint64 // of what was lost
}

func newCapturer(b *box) *capturer {
	return &capturer{readiness: newReadiness(), box: b, changed: make(chan struct{}, 1), ended: make(chan struct{})}
}

func (*capturer) String() string { return "capture" }

// Run reads the ring as long as somebody wants what is in it. What a daemon that
// was killed has left on is switched off first.
func (c *capturer) Run(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, c.end()) }()
	if err := c.set(nil, 0); err != nil {
		return err
	}
	c.readiness.set()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c.changed:
		}
		if err := c.read(ctx); err != nil {
			return err
		}
	}
}

// end ends the capture for all.
func (c *capturer) end() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.readers {
		c.readers[i].Store(nil)
	}
	close(c.ended)
	return c.set(nil, 0)
}

// read reads the ring until nobody wants it any more. Nothing old is left in it
// then for who comes next.
func (c *capturer) read(ctx context.Context) error {
	c.box.mu.Lock()
	ring, err := c.box.dp.OpenRing(dataplane.CaptureRing)
	c.box.mu.Unlock()
	if err != nil {
		return err
	}
	defer ring.Close()
	var told time.Time
	for ctx.Err() == nil {
		readers := c.list()
		if len(readers) == 0 {
			return ring.ReadRaw(0, c.hand)
		}
		if err := ring.ReadRaw(capturePause, c.hand); err != nil {
			return err
		}
		if time.Since(told) > time.Second {
			told = time.Now()
			if err := tellLost(ring, readers); err != nil {
				return err
			}
		}
		for _, r := range readers {
			r.announce()
		}
	}
	return nil
}

// hand gives a record to those of the present readers that want it.
func (c *capturer) hand(raw []byte, wanted uint32) {
	for i := range c.readers {
		if wanted&(1<<i) == 0 {
			continue
		}
		if r := c.readers[i].Load(); r != nil {
			r.add(raw)
		}
	}
}

func (c *capturer) list() []*captureReader {
	var all []*captureReader
	for i := range c.readers {
		if r := c.readers[i].Load(); r != nil {
			all = append(all, r)
		}
	}
	return all
}

// lost is what the ring has lost, ever.
func (c *capturer) lost() (uint64, error) {
	c.box.mu.Lock()
	defer c.box.mu.Unlock()
	return c.box.dp.View().RecordsLost(dataplane.CaptureRing)
}

// tellLost tells readers what the ring has lost. It does not wait for the box: a
// load holds that for seconds, in which the ring would fill.
func tellLost(ring *dataplane.Ring, readers []*captureReader) error {
	lost, err := ring.Lost()
	if err != nil {
		return err
	}
	for _, r := range readers {
		r.mu.Lock()
		r.ring = lost
		r.mu.Unlock()
	}
	return nil
}

// set tells the dataplane what is wanted.
func (c *capturer) set(filters []dataplane.CaptureFilter, snap int) error {
	c.box.mu.Lock()
	defer c.box.mu.Unlock()
	return c.box.dp.SetCapture(snap, filters)
}

// update tells the dataplane what the present readers want. c.mu is held.
func (c *capturer) update() error {
	var all []dataplane.CaptureFilter
	snap := 0
	for _, r := range c.list() {
		all, snap = append(all, r.filters...), max(snap, r.snap)
	}
	return c.set(all, snap)
}

var errCaptureReaders = fmt.Errorf("capture: %d are running, which is all that there may be: end one", dataplane.CaptureReaders)

// open begins to capture for one more reader.
func (c *capturer) open(q *api.CaptureRequest) (*captureReader, error) {
	filters, err := c.box.captureFilters(q)
	if err != nil {
		return nil, err
	}
	r := &captureReader{of: c, filters: filters, snap: q.Snap, arrived: make(chan struct{}, 1)}
	if r.before, err = c.lost(); err != nil {
		return nil, err
	}
	r.ring = r.before
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.ended:
		return nil, api.ErrLeaving
	default:
	}
	for c.readers[r.number].Load() != nil {
		if r.number++; r.number == len(c.readers) {
			return nil, errCaptureReaders
		}
	}
	for i := range r.filters {
		r.filters[i].Readers = 1 << r.number
	}
	c.readers[r.number].Store(r)
	if err := c.update(); err != nil {
		c.readers[r.number].Store(nil)
		return nil, err
	}
	c.signal(c.changed)
	return r, nil
}

// captureFilters resolves what a reader asks for.
func (b *box) captureFilters(q *api.CaptureRequest) ([]dataplane.CaptureFilter, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	filters, err := parseFilter(q.Filter, q.Replies, b.host)
	if err != nil || q.Interface == api.AnyInterface {
		return filters, err
	}
	for i := range b.links {
		if b.links[i].Name != q.Interface {
			continue
		}
		for f := range filters {
			filters[f].Ifindex = b.links[i].Index
		}
		return filters, nil
	}
	return nil, fmt.Errorf("capture: there is no interface %s; %q means all", q.Interface, api.AnyInterface)
}

func (*capturer) signal(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// add keeps a record for the reader, or counts it as lost.
func (r *captureReader) add(raw []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.waiting)+len(raw) > captureBacklog {
		r.lost++
		return
	}
	if len(r.waiting) == 0 { // a reader that has the last record waits for nothing behind it
		r.tell()
	}
	r.waiting = record.AppendStream(r.waiting, raw)
}

// tell puts what was lost into the stream, if that is more than before. r.mu is held.
func (r *captureReader) tell() {
	if lost := r.allLost(); lost != r.told {
		r.waiting, r.told = record.AppendLost(r.waiting, lost), lost
	}
}

func (r *captureReader) allLost() uint64 { return r.lost + r.ring - r.before }

// announce says that something waits.
func (r *captureReader) announce() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.waiting) > 0 || r.allLost() != r.told {
		r.of.signal(r.arrived)
	}
}

// Next waits for captured packets and returns them, with what was lost, as a part
// of the stream; good until the next call. The error is io.EOF when the daemon ends.
func (r *captureReader) Next(ctx context.Context) ([]byte, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-r.of.ended:
		return nil, io.EOF
	case <-r.arrived:
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tell()
	r.waiting, r.spare = r.spare[:0], r.waiting
	return r.spare, nil
}

// Close ends the capture for this reader, and with the last one for all packets,
// unless the daemon has ended it.
func (r *captureReader) Close() error {
	r.of.mu.Lock()
	defer r.of.mu.Unlock()
	if !r.of.readers[r.number].CompareAndSwap(r, nil) {
		return nil
	}
	return r.of.update()
}

// Capture begins to capture for a reader.
func (c *controller) Capture(q *api.CaptureRequest) (api.Packets, error) {
	select {
	case <-c.living.Done():
		return nil, api.ErrLeaving
	default:
		return c.capturer.open(q)
	}
}
