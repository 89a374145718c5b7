package ruleset

import (
	"weir/internal/fw/state"
	"weir/pf/resolve"
)

// Options are the set statements as the dataplane takes them.
type Options struct {
	MaxStates    uint32
	ImplicitPass bool
	MarkMask     uint32 // weir's own bits of skb->mark, which stand together

	Timeouts    state.Timeouts
	FragTimeout uint32 // in ticks

	// AdaptiveStart and AdaptiveEnd are numbers of states; both are 0 where
	// timeouts do not adapt.
	AdaptiveStart, AdaptiveEnd uint32
}

// OptionsOf converts the options of a configuration.
func OptionsOf(o *resolve.Options) Options {
	return Options{
		MaxStates: o.MaxStates, ImplicitPass: o.ImplicitPass, MarkMask: o.MarkMask,
		Timeouts: state.TimeoutsOf(&o.Timeouts), FragTimeout: o.Timeouts.Frag * state.TicksPerSecond,
		AdaptiveStart: o.Timeouts.AdaptiveStart, AdaptiveEnd: o.Timeouts.AdaptiveEnd,
	}
}
