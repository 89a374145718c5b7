package dataplane

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync/atomic"
	"unsafe"

	"weir/internal/fw/bpfload"
	"weir/internal/fw/limits"
	"weir/internal/fw/ruleset"
)

const mapRules = "rules" // of the generation

// Bits of limit.flags (bpf/state/limit.h).
const (
	limitTrack    = 0x01
	limitByRule   = 0x02
	limitOverload = 0x04
	limitSloppy   = 0x08
)

// limitNumbers gives the limits of rules their numbers, which states hold. A limit that
// was there before, by its name, keeps its number. No other gets a number that states or
// sources still count under, or that rules in force have.
type limitNumbers struct {
	entries []xdpLimit               // by number
	taken   map[uint16]bool          // by others than the program in force
	rules   map[uint16]ruleset.Limit // the limits of the program in force

	limiters []xdpLimiter               // as in tables.limiters
	defined  map[uint32]ruleset.Limiter // those of the program in force, by number
	now      *uint32

	undo []func() // what assign has changed since the last settle
}

// newLimitNumbers opens the limits that the generation uses, and looks at what else does.
func (d *Dataplane) newLimitNumbers() (*limitNumbers, error) {
	n := &limitNumbers{entries: d.tables.limits, taken: make(map[uint16]bool), limiters: d.tables.limiters, now: &d.tables.shared.Now}
	if err := n.takeLive(d.config.Dir); err != nil {
		return nil, err
	}
	for _, o := range d.origins() {
		if err := errors.Join(n.takeOver(o), n.takeOverLimiters(o)); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// takeLive keeps the numbers of the generation in force: its packets make states until
// this one replaces it.
func (n *limitNumbers) takeLive(dir string) error {
	m, err := bpfload.OpenMap(filepath.Join(liveGeneration(dir), mapRules))
	if isMissing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer m.Close()
	if uintptr(m.ValueSize()) != unsafe.Sizeof(xdpRule{}) {
		return nil // another version's, whose states have other tables
	}
	return changeArray(m, func(rules []xdpRule) {
		for i := range rules {
			n.taken[rules[i].Limit] = true
		}
	})
}

// takeOver copies the limits of tables that states are copied from, with their numbers.
// What they count is counted again when the states come.
func (n *limitNumbers) takeOver(o *origin) error {
	return eachConverted(o, mapLimits, len(n.entries), func(number int, l *xdpLimit) {
		if number == 0 || l.Name == 0 {
			return
		}
		if l.States != 0 || l.Nodes != 0 {
			n.taken[uint16(number)] = true
		}
		if to := &n.entries[number]; to.Name == 0 {
			l.States, l.Nodes = 0, 0
			*to = *l
		}
	})
}

// eachConverted calls do for the first values of an array of tables that states are copied
// from, in this version's form. A version that had no such array has none.
func eachConverted[T any](o *origin, name string, most int, do func(number int, value *T)) error {
	m := o.maps[name]
	if m == nil {
		return nil
	}
	specs, err := loadSpecs()
	if err != nil {
		return err
	}
	_, convert, err := conversions(m, declared(specs, name), renames(o.layout))
	if err != nil {
		return err
	}
	memory, err := bpfload.MapMemory(m)
	if err != nil {
		return err
	}
	defer memory.Close()
	for number := range min(memory.Count(), most) {
		var value T
		raw := memory.Bytes()[number*memory.Stride():][:m.ValueSize()]
		if err := convert.Convert(bytesOf(unsafe.Slice(&value, 1)), raw); err != nil {
			return fmt.Errorf("take over the %s of rules: %w", name, err)
		}
		do(number, &value)
	}
	return nil
}

// errNoLimit is returned (wrapped) if all numbers are in use.
var errNoLimit = errors.New("too many rules, now and before, have limits that states still count under")

// assign returns the numbers of a program's limits, and writes the limits and limiters that are new or have
// changed. Those that are gone stay until settle: rules in force may ask them until others are in force.
// takeBack undoes all of it. Without numbers for all limits nothing is written.
func (n *limitNumbers) assign(p *ruleset.Program) ([]uint16, error) {
	byName := make(map[uint64]uint16)
	for number := 1; number < len(n.entries) && len(p.Limits) > 0; number++ {
		if name := n.entries[number].Name; name != 0 {
			byName[name] = uint16(number)
		}
	}
	numbers := make([]uint16, len(p.Limits))
	used := make(map[uint16]bool, len(p.Limits))
	for i := range p.Limits {
		numbers[i] = byName[p.Limits[i].Name]
		used[numbers[i]] = true
	}
	next := uint16(1)
	for i := range p.Limits {
		if numbers[i] == 0 {
			for int(next) < len(n.entries) && (used[next] || !n.free(next)) {
				next++
			}
			if int(next) == len(n.entries) {
				return nil, errNoLimit
			}
			numbers[i] = next
			used[next] = true
		}
	}
	before, defined := n.rules, n.defined
	n.undo = append(n.undo, func() { n.rules, n.defined = before, defined })
	rules := make(map[uint16]ruleset.Limit, len(p.Limits))
	for i := range p.Limits {
		e := &n.entries[numbers[i]]
		n.undo = append(n.undo, e.restorer())
		e.set(&p.Limits[i])
		rules[numbers[i]] = p.Limits[i]
	}
	n.rules = rules
	n.setLimiters(p.Limiters)
	return numbers, nil
}

// settle has the limiters that the last program does not define admit nothing from now on. That program is in force, and no packet
// uses the one before.
func (n *limitNumbers) settle() {
	if n == nil {
		return
	}
	for number := range n.limiters {
		if n.ends(number) {
			atomic.StoreUint32(&n.limiters[number].Limit, 0)
		}
	}
	n.undo = nil
}

// ending reports whether settle ends a limiter.
func (n *limitNumbers) ending() bool {
	for number := range n.limiters {
		if n.ends(number) {
			return true
		}
	}
	return false
}

func (n *limitNumbers) ends(number int) bool {
	_, defined := n.defined[uint32(number)]
	return !defined && atomic.LoadUint32(&n.limiters[number].Limit) != 0
}

// takeBack undoes what assign has done since the last settle: the program did not come into force.
func (n *limitNumbers) takeBack() {
	if n == nil {
		return
	}
	for _, undo := range slices.Backward(n.undo) {
		undo()
	}
	n.undo = nil
}

func (n *limitNumbers) free(number uint16) bool {
	l := &n.entries[number]
	unused := atomic.LoadUint32(&l.States) == 0 && atomic.LoadUint32(&l.Nodes) == 0
	_, inForce := n.rules[number]
	return !n.taken[number] && !inForce && unused
}

// set writes what the daemon writes of a limit.
func (l *xdpLimit) set(from *ruleset.Limit) {
	var flags uint16
	for flag, on := range map[uint16]bool{limitTrack: from.Track, limitByRule: from.ByRule, limitOverload: from.Overload != "", limitSloppy: from.Sloppy} {
		if on {
			flags |= flag
		}
	}
	if l.Name != from.Name {
		l.Used, l.Pkts = 0, 0
	}
	l.Name, l.Flags = from.Name, flags
	l.Max, l.MaxNodes, l.MaxStates, l.MaxConn = from.Max, from.Sources, from.SourceStates, from.Connections
	l.Rate, l.Seconds, l.Keep = from.Rate, from.Seconds, from.Keep
	l.PktRate, l.PktSeconds = from.Packets.N, uint16(from.Packets.Seconds)
	l.AdaptiveStart, l.AdaptiveEnd, l.Timeout = from.AdaptiveStart, from.AdaptiveEnd, from.Timeouts
}

// restorer returns what undoes the next set. A limit that states or sources of its rules count under
// meanwhile stays: under another name, they would count for other rules.
func (l *xdpLimit) restorer() func() {
	before := *l
	return func() {
		if l.Name != before.Name && (atomic.LoadUint32(&l.States) != 0 || atomic.LoadUint32(&l.Nodes) != 0) {
			return
		}
		if l.Name != before.Name {
			l.Used, l.Pkts = before.Used, before.Pkts
		}
		l.Name, l.Flags = before.Name, before.Flags
		l.Max, l.MaxNodes, l.MaxStates, l.MaxConn = before.Max, before.MaxNodes, before.MaxStates, before.MaxConn
		l.Rate, l.Seconds, l.Keep = before.Rate, before.Seconds, before.Keep
		l.PktRate, l.PktSeconds = before.PktRate, before.PktSeconds
		l.AdaptiveStart, l.AdaptiveEnd, l.Timeout = before.AdaptiveStart, before.AdaptiveEnd, before.Timeout
	}
}

// sourceCapacity returns how many sources there is room for: a third more than the limit,
// so that a new one finds a place at once.
func sourceCapacity(limit uint32) uint32 { return limit + limit/3 + 1 }

// sourceRoom returns how many sources there may be: those of rules, and those of limiters.
func (c *Config) sourceRoom() uint32 { return c.Options.MaxSources + c.Program.LimiterEntries() }

const (
	maxSources = limits.MaxSources
	sourceOver = limits.SourceOver
)
