package dataplane

import (
	"bytes"
	"sync/atomic"
	"time"
	"unsafe"

	"weir/internal/fw/bpfload"
	"weir/internal/fw/limits"
	"weir/internal/fw/ruleset"
	"weir/internal/fw/state"
)

const (
	limiterSources  = limits.MaxLimiters / 2 // LIMITER_SOURCES of bpf/state/limiter_map.h
	sourceOfLimiter = 1 << 16                // SOURCE_OF_LIMITER of bpf/state/source.h

	// Values of source.over (bpf/state/source.h).
	sourceOverNew    = 1
	sourceOverListed = 2

	// mostKept is the most ticks that an empty source is kept: times are compared by signed
	// difference.
	mostKept = 1 << 30
)

// limiterNumber returns the index of a limiter in the map.
func limiterNumber(l *ruleset.Limiter) uint32 {
	if l.Source {
		return limiterSources + uint32(l.ID)
	}
	return uint32(l.ID)
}

// limiter returns the id of the source limiter that has the source; 0: it is of rules.
func (raw *xdpSource) limiter() uint8 {
	if raw.Key.Limit&sourceOfLimiter == 0 {
		return 0
	}
	return uint8(raw.Key.Limit)
}

// takeOverLimiters copies the limiters of tables that states are copied from. What they count
// is counted again when the states come.
func (n *limitNumbers) takeOverLimiters(o *origin) error {
	return eachConverted(o, mapLimiters, len(n.limiters), func(number int, l *xdpLimiter) {
		if to := &n.limiters[number]; to.Bucket == 0 && to.Limit == 0 {
			l.States, l.Nodes = 0, 0
			*to = *l
		}
	})
}

// limiters returns the limiters that count the state at an index.
func (o *origin) limiters(index int) uint32 {
	if index >= len(o.limited) {
		return 0
	}
	return o.limited[index].Limiters
}

// setLimiters writes the limiters of a program. Others stay as they are.
func (n *limitNumbers) setLimiters(all []ruleset.Limiter) {
	n.defined = make(map[uint32]ruleset.Limiter, len(all))
	for i := range all {
		number := limiterNumber(&all[i])
		n.defined[number] = all[i]
		e := &n.limiters[number]
		n.undo = append(n.undo, e.restorer())
		e.set(&all[i], atomic.LoadUint32(n.now))
	}
}

// keepsMasks reports whether source limiters of a program have the masks that their sources are counted by.
func (t *tables) keepsMasks(p *ruleset.Program) bool {
	for i := range p.Limiters {
		l := &p.Limiters[i]
		e := &t.limiters[limiterNumber(l)]
		used := atomic.LoadUint32(&e.Limit) != 0 || atomic.LoadUint32(&e.Nodes) != 0
		if l.Source && used && (e.Bits4 != 96+l.Inet || e.Bits6 != l.Inet6) {
			return false
		}
	}
	return true
}

// set writes what the daemon writes of a limiter. The bucket of a new one is full.
func (e *xdpLimiter) set(l *ruleset.Limiter, now uint32) {
	bucket, token := uint64(0), uint64(0)
	if l.Rate != 0 {
		bucket = uint64(l.Seconds) * uint64(time.Second)
		token = max(1, bucket/uint64(l.Rate))
	}
	if e.Limit == 0 {
		atomic.StoreUint64(&e.Emptied, uint64(now)*uint64(time.Second/state.TicksPerSecond)-bucket)
	}
	clear(e.Name[:])
	for i := range min(len(l.Name), len(e.Name)) {
		e.Name[i] = int8(l.Name[i])
	}
	e.Entries, e.Above, e.Below = l.Entries, l.Above, l.Below
	e.Bits4, e.Bits6 = 96+l.Inet, l.Inet6
	e.Keep = uint32(min((2*uint64(l.Seconds)+1)*state.TicksPerSecond, mostKept))
	atomic.StoreUint64(&e.Bucket, bucket)
	atomic.StoreUint64(&e.Token, token)
	atomic.StoreUint32(&e.Limit, l.Limit)
}

