package ruleset

import (
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"weir/internal/fw/limits"
	"weir/internal/fw/state"
	"weir/pf/ast"
	"weir/pf/resolve"
)

// MaxLimits is the most rules that limit their states or packets.
const MaxLimits = limits.MaxLimits / 2 // the others are for rules that are gone but have states

// A Limit is what limits the states and packets of one rule.
type Limit struct {
	// Name tells rules apart, also over loads: a rule has the same name in the next rules
	// if its anchor, its text and its position among equal ones are the same. That of a
	// rule with once is another one in each load. It is never 0.
	Name uint64

	Sloppy        bool // TCP's sequence numbers are not tested
	Track, ByRule bool // its sources are tracked; apart from those of other rules

	Max, Sources, SourceStates, Connections, Rate, Seconds uint32 // 0: any number

	Packets resolve.PktRate // max-pkt-rate

	Keep                       uint32 // ticks that a source is kept without states
	AdaptiveStart, AdaptiveEnd uint32 // states of the rule; both 0: as for all states

	Timeouts state.Timeouts // 0: as for all states

	Overload string // the table that sources with too many connections get into; "": none
	Flush    Flush
}

// Flush says which states of such a source end.
type Flush uint8

// Kinds of Flush.
const (
	FlushNone   = Flush(ast.FlushNone)
	FlushRule   = Flush(ast.FlushRule)   // those of the rule
	FlushGlobal = Flush(ast.FlushGlobal) // all
)

// isLimited reports whether a rule has a Limit.
func isLimited(r *resolve.Rule) bool {
	return r.Limits != (resolve.Limits{}) || r.Once || r.MaxPktRate.N != 0
}

// limitNames returns the name of each rule that has a Limit.
func (c *compiler) limitNames() map[int]uint64 {
	type call struct {
		end  int
		path string
	}
	var open []call
	seen := make(map[string]int)
	names := make(map[int]uint64)
	for i, r := range c.rules {
		nr := i - len(c.lists) // as anchors count
		open = slices.DeleteFunc(open, func(a call) bool { return nr >= a.end })
		if r.Anchor != nil {
			open = append(open, call{r.Anchor.End, r.Anchor.Path})
		}
		if !isLimited(r) {
			continue
		}
		paths := make([]string, 0, len(open))
		for _, a := range open {
			paths = append(paths, a.path)
		}
		name := strings.Join(paths, "\x00") + "\x00\x00" + r.Text
		if r.Once {
			name += "\x00" + strconv.FormatUint(c.snapshot.LoadOf(r), 10)
		}
		names[i] = limitName(name + "\x00" + strconv.Itoa(seen[name]))
		seen[name]++
	}
	return names
}

func limitName(text string) uint64 {
	hash := fnv.New64a()
	hash.Write([]byte(text))
	return max(1, hash.Sum64())
}

// limit returns the position of a rule's limits in Program.Limits, plus 1; 0 if there are
// too many.
func (c *compiler) limit(r *resolve.Rule, name uint64) uint16 {
	p := c.program
	l := limitOf(&r.Limits, name, c.keep)
	l.Packets = r.MaxPktRate
	if i := slices.IndexFunc(p.Limits, func(have Limit) bool { return have.Name == name }); i >= 0 {
		p.Limits[i] = l
		return uint16(i + 1)
	}
	if len(p.Limits) >= MaxLimits {
		return 0
	}
	p.Limits = append(p.Limits, l)
	return uint16(len(p.Limits))
}

// limiters adds the limiters of a rule.
func (a *Rule) limiters(r *resolve.Rule) {
	a.StateLimiter, a.SourceLimiter = r.StateLimiter.ID, r.SourceLimiter.ID
	if a.StateLimiter != 0 || a.SourceLimiter != 0 {
		a.More |= Limited
	}
	a.StateBlocks, a.SourceBlocks = r.StateLimiter.Block, r.SourceLimiter.Block
}

func limitOf(r *resolve.Limits, name uint64, keep uint32) Limit {
	if r.Timeouts.SrcTrack != 0 {
		keep = r.Timeouts.SrcTrack
	}
	l := Limit{
		Name: name, Sloppy: r.Sloppy, Track: r.Tracking != resolve.NoTracking, ByRule: r.Tracking == resolve.TrackByRule,
		Max: r.Max, Sources: r.Sources, SourceStates: r.SourceStates, Connections: r.Connections,
		Rate: r.Rate, Seconds: r.Seconds, Keep: keep * state.TicksPerSecond,
		Overload: r.Overload, Flush: Flush(r.Flush), Timeouts: state.TimeoutsOf(&r.Timeouts),
	}
	if r.Timeouts.AdaptiveStart != 0 { // as in pf, an end alone has no effect
		l.AdaptiveStart, l.AdaptiveEnd = r.Timeouts.AdaptiveStart, r.Timeouts.AdaptiveEnd
	}
	return l
}
