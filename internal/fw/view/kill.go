package view

import (
	"weir/internal/fw/dataplane"
	"weir/internal/fw/state"
)

// KillStates ends the live states for which match returns true, and returns how many. The
// next packet of each meets the rules as a new connection's. If rules are loaded meanwhile,
// match may be called twice for a state.
func (v *View) KillStates(match func(*state.View) bool) (killed int, err error) {
	err = v.read(func(r *reading) error {
		context := r.context()
		n, err := r.pins.Kill(func(s *state.State) bool {
			one := s.View(context)
			return match(&one)
		})
		killed += n
		return err
	})
	return killed, err
}

// KillSources forgets sources that a function selects. Those with states stay until their
// states end, and their rates begin anew. Sources that keep an address of a pool
// (sticky-address) lose it, also if they have states.
func (v *View) KillSources(match func(*Source) bool) (forgotten, stay int, err error) {
	err = v.read(func(r *reading) error {
		forgotten, stay = r.pins.ForgetSources(func(s *dataplane.Source) bool {
			one := r.sourceOf(s, nil)
			return match(&one)
		})
		sticky, err := r.pins.ForgetSticky(func(k dataplane.KeptAddress) bool {
			return match(&Source{Addr: k.Source, Keeps: &k.Address})
		})
		forgotten += sticky
		return err
	})
	return forgotten, stay, err
}