// restorer returns what undoes the next set. What packets count stays.
func (e *xdpLimiter) restorer() func() {
	before := *e
	return func() {
		e.Name = before.Name
		e.Entries, e.Above, e.Below = before.Entries, before.Above, before.Below
		e.Bits4, e.Bits6, e.Keep = before.Bits4, before.Bits6, before.Keep
		atomic.StoreUint64(&e.Bucket, before.Bucket)
		atomic.StoreUint64(&e.Token, before.Token)
		atomic.StoreUint32(&e.Limit, before.Limit)
	}
}

// limiterOverload returns what to do about a source of a limiter. due is false if there is
// nothing to do.
func (d *Dataplane) limiterOverload(s *Source, raw *xdpSource) (o Overload, due bool) {
	l, ok := d.live.limits.defined[limiterSources+uint32(s.Limiter)]
	if !ok || l.Table == "" || s.Over && s.States < l.Below {
		atomic.StoreUint32(&raw.Over, 0)
		return o, false
	}
	if s.Listed && s.States >= l.Below {
		return o, false
	}
	o = Overload{Addr: s.Addr, Bits: int(l.Inet6), Table: l.Table, Out: s.Listed, raw: raw}
	if s.Addr.Is4() {
		o.Bits = int(l.Inet)
	}
	return o, true
}

// settleLimited notes that a source of a limiter is in its table, or no longer. If that is out
// of date already, the next look finds it.
func (d *Dataplane) settleLimited(o *Overload) {
	l := d.live.limits.defined[limiterSources+uint32(o.raw.limiter())]
	now := uint32(sourceOverListed)
	if o.Out {
		now = 0
	}
	atomic.StoreUint32(&o.raw.Over, now)
	states := atomic.LoadUint32(&o.raw.States)
	again := !o.Out && states < l.Below
	if o.Out && states > l.Above {
		again = atomic.CompareAndSwapUint32(&o.raw.Over, 0, sourceOverNew)
	}
	if again {
		atomic.AddUint32(&d.tables.shared.Overloads, 1)
	}
}

// listSources notes which sources of limiters are in their tables, as the tables that they were
// copied from have it.
func (d *Dataplane) listSources(from *origin) error {
	m := from.maps[mapSources]
	if m == nil || from.maps[mapLimiters] == nil { // of a version without limiters
		return nil
	}
	memory, err := bpfload.MapMemory(m)
	if err != nil {
		return err
	}
	defer memory.Close()
	before, err := bpfload.Values[xdpSource](memory)
	if err != nil {
		return err
	}
	for i := range before {
		s := &before[i]
		var index uint32
		if s.limiter() == 0 || atomic.LoadUint32(&s.Stage) != sourceLive || atomic.LoadUint32(&s.Over) != sourceOverListed {
			continue
		}
		if d.tables.maps[mapSourceIndex].Lookup(&s.Key, &index) == nil && int(index) < len(d.tables.sources) {
			atomic.StoreUint32(&d.tables.sources[index].Over, sourceOverListed)
		}
	}
	return nil
}

// A Limiter is a limiter that rules define, or that still counts states.
type Limiter struct {
	Source              bool
	ID                  uint8
	Name                string
	Limit, Entries      uint32 // Limit 0: the rules no longer define it
	States, Sources     uint32 // in use
	Admitted            uint64 // states
	Full, Fast, Crowded uint64 // packets refused, by limit, rate and entries
	Inet, Inet6         uint8
}

// Limiters returns the limiters, state limiters first, by id.
func (v *View) Limiters() (all []Limiter) {
	for number := range v.tables.limiters {
		e := &v.tables.limiters[number]
		l := Limiter{
			Source: number >= limiterSources, ID: uint8(number), Name: e.name(), Limit: atomic.LoadUint32(&e.Limit), Entries: e.Entries,
			States: atomic.LoadUint32(&e.States), Sources: atomic.LoadUint32(&e.Nodes),
			Admitted: atomic.LoadUint64(&e.Admitted), Full: atomic.LoadUint64(&e.Full), Fast: atomic.LoadUint64(&e.Fast), Crowded: atomic.LoadUint64(&e.Crowded),
			Inet: max(96, e.Bits4) - 96, Inet6: e.Bits6,
		}
		if l.Limit != 0 || l.States != 0 {
			all = append(all, l)
		}
	}
	return all
}

func (e *xdpLimiter) name() string {
	text, _, _ := bytes.Cut(unsafe.Slice((*byte)(unsafe.Pointer(&e.Name)), len(e.Name)), []byte{0})
	return string(text)
}
