package dataplane

import (
	"iter"
	"net/netip"
	"sync/atomic"

	"weir/internal/fw/state"
)

// States yields the live states in the order of their index. These include states that
// have expired but were not collected yet. Each is valid until the next one. The
// dataplane keeps running meanwhile.
func (v *View) States() iter.Seq[*state.State] {
	return func(yield func(*state.State) bool) {
		var s state.State
		for i := range v.live() {
			v.tables.decode(&s, i)
			// It was released while it was read: s may mix two connections.
			if atomic.LoadUint32(&v.tables.states[i].Status) != statusLive {
				continue
			}
			if !yield(&s) {
				return
			}
		}
	}
}

// KillStates marks the states dead for which match returns true, and returns how many.
// Their next packet counts as a new connection's.
func (v *View) KillStates(match func(*state.State) bool) int {
	var killed int
	var s state.State
	for i := range v.live() {
		raw := &v.tables.states[i]
		v.tables.decode(&s, i)
		if match(&s) && atomic.CompareAndSwapUint32(&raw.Status, statusLive, statusDead) {
			v.tables.withdraw(i)
			killed++
		}
	}
	return killed
}

// Kill is KillStates while no process replaces the dataplane: states that are being copied
// into new tables would live on there. It waits for a load that is under way. Call it again
// if the view is not in force afterwards.
func (v *View) Kill(match func(*state.State) bool) (int, error) {
	lock, err := lockFolder(v.dir, true)
	if err != nil {
		return 0, err
	}
	defer lock.Close()
	if !v.InForce() {
		return 0, nil
	}
	return v.KillStates(match), nil
}

// Kill is KillStates while this generation is live. The error wraps ErrBusy while another
// process builds a generation.
func (d *Dataplane) Kill(match func(*state.State) bool) (killed int, err error) {
	err = d.place.Do(func() error {
		return d.whileLive(func() error {
			killed = d.View().KillStates(match)
			return nil
		})
	})
	return killed, err
}

// LeavesBy returns the index of the interface that packets to a next hop leave by; 0: there
// is no such next hop any more.
func (v *View) LeavesBy(nextHop uint16) int {
	if int(nextHop) >= len(v.tables.shared.Nexthops) {
		return 0
	}
	return int(atomic.LoadUint32(&v.tables.shared.Nexthops[nextHop].Ifindex))
}

// GatewayOf returns the address that packets to a next hop are sent to. It is not valid if
// there is no such next hop any more.
func (v *View) GatewayOf(nextHop uint16) netip.Addr {
	if v.LeavesBy(nextHop) == 0 {
		return netip.Addr{}
	}
	return (*xdpAddr)(&v.tables.shared.Nexthops[nextHop].Gateway).addr()
}

// live returns the indices of the live states.
func (v *View) live() iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for i := uint32(1); i < uint32(len(v.tables.states)); i++ {
			if atomic.LoadUint32(&v.tables.states[i].Status) == statusLive && !yield(i) {
				return
			}
		}
	}
}

// decode fills s from the state at an index, and from what is beside it.
func (t *tables) decode(s *state.State, index uint32) {
	raw, extra := &t.states[index], &t.extras[index]
	raw.decode(s, index)
	for side := range extra.Bound {
		if raw.Entered&(statesBoundIn<<side) != 0 {
			s.Bound[side] = extra.Bound[side]
		}
	}
	for d := range extra.Tos {
		if raw.Entered&(keptTOS<<d) != 0 {
			s.Scrub[d].HasTOS, s.Scrub[d].TOS = true, extra.Tos[d]
		}
	}
	t.decodeNormal(s, index)
}

// decode fills s from the raw state.
func (raw *xdpState) decode(s *state.State, index uint32) {
	*s = state.State{
		Index:    index,
		Tuple:    [2]state.Tuple{raw.Forth.Tuple.decode(), raw.Back.Tuple.decode()},
		Phase:    state.Phase(raw.Phase),
		Flags:    state.Flags(raw.Flags),
		RuleIn:   raw.RuleIn,
		RuleOut:  raw.RuleOut,
		Created:  state.Tick(raw.Created),
		Flow:     [2]state.Flow{raw.FlowForth.decode(), raw.FlowBack.decode()},
		Queues:   [2]uint16{raw.QueueForth, raw.QueueBack},
		Scrub:    [2]state.Scrub{raw.scrub(0), raw.scrub(1)},
		NextHops: [2]uint16{raw.Forth.Nexthop, raw.Back.Nexthop},
	}
	if s.Flags&state.Marked != 0 {
		s.Mark, s.MarkMask = raw.FlowForth.Mark, [2]uint32{raw.FlowForth.MarkMask, raw.FlowBack.MarkMask}
	}
	if s.Flags&state.Log != 0 {
		s.Logs = [2][3]uint32{raw.FlowForth.Log, raw.FlowBack.Log}
	}
}

// Bits of state.qos, and of state.entered (bpf/state/state.h).
const (
	keptNoDF     = 0x0c
	keptRandomID = 0x30
	keptMinTTL   = 0x40
	keptMaxMSS   = 0x80
	keptWays     = 0x02
	keptTOS      = 0x10 // of direction 0; that of direction 1 is the next
	keptRoutes   = 0xc0 // a bit for each direction whose next hop a rule has chosen
)

// keptOf is the bits of direction 0 among those of state.qos that have one for each.
const keptOf = 0x55

// scrub returns how a state's packets of a direction are normalised.
func (raw *xdpState) scrub(d int) state.Scrub {
	own := raw.Qos & (keptOf << d)
	s := state.Scrub{NoDF: own&keptNoDF != 0, RandomID: own&keptRandomID != 0}
	values := raw.FlowBack.Mark // SCRUB_VALUES
	if d == 0 && raw.Entered&keptWays != 0 {
		values = raw.FlowForth.Limits
	}
	enters, leaves := uint8(values>>8), uint8(values)
	if d == 1 && raw.Entered&keptWays == 0 {
		enters, leaves = leaves, enters
	}
	if raw.Qos&keptMinTTL != 0 {
		s.Enters, s.Leaves = enters, leaves
	}
	if raw.Qos&keptMaxMSS != 0 {
		s.MaxMSS = uint16(values >> 16)
	}
	return s
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
		Peer: state.Peer(f.Peer), Flags: state.FlowFlags(f.Flags), Prio: state.Prio(f.Prio),
	}
}
