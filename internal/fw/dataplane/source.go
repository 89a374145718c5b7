package dataplane

import (
	"errors"
	"fmt"
	"iter"
	"net/netip"
	"path/filepath"
	"sync/atomic"

	"weir/internal/fw/bpfload"
	"weir/internal/fw/ruleset"
	"weir/internal/fw/state"
)

// Stages of a source (enum source_stage of bpf/state/source.h).
const (
	sourceFree = iota
	sourceNew
	sourceLive
)

// sourceGone is SOURCE_GONE of bpf/state/source.h.
const sourceGone = 1 << 31

// A Source is an address that opens states by rules with source-track.
type Source struct {
	Addr        netip.Addr
	Zone        uint32 // index of the interface of a link-local address
	Limit       uint16 // number of the rule's limits; 0: of all rules with source-track global, or of Limiter
	Limiter     uint8  // id of the source limiter; 0: it is of rules
	States      uint32 // in use
	Connections uint32 // those of the states whose handshake is complete
	Rate        uint32 // of connections: the threshold's count, in thousandths
	Last        uint32 // second of Now in which the last connection was counted
	Over        bool   // too many connections, or states of a limiter; not yet in the table
	Listed      bool   // of a limiter: it is in the limiter's table
	Created     state.Tick
	Expires     state.Tick // from when on it may go, without states
}

// Sources yields the sources, in no particular order. The dataplane keeps running
// meanwhile.
func (v *View) Sources() iter.Seq[Source] { return v.tables.eachSource }

func (t *tables) eachSource(yield func(Source) bool) {
	for i := 1; i < len(t.sources); i++ {
		raw := &t.sources[i]
		if atomic.LoadUint32(&raw.Stage) != sourceLive {
			continue
		}
		s := raw.decode()
		if atomic.LoadUint32(&raw.Stage) == sourceLive && atomic.LoadUint32(&raw.States)&sourceGone == 0 && !yield(s) {
			return
		}
	}
}

func (raw *xdpSource) decode() Source {
	rate, over := atomic.LoadUint64(&raw.Rate), atomic.LoadUint32(&raw.Over)
	limit, limiter := uint16(raw.Key.Limit), raw.limiter()
	if limiter != 0 {
		limit = 0
	}
	return Source{
		Addr: raw.Key.Addr.addr(), Zone: raw.Key.Zone, Limit: limit, Limiter: limiter,
		States: atomic.LoadUint32(&raw.States), Connections: atomic.LoadUint32(&raw.Connections),
		Rate: uint32(rate), Last: uint32(rate >> 32), Over: over == sourceOverNew, Listed: over == sourceOverListed,
		Created: state.Tick(raw.Created), Expires: state.Tick(raw.Expires),
	}
}

// ForgetSources forgets the sources of rules for which match returns true. Those without states go
// with the next garbage collection. Those with states stay, because the states count there,
// but their rates begin anew.
func (v *View) ForgetSources(match func(*Source) bool) (forgotten, stay int) {
	for i := 1; i < len(v.tables.sources); i++ {
		raw := &v.tables.sources[i]
		if atomic.LoadUint32(&raw.Stage) != sourceLive {
			continue
		}
		s := raw.decode()
		if atomic.LoadUint32(&raw.States)&sourceGone != 0 || s.Limiter != 0 || !match(&s) {
			continue
		}
		atomic.StoreUint64(&raw.Rate, 0)
		if s.States > 0 {
			stay++
			continue
		}
		// Once the garbage collection has begun with it, Expires says when it is free.
		if atomic.CompareAndSwapUint32(&raw.Expires, uint32(s.Expires), atomic.LoadUint32(&v.tables.shared.Now)) {
			forgotten++
		}
	}
	return forgotten, stay
}

// A KeptAddress is what a source keeps of a pool with sticky-address.
type KeptAddress struct{ Source, Address netip.Addr }

// KeptAddresses returns what sources keep of pools with sticky-address, each only once.
func (v *View) KeptAddresses() (map[KeptAddress]bool, error) {
	m, err := bpfload.OpenMap(filepath.Join(liveGeneration(v.dir), mapPoolSticky))
	if err != nil {
		return nil, err
	}
	kept := make(map[KeptAddress]bool)
	var key xdpPoolSource
	var given xdpPoolGiven
	all := m.Iterate()
	for all.Next(&key, &given) {
		if to := given.Addr.addr(); !to.IsUnspecified() { // a next hop may be the packet's own destination
			kept[KeptAddress{key.Addr.addr(), to}] = true
		}
	}
	if err := all.Err(); err != nil && !errors.Is(err, bpfload.ErrAborted) {
		return nil, errors.Join(fmt.Errorf("read %s: %w", m, err), m.Close())
	}
	return kept, m.Close()
}

// ForgetSticky has sources choose anew from pools with sticky-address, if match returns true for what they
// keep. It returns how many did.
func (v *View) ForgetSticky(match func(KeptAddress) bool) (int, error) {
	m, err := bpfload.OpenMap(filepath.Join(liveGeneration(v.dir), mapPoolSticky))
	if err != nil {
		return 0, err
	}
	forgotten, err := forgetSticky(m, func(s *xdpPoolSource, to *xdpPoolGiven) bool {
		return match(KeptAddress{s.Addr.addr(), to.Addr.addr()})
	})
	return forgotten, errors.Join(err, m.Close())
}

