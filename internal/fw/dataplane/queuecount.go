package dataplane

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"sync/atomic"

	"weir/internal/fw/bpfload"
	"weir/internal/fw/state"
)

// A QueueKind says whose packets a count of a queue counts.
type QueueKind string

// The kinds of counts.
const (
	QueueOfConnection QueueKind = "connection" // one direction of a state
	QueueOfHost       QueueKind = "host"       // all of a host: fair host
	QueueOfStateless  QueueKind = "stateless"  // packets without a state whose tuples have one hash
	QueueOfRest       QueueKind = "rest"       // all connections of a class that found no count of their own
)

// A QueueCount is a count of a queue: what one connection has sent, in bytes on the line.
type QueueCount struct {
	ID      QueueCountID
	Kind    QueueKind
	Class   int          // among all classes, as Queues returns them
	State   *state.State // of a connection; nil: it is over
	Back    bool         // of the packets of direction 1
	Host    netip.Addr   // of a connection or a host; not valid if it is not known
	Sent    uint64       // bytes; only differences mean anything, modulo 2^44
	Backlog uint64       // bytes that it has sent beyond what it was given
	Given   uint64       // bytes per second that it gets at present
	Loss    state.Loss   // since the queues were loaded
}

// A QueueCountID says which count it is, as long as it counts the same packets.
type QueueCountID struct {
	Place int
	Key   uint64
}

// Parts of a counter's key, and a kind (bpf/queue/admit.h, bpf/queue/queue.h).
const (
	queueKeyFlow   = 1<<27 - 1
	queueKeyHashed = 1 << 27
	queueKeyHost   = 1 << 61
	queueIsHost    = 2
	queueMix       = 0x9e3779b97f4a7c15
)

// queueWrap is where the bytes of a counter begin anew.
const queueWrap = 1 << 44

// QueueBytes returns the bytes that have passed between two looks at QueueCount.Sent.
func QueueBytes(before, now uint64) uint64 { return (now - before) % queueWrap }

// QueueCounts returns the counts of all classes. There are none if no interface has queues.
func (v *View) QueueCounts() (all []QueueCount, err error) {
	dir := liveGeneration(v.dir)
	counters, err := bpfload.OpenMap(filepath.Join(dir, pinName(mapQueueCounters)))
	if isMissing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer counters.Close()
	if err := checkLayout(mapQueueCounters, counters); err != nil {
		return nil, err
	}
	losses, err := v.QueueLosses()
	if err != nil {
		return nil, err
	}
	defer losses.Close()
	if err := changeArray(counters, func(raw []xdpQueueCounter) { all = v.queueCounts(raw, losses) }); err != nil {
		return nil, fmt.Errorf("read the counts of the queues: %w", err)
	}
	return all, nil
}

func (v *View) queueCounts(raw []xdpQueueCounter, losses *QueueLosses) (all []QueueCount) {
	hosts := make(map[uint64]netip.Addr)
	for i := range raw {
		q := &raw[i]
		key := atomic.LoadUint64(&q.Key)
		if key == 0 || q.Class == 0 {
			continue
		}
		one := QueueCount{
			ID: QueueCountID{i, key}, Class: int(q.Class) - 1, Sent: atomic.LoadUint64(&q.Sent) % queueWrap, Given: uint64(q.Rate) * 1000,
		}
		if size, magic := q.Size, q.Magic; size > magic { // the timer may have changed one of them
			one.Backlog = size - magic
		}
		v.nameQueueCount(&one, q, losses.slots())
		if one.Host.IsValid() {
			hosts[q.Host] = one.Host
		}
		if q.Kind&queueIsHost == 0 { // else its packets count at its host
			if one.State != nil {
				one.Loss = losses.Of(one.State)[asByte(one.Back)]
			}
			all = append(all, one)
		}
	}
	for i := range all {
		if one := &all[i]; one.Kind == QueueOfHost {
			one.Host = hosts[raw[one.ID.Place].Host]
		}
	}
	return all
}

