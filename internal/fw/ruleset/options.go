package ruleset

import (
	"weir/internal/fw/state"
	"weir/pf/resolve"
)

// Options holds the set statements in the dataplane's form.
type Options struct {
	MaxStates    uint32
	MaxSources   uint32
	ImplicitPass bool
	// FragmentsAlone is set reassemble no: fragments meet the rules each for itself.
	FragmentsAlone bool
	MarkMask       uint32 // weir's own bits of skb->mark, which are contiguous

	Timeouts    state.Timeouts
	FragTimeout uint32 // in ticks

	// AdaptiveStart and AdaptiveEnd are numbers of states. Both are 0 if timeouts do
	// not adapt.
	AdaptiveStart, AdaptiveEnd uint32
}

// OptionsOf converts the options of a configuration.
func OptionsOf(o *resolve.Options) Options {
	return Options{
		MaxStates: o.MaxStates, MaxSources: o.MaxSources, ImplicitPass: o.ImplicitPass, FragmentsAlone: o.FragmentsAlone, MarkMask: o.MarkMask,
		Timeouts: state.TimeoutsOf(&o.Timeouts), FragTimeout: o.Timeouts.Frag * state.TicksPerSecond,
		AdaptiveStart: o.Timeouts.AdaptiveStart, AdaptiveEnd: o.Timeouts.AdaptiveEnd,
	}
}
