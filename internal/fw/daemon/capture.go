package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"weir/internal/fw/control"
	"weir/internal/fw/dataplane"
	"weir/internal/fw/reason"
	"weir/internal/pppoe/line"
)

// capturePause is how long captured packets wait in the ring, unless it fills.
const capturePause = 10 * time.Millisecond

// capturer reads what the programs capture and hands it to its readers. Each reader has
// its own queue. Without readers nothing is captured.
type capturer struct {
	readiness
	box *box

	mu      sync.Mutex // held while readers changes
	readers [dataplane.CaptureReaders]atomic.Pointer[captureReader]
	ended   bool
	changed chan struct{} // holds one item when readers has changed
}

// A captureReader is one reader of captured packets.
type captureReader struct {
	*queue
	of      *capturer
	number  int
	snap    int
	filters []dataplane.CaptureFilter
}

func newCapturer(b *box) *capturer {
	return &capturer{readiness: newReadiness(), box: b, changed: make(chan struct{}, 1)}
}

func (*capturer) String() string { return "capture" }

// Run reads the ring while there are readers. It first switches off a capture that a
// killed daemon left on.
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

// end ends the capture for all readers.
func (c *capturer) end() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	for i := range c.readers {
		if r := c.readers[i].Swap(nil); r != nil {
			r.queue.end()
		}
	}
	return c.set(nil, 0)
}

// read reads the ring until there are no readers left.
func (c *capturer) read(ctx context.Context) error {
	c.box.mu.Lock()
	ring, err := c.box.dp.OpenRing(dataplane.CaptureRing)
	c.box.mu.Unlock()
	if err != nil {
		return err
	}
	defer ring.Close()
	over, end := context.WithCancel(ctx)
	var both sync.WaitGroup
	both.Go(func() { c.box.logPPPoE(c.box.lines.watch(over, c.deliverLost)) })
	defer both.Wait()
	defer end()
	return follow(ctx, ring, capturePause, c.deliver, c.queues)
}

// lostReasons says why weir_pppoe_in drops, in the words of the dataplane.
var lostReasons = map[line.Why]reason.Reason{
	line.LostPeer: reason.MartianSource, line.LostLength: reason.Malformed, line.LostKernel: reason.Internal,
	line.LostOver: reason.StateMismatch, line.LostEcho: reason.MaxPktRate, line.LostEnds: reason.MaxPktRate,
}

// deliverLost passes a frame that PPPoE has dropped to each reader that wants frames without looking into them.
func (c *capturer) deliverLost(lost *line.Lost) {
	record := dataplane.Record{Time: lost.Time, Ifindex: uint32(lost.Ifindex), Length: uint32(lost.Length), Kind: dataplane.RecordBefore, Data: lost.Data}
	for _, r := range c.list() {
		wants := slices.ContainsFunc(r.filters, func(f dataplane.CaptureFilter) bool { return f.All && (f.Ifindex == 0 || f.Ifindex == lost.Ifindex) })
		if !wants {
			continue
		}
		one := record
		one.Readers, one.Data = 1<<r.number, lost.Data[:min(len(lost.Data), r.snap)]
		r.add(one.Bytes())
		one.Kind, one.Verdict, one.Reason = dataplane.RecordAfter, dataplane.VerdictDrop, lostReasons[lost.Why]
		r.add(one.Bytes())
	}
}

func (c *capturer) queues() []*queue {
	var all []*queue
	for _, r := range c.list() {
		all = append(all, r.queue)
	}
	return all
}

// deliver passes a record to each present reader that wants it.
func (c *capturer) deliver(raw []byte, wanted uint32) {
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

// set tells the dataplane what to capture.
func (c *capturer) set(filters []dataplane.CaptureFilter, snap int) error {
	c.box.mu.Lock()
	defer c.box.mu.Unlock()
	return c.box.dp.SetCapture(snap, filters)
}

// update tells the dataplane what the present readers want. The caller holds c.mu.
func (c *capturer) update() error {
	var all []dataplane.CaptureFilter
	snap := 0
	for _, r := range c.list() {
		all, snap = append(all, r.filters...), max(snap, r.snap)
	}
	return c.set(all, snap)
}

var errCaptureReaders = fmt.Errorf("capture: %d are running, which is the most: end one first", dataplane.CaptureReaders)

// open starts capturing for one more reader.
func (c *capturer) open(q *control.CaptureRequest) (*captureReader, error) {
	filters, err := c.box.captureFilters(q)
	if err != nil {
		return nil, err
	}
	if err := c.box.prepareCapture(); err != nil {
		c.box.cfg.Log.Debug("load the capture programs in advance", "error", err) // they are loaded again later, or that fails
	}
	r := &captureReader{queue: newQueue(), of: c, filters: filters, snap: q.Snap}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return nil, control.ErrEnding
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
	signal(c.changed)
	return r, nil
}

// prepareCapture loads the capture programs without blocking other users of the box,
// because the verifier takes seconds. If rules are loaded meanwhile, the work is lost.
func (b *box) prepareCapture() error {
	b.mu.Lock()
	prepare := b.dp.CapturePreparation()
	b.mu.Unlock()
	return prepare()
}

// captureFilters resolves what a reader asks for.
func (b *box) captureFilters(q *control.CaptureRequest) ([]dataplane.CaptureFilter, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	filters, err := parseFilter(q.Filter, q.Replies, b.host)
	if err != nil || q.Interface == control.AnyInterface {
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
	return nil, fmt.Errorf("capture: there is no interface %s; %q means all", q.Interface, control.AnyInterface)
}

// Close ends the capture for this reader, unless the daemon has already ended it. When
// the last reader closes, capturing stops.
func (r *captureReader) Close() error {
	r.of.mu.Lock()
	defer r.of.mu.Unlock()
	if !r.of.readers[r.number].CompareAndSwap(r, nil) {
		return nil
	}
	return r.of.update()
}

// Capture starts a capture for a reader.
func (c *controller) Capture(q *control.CaptureRequest) (control.Packets, error) {
	select {
	case <-c.living.Done():
		return nil, control.ErrEnding
	default:
		return c.capturer.open(q)
	}
}