// nameQueueCount finds out what a counter counts. slots is how many are not of classes.
func (v *View) nameQueueCount(c *QueueCount, q *xdpQueueCounter, slots int) {
	flow := uint32(c.ID.Key & queueKeyFlow)
	switch {
	case c.ID.Place >= slots:
		c.Kind = QueueOfRest
	case c.ID.Key&queueKeyHost != 0:
		c.Kind = QueueOfHost
	case c.ID.Key&queueKeyHashed != 0:
		c.Kind = QueueOfStateless
	default:
		c.Kind, c.Back = QueueOfConnection, flow&1 != 0
		if c.State = v.stateAt(flow >> 1); c.State != nil {
			c.Host = queueHostOf(c.State, q)
		}
	}
}

// stateAt returns the live state of an index; nil: there is none.
func (v *View) stateAt(index uint32) *state.State {
	if index == 0 || index >= uint32(len(v.tables.states)) {
		return nil
	}
	status := &v.tables.states[index].Status
	if atomic.LoadUint32(status) != statusLive {
		return nil
	}
	s := new(state.State)
	v.tables.decode(s, index)
	if atomic.LoadUint32(status) != statusLive {
		return nil
	}
	return s
}

// queueHostOf returns the end of a connection that is the host of its counter. The counter
// knows only a number that is made from its address.
func queueHostOf(s *state.State, q *xdpQueueCounter) netip.Addr {
	for _, end := range []netip.Addr{s.Tuple[0].Src, s.Tuple[1].Src} {
		if queueHostKey(end, q.Class) == q.Host {
			return end
		}
	}
	return netip.Addr{}
}

// queueHostKey is queue_host_key() of what queue_find_host() makes of an address.
func queueHostKey(a netip.Addr, class uint32) uint64 {
	w := rawAddr(a).Word
	host := uint64(w[0])<<32 | uint64(w[1])
	host = host*queueMix ^ (uint64(w[2])<<32 | uint64(w[3]))
	host ^= uint64(class) << 40
	host *= queueMix
	host ^= host >> 29
	return host | 1
}

// QueueLosses are what connections have lost in their queues.
type QueueLosses struct {
	memory *bpfload.Memory
	all    []xdpQueueLoss
}

// QueueLosses returns the losses by queues. It is empty if no interface has any. The caller
// closes it.
func (v *View) QueueLosses() (*QueueLosses, error) {
	m, err := bpfload.OpenMap(filepath.Join(liveGeneration(v.dir), pinName(mapQueueLosses)))
	if isMissing(err) { // or an earlier version has loaded them
		return &QueueLosses{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer m.Close()
	if err := checkLayout(mapQueueLosses, m); err != nil {
		return nil, err
	}
	return readQueueLosses(m)
}

func readQueueLosses(m *bpfload.Map) (*QueueLosses, error) {
	memory, err := bpfload.MapMemory(m)
	if err != nil {
		return nil, err
	}
	all, err := bpfload.Values[xdpQueueLoss](memory)
	if err != nil {
		memory.Close()
		return nil, fmt.Errorf("read what was lost in the queues: %w", err)
	}
	return &QueueLosses{memory: memory, all: all}, nil
}

// Close ends the use of the losses.
func (l *QueueLosses) Close() error {
	if l.memory == nil {
		return nil
	}
	return l.memory.Close()
}

// slots returns the number of counters that are not of classes.
func (l *QueueLosses) slots() int { return len(l.all) }

// Of returns what the packets of both directions of a state have lost.
func (l *QueueLosses) Of(s *state.State) (loss [2]state.Loss) {
	for d := range loss {
		number := s.Index<<1 | uint32(d)
		if len(l.all) == 0 {
			break
		}
		raw := &l.all[number&uint32(len(l.all)-1)] // a power of two
		if atomic.LoadUint32(&raw.Number) == number && atomic.LoadUint32(&raw.Created) == uint32(s.Created) {
			loss[d] = state.Loss{Packets: atomic.LoadUint64(&raw.Packets), Bytes: atomic.LoadUint64(&raw.Bytes)}
		}
	}
	return loss
}