// An Overload is a source that gets into a table, or out of it: it has too many connections by a
// rule with an overload table, or many states of a limiter with a table.
type Overload struct {
	Addr  netip.Addr
	Bits  int // of the addresses that the source stands for
	Table string
	Out   bool // it leaves the table
	Flush ruleset.Flush
	limit uint16
	raw   *xdpSource
}

// Overloads returns how often packets have found a source over, modulo 2^32. If it has
// changed, Overloaded has something new.
func (d *Dataplane) Overloads() uint32 { return atomic.LoadUint32(&d.tables.shared.Overloads) }

// Overloaded returns the sources that are over. Until Settle they cannot open states by
// their rule. A source whose rule is gone is settled at once.
func (d *Dataplane) Overloaded() []Overload {
	var over []Overload
	rules := d.live.limits.rules
	for i := 1; i < len(d.tables.sources); i++ {
		raw := &d.tables.sources[i]
		if atomic.LoadUint32(&raw.Over) == 0 || atomic.LoadUint32(&raw.Stage) != sourceLive {
			continue
		}
		s := raw.decode()
		if s.Limiter != 0 {
			if o, due := d.limiterOverload(&s, raw); due {
				over = append(over, o)
			}
			continue
		}
		rule, ok := rules[s.Limit]
		if !ok || rule.Overload == "" {
			atomic.StoreUint32(&raw.Over, 0)
			continue
		}
		over = append(over, Overload{Addr: s.Addr, Bits: s.Addr.BitLen(), Table: rule.Overload, Flush: rule.Flush, limit: s.Limit, raw: raw})
	}
	return over
}

// Settle lets sources open states again, as far as the rules let them, and ends the states
// that their rules flush. The sources are in their tables. It returns how many states have
// ended.
func (d *Dataplane) Settle(over []Overload) int {
	for i := range over {
		if over[i].raw.limiter() != 0 {
			d.settleLimited(&over[i])
		} else {
			atomic.StoreUint32(&over[i].raw.Over, 0)
		}
	}
	type flushed struct {
		addr  netip.Addr
		limit uint16 // 0: of all rules
	}
	wanted := make(map[flushed]bool)
	for i := range over {
		switch o := &over[i]; o.Flush {
		case ruleset.FlushRule:
			wanted[flushed{o.Addr, o.limit}] = true
		case ruleset.FlushGlobal:
			wanted[flushed{o.Addr, 0}] = true
		}
	}
	if len(wanted) == 0 {
		return 0
	}
	ended := 0
	for i := uint32(1); i < uint32(len(d.tables.states)); i++ {
		raw := &d.tables.states[i]
		if atomic.LoadUint32(&raw.Status) != statusLive {
			continue
		}
		source, numbers := raw.Forth.Tuple.Src.addr(), atomic.LoadUint32(&raw.FlowBack.Limits)
		in, out := limitsOf(numbers)
		if !wanted[flushed{source, 0}] && !(in != 0 && wanted[flushed{source, in}]) && !(out != 0 && wanted[flushed{source, out}]) {
			continue
		}
		if atomic.CompareAndSwapUint32(&raw.Status, statusLive, statusDead) {
			d.tables.withdraw(i)
			ended++
		}
	}
	return ended
}

// limitsShift is LIMITS_SHIFT of bpf/state/limit.h.
const limitsShift = 14

// limitsOf returns the numbers in state_limits(): those of the in and the out crossing's
// rules.
func limitsOf(word uint32) (in, out uint16) {
	const mask = 1<<limitsShift - 1
	return uint16(word & mask), uint16(word >> limitsShift & mask)
}

// LimitSeconds returns the span of max-src-conn-rate of the limits with a number; 0: they
// have none.
func (v *View) LimitSeconds(number uint16) uint32 { return v.tables.limits[number].Seconds }

// RateAt returns the connections that count for the threshold at a time, in a span of so
// many seconds.
func (s *Source) RateAt(now state.Tick, seconds uint32) float64 {
	passed := uint32(now)/state.TicksPerSecond - s.Last
	if passed >= seconds {
		return 0
	}
	count := uint64(s.Rate)
	return float64(count-count*uint64(passed)/uint64(seconds)) / 1000
}

// RuleLimits returns the number of each rule's limits, by the rule's number. Rules without
// limits have 0.
func (v *View) RuleLimits() ([]uint16, error) {
	_, indices, _, err := v.rules.inForce()
	if err != nil {
		return nil, err
	}
	numbers := make([]uint16, len(indices))
	err = changeArray(v.rules.rules, func(rules []xdpRule) {
		for i, index := range indices {
			numbers[i] = rules[index].Limit
		}
	})
	if err != nil {
		return nil, fmt.Errorf("read the limits of rules: %w", err)
	}
	return numbers, nil
}
