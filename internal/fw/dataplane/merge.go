package dataplane

import "sync/atomic"

// Bits of flow.flags (bpf/state/state.h) that say which fields are valid.
const (
	flowSeen    = 0x01
	flowGranted = 0x02
)

// merge updates a copy with what the old tables know of its connection. Packets of the
// two directions may have met different generations, so neither copy is complete. A value
// that only grows becomes the larger of both. Packets may write to the copy at the same
// time. The next pass finds what is lost then.
func (m *move) merge(n, s *xdpState) {
	news := [2]*xdpFlow{&n.FlowForth, &n.FlowBack}
	for d, old := range []*xdpFlow{&s.FlowForth, &s.FlowBack} {
		flow := news[d]
		if counted := old.tally(); counted != m.old[d] {
			atomic.AddUint64(&flow.Packets, uint64(counted.packets-m.old[d].packets))
			atomic.AddUint64(&flow.Bytes, uint64(counted.bytes-m.old[d].bytes))
		}
		raise(&flow.Packets, old.Packets)
		raise(&flow.Bytes, old.Bytes)
		mergeFlow(flow, old)
		m.old[d], m.new[d] = old.tally(), flow.tally()
	}
	if s.Phase > n.Phase { // phases of one protocol are numbered in the order in which they come
		n.Phase = s.Phase
		atomic.StoreUint32(&n.CheckAt, min(n.CheckAt, s.CheckAt))
	}
}

func mergeFlow(n, s *xdpFlow) {
	if s.Flags&flowSeen != 0 {
		if n.Flags&flowSeen == 0 {
			n.Seqlo, n.Seqhi, n.Wscale = s.Seqlo, s.Seqhi, s.Wscale
		}
		later(&n.Seqlo, s.Seqlo)
		later(&n.Seqhi, s.Seqhi)
	}
	if s.Flags&flowGranted != 0 {
		if n.Flags&flowGranted == 0 {
			n.Grant = s.Grant
		}
		later(&n.Grant, s.Grant)
	}
	n.Flags |= s.Flags
	n.Peer = max(n.Peer, s.Peer)
	n.MaxWin = max(n.MaxWin, s.MaxWin)
	later(&n.Last, s.Last)
}

// later advances a number that is compared modulo 2^32: a sequence number or a tick.
func later(n *uint32, other uint32) {
	for {
		was := atomic.LoadUint32(n)
		if int32(other-was) <= 0 || atomic.CompareAndSwapUint32(n, was, other) {
			return
		}
	}
}

func raise(n *uint64, other uint64) {
	for {
		was := atomic.LoadUint64(n)
		if other <= was || atomic.CompareAndSwapUint64(n, was, other) {
			return
		}
	}
}
