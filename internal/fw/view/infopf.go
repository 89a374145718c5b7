package view

import (
	"io"
	"slices"
	"time"

	"weir/internal/fw/reason"
	"weir/internal/textout"
)

// A pfCounter is a line of pfctl -s info, with the reasons that it counts. pf has fewer reasons
// than weir. What pf does not do at all is 0.
type pfCounter struct {
	name    string
	reasons []reason.Reason
}

var pfCounters = []pfCounter{
	{"match", []reason.Reason{reason.Rule, reason.NoRule, reason.Block, reason.Unloaded, reason.MaxPktRate}},
	{"bad-offset", nil},
	{"fragment", []reason.Reason{reason.FragmentShort, reason.FragmentOverlap, reason.FragmentOrphan}},
	{"short", []reason.Reason{reason.Short}},
	{"normalize", []reason.Reason{
		reason.Malformed, reason.TCPFlags, reason.MartianSource, reason.MartianDest, reason.Land, reason.RoutingHeader, reason.ExtensionChain,
	}},
	{"memory", []reason.Reason{reason.FragmentMemory, reason.TupleError, reason.MarkTaken}},
	{"bad-timestamp", []reason.Reason{reason.BadTimestamp}},
	{"congestion", []reason.Reason{reason.StateBusy, reason.Queue}},
	{"ip-option", []reason.Reason{reason.Options}},
	{"proto-cksum", []reason.Reason{reason.IPChecksum}},
	{"state-mismatch", []reason.Reason{reason.StateMismatch, reason.ICMPMismatch}},
	{"state-insert", []reason.Reason{reason.TupleTaken}},
	{"state-limit", []reason.Reason{reason.StateLimit, reason.MaxStates, reason.StateLimiter}},
	{"src-limit", []reason.Reason{
		reason.SrcNodes, reason.MaxSrcNodes, reason.MaxSrcStates, reason.MaxSrcConn, reason.MaxSrcRate, reason.Overload, reason.SourceLimiter,
	}},
	{"synproxy", nil},
	{"translate", []reason.Reason{reason.NATPorts, reason.NATAddress, reason.AfTo}},
	{"no-route", []reason.Reason{reason.Gateway}},
}

// pfLimits are the lines that -v adds.
var pfLimits = []pfCounter{
	{"max states per rule", []reason.Reason{reason.MaxStates}},
	{"max-src-states", []reason.Reason{reason.MaxSrcStates}},
	{"max-src-nodes", []reason.Reason{reason.MaxSrcNodes}},
	{"max-src-conn", []reason.Reason{reason.MaxSrcConn}},
	{"max-src-conn-rate", []reason.Reason{reason.MaxSrcRate}},
}

// Counts returns what pfctl -s info shows.
func (i *Info) Counts() *InfoCounts {
	all := &InfoCounts{Since: time.Now(), Searches: i.packets(), Inserts: i.States.Inserts, Removals: i.States.Removals, Counters: make(map[string]uint64)}
	for _, c := range slices.Concat(pfCounters, pfLimits) {
		all.Counters[c.name] = i.count(c.reasons)
	}
	return all
}

// since takes from counts what was counted before. A count that is lower now has begun anew: new tables
// count states from 0, and an interface that is gone takes its packets along.
func (c *InfoCounts) since(before *InfoCounts) {
	if before == nil {
		return
	}
	c.Searches = later(c.Searches, before.Searches)
	c.Inserts = later(c.Inserts, before.Inserts)
	c.Removals = later(c.Removals, before.Removals)
	for name, was := range before.Counters {
		c.Counters[name] -= min(was, c.Counters[name])
	}
}

// PrintPf writes the status as pfctl -s info does, for programs that read it; with verbose as
// pfctl -v. What was counted before zero is left out; nil: nothing was.
func (i *Info) PrintPf(w io.Writer, zero *InfoCounts, verbose bool) error {
	p := &textout.Lines{W: w}
	if i.Loaded == nil {
		p.Line("Status: Disabled")
		return p.Err
	}
	now, since := time.Now(), i.Since
	counts := i.Counts()
	if zero != nil && zero.Since.After(since) {
		counts.since(zero)
		since = zero.Since
	}
	status := "Status: Enabled for " + span(now.Sub(since))
	if !i.Enabled {
		status = "Status: Disabled for " + span(now.Sub(i.Loaded.Disabled))
	}
	p.Line("%-49sDebug: err", status)
	p.Line("")
	seconds := now.Sub(since).Seconds()
	line := func(name string, count uint64) {
		p.Line("  %-25s %14d %14.1f/s", name, count, float64(count)/max(seconds, 1))
	}
	p.Line("%-27s %14s %16s", "State Table", "Total", "Rate")
	p.Line("  %-25s %14d %14s", "current entries", i.States.Current, "")
	line("searches", counts.Searches)
	line("inserts", uint64(counts.Inserts))
	line("removals", uint64(counts.Removals))
	if verbose {
		p.Line("Source Tracking Table")
		p.Line("  %-25s %14d %14s", "current entries", i.Sources.Current, "")
	}
	p.Line("Counters")
	for _, c := range pfCounters {
		line(c.name, counts.Counters[c.name])
	}
	if verbose {
		p.Line("Limit Counters")
		for _, c := range pfLimits {
			line(c.name, counts.Counters[c.name])
		}
	}
	return p.Err
}

// packets returns how many packets were looked up: all.
func (i *Info) packets() (n uint64) {
	for k := range i.Interfaces {
		n += i.Interfaces[k].Passed.Packets + i.Interfaces[k].Blocked.Packets
	}
	return n
}

// count returns how many packets had one of some reasons.
func (i *Info) count(reasons []reason.Reason) (n uint64) {
	for k := range i.Interfaces {
		for _, c := range i.Interfaces[k].Reasons {
			for _, r := range reasons {
				if c.Reason == r {
					n += c.Packets
				}
			}
		}
	}
	return n
}

// later returns what was counted since before. A lower count has begun anew.
func later[T uint32 | uint64](now, before T) T {
	if now < before {
		return now
	}
	return now - before
}
