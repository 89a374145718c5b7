package ruleset

import (
	"weir/internal/fw/state"
	"weir/pf/resolve"
)

// Options holds the set statements in the dataplane's form.
type Options struct {
	MaxStates  uint32
	MaxSources uint32
	Fragments  Fragments
	MarkMask   uint32 // weir's own bits of skb->mark, which are contiguous

	Timeouts    state.Timeouts
	FragTimeout uint32 // in ticks
	// StampTimeout is by how many ticks timestamps of TCP may be ahead of their clock.
	StampTimeout uint32

	// AdaptiveStart and AdaptiveEnd are numbers of states. Both are 0 if timeouts do
	// not adapt.
	AdaptiveStart, AdaptiveEnd uint32
}

// Fragments is how fragments that come in meet the rules: enum fragment_rules of bpf/config.h.
type Fragments uint8

// How fragments meet the rules.
const (
	FragmentsFollow Fragments = iota // they follow their first one
	FragmentsAlone                   // set reassemble no: each meets them for itself
	FragmentsListed                  // the first of FreeBSD's scrub rules that matches one decides
)

func fragmentsOf(o *resolve.Options) Fragments {
	switch {
	case o.FragmentsAlone:
		return FragmentsAlone
	case o.FragmentsListed:
		return FragmentsListed
	}
	return FragmentsFollow
}

// OptionsOf converts the options of a configuration.
func OptionsOf(o *resolve.Options) Options {
	return Options{
		MaxStates: o.MaxStates, MaxSources: o.MaxSources, Fragments: fragmentsOf(o), MarkMask: o.MarkMask,
		Timeouts: state.TimeoutsOf(&o.Timeouts), FragTimeout: o.Timeouts.Frag * state.TicksPerSecond, StampTimeout: o.Timeouts.TCPTSDiff * state.TicksPerSecond,
		AdaptiveStart: o.Timeouts.AdaptiveStart, AdaptiveEnd: o.Timeouts.AdaptiveEnd,
	}
}
