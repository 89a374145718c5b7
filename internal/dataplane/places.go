package dataplane

import "iter"

// stateBlock is STATE_BLOCK of bpf/state.h.
const stateBlock = uint32(len(xdpStateBlock{}.Forth))

// A statePlace is a place of the state table, whose two halves lie apart.
type statePlace struct {
	*xdpStateForth
	*xdpStateBack
}

// An xdpState is what was read of a place.
type xdpState struct {
	xdpStateForth
	xdpStateBack
}

// state returns the place of an index.
func (t *tables) state(index uint32) statePlace {
	b := &t.states[index/stateBlock]
	return statePlace{&b.Forth[index%stateBlock], &b.Back[index%stateBlock]}
}

// places returns all places that there may be states at.
func (t *tables) places() iter.Seq2[uint32, statePlace] {
	return func(yield func(uint32, statePlace) bool) {
		for i := uint32(1); i < t.placeCount(); i++ {
			if !yield(i, t.state(i)) {
				return
			}
		}
	}
}

// placeCount is one more than the highest index.
func (t *tables) placeCount() uint32 { return stateSlots(t.limit()) + 1 }

func (p statePlace) read() xdpState { return xdpState{*p.xdpStateForth, *p.xdpStateBack} }

func (p statePlace) write(s *xdpState) {
	*p.xdpStateForth, *p.xdpStateBack = s.xdpStateForth, s.xdpStateBack
}

// place is a state that was read, as a place.
func (s *xdpState) place() statePlace { return statePlace{&s.xdpStateForth, &s.xdpStateBack} }
