package dataplane

import (
	"iter"
	"sync/atomic"

	"weir/internal/state"
)

// States returns the live states, in the order of their index; those that have
// expired but were not swept yet among them. Each is valid until the next; the
// dataplane goes on while they are read.
func (v *View) States() iter.Seq[*state.State] {
	return func(yield func(*state.State) bool) {
		var s state.State
		for i, p := range v.live() {
			p.decode(&s, i)
			// Released while it was read: what is in s may be of two connections.
			if atomic.LoadUint32(&p.Status) != statusLive {
				continue
			}
			if !yield(&s) {
				return
			}
		}
	}
}

// KillStates marks dead the states for which match is true and returns how
// many; their next packet is judged as a new connection's.
func (v *View) KillStates(match func(*state.State) bool) int {
	var killed int
	var s state.State
	for i, p := range v.live() {
		p.decode(&s, i)
		if match(&s) && atomic.CompareAndSwapUint32(&p.Status, statusLive, statusDead) {
			killed++
		}
	}
	return killed
}

// live returns the live states.
func (v *View) live() iter.Seq2[uint32, statePlace] {
	return func(yield func(uint32, statePlace) bool) {
		for i, p := range v.tables.places() {
			if atomic.LoadUint32(&p.Status) == statusLive && !yield(i, p) {
				return
			}
		}
	}
}

// decode fills s with what the programs remember.
func (p statePlace) decode(s *state.State, index uint32) {
	*s = state.State{
		Index:    index,
		Tuple:    [2]state.Tuple{p.Forth.Tuple.decode(), p.Back.Tuple.decode()},
		Phase:    state.Phase(p.Phase),
		Flags:    state.Flags(p.Flags),
		RuleIn:   p.RuleIn,
		RuleOut:  p.RuleOut,
		Created:  state.Tick(p.Created),
		Flow:     [2]state.Flow{p.FlowForth.decode(), p.FlowBack.decode()},
		NextHops: [2]uint16{p.Forth.Nexthop, p.Back.Nexthop},
	}
	if s.Flags&state.Log != 0 {
		s.Logs = [2][4]uint32{p.FlowForth.Log, p.FlowBack.Log}
	}
}

func (t *xdpTuple) decode() state.Tuple {
	return state.Tuple{
		Src: t.Src.addr(), Dst: t.Dst.addr(),
		SPort: fromWire(t.Sport), DPort: fromWire(t.Dport),
		Proto: t.Proto, Zone: t.Zone,
	}
}

func (f *xdpFlow) decode() state.Flow {
	return state.Flow{
		Packets: f.Packets, Bytes: f.Bytes, Last: state.Tick(f.Last),
		SeqLo: f.Seqlo, SeqHi: f.Seqhi, Grant: f.Grant, MaxWin: f.MaxWin, WScale: f.Wscale,
		Peer: state.Peer(f.Peer), Flags: state.FlowFlags(f.Flags),
	}
}
