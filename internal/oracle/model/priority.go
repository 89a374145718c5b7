package model

import (
	"cmp"
	"fmt"

	"weir/internal/fw/state"
	"weir/pf/resolve"
)

// A qos is what rules set for packets with set prio and set queue.
type qos struct {
	prio  state.Prio // 0: none
	queue resolve.SetQueue
}

// takes adds what a rule sets, replacing earlier values.
func (g *qos) takes(r *resolve.Rule) {
	if r.SetPrio.Set {
		g.prio = state.PrioOf(r.SetPrio.N, r.SetPrio.Ack)
	}
	if r.SetQueue.Name != "" {
		g.queue = r.SetQueue
	}
}

// or returns g, with missing values from other.
func (g qos) or(other qos) qos {
	return qos{cmp.Or(g.prio, other.prio), cmp.Or(g.queue, other.queue)}
}

// keptQoS returns what a connection's sides with state set for its packets, by
// direction. The side where they leave overrides the side where they came in.
func keptQoS(flags state.Flags, in, out *crossing) [2]qos {
	var came, left qos
	if flags&state.EvaluateIn == 0 {
		came = in.qos
	}
	if flags&state.EvaluateOut == 0 {
		left = out.qos
	}
	return [2]qos{left.or(came), came.or(left)}
}

// keepQoS notes what a connection sets for its packets of each direction.
func (m *Model) keepQoS(c *connection, kept [2]qos) {
	c.qos = kept
	for d, g := range kept {
		c.Flow[d].Prio = g.prio
		c.Queues[d] = m.queueNumber(g.queue)
	}
}

// addSideQoS adds what the rules set at a new side of a connection.
func (m *Model) addSideQoS(c *connection, side state.Flags, here qos) {
	kept := c.qos
	leaves := 0
	if side == state.In {
		leaves = 1
	}
	kept[leaves] = here.or(kept[leaves])
	kept[1-leaves] = kept[1-leaves].or(here)
	m.keepQoS(c, kept)
}

// Priorities that rules ask for with prio.
const (
	defaultPrio = 3 // of a packet that has none
	mostPrio    = 7
)

// tagPrio returns the priority of a tag. In IEEE 802.1Q, 1 is below 0; as in pf they change
// places.
func tagPrio(tci uint16) uint8 {
	if n := uint8(tci >> 13); n > 1 {
		return n
	}
	return uint8(1 - tci>>13)
}

// prioOf returns the priority that a frame has when it comes to its hook.
func (p *packet) prioOf(f *Frame) uint8 {
	switch {
	case p.egress():
		if n := f.Priority & priorityMask; n != 0 && n <= mostPrio {
			return uint8(n)
		}
	case p.tagged:
		return tagPrio(p.tci)
	case p.hook == TCXIngress && f.Tagged:
		return tagPrio(f.TCI)
	}
	return defaultPrio
}

// prioSet returns the priority that a packet has where it leaves: what rules have set where it
// came in, or its own.
func (p *packet) prioSet(came qos) uint8 {
	if n, ok := came.prio.Of(p.urgent()); ok {
		return n
	}
	return p.prio
}

// of returns the priority and the queue of one packet; "": none.
func (g qos) of(p *packet) (prio, queue string) {
	urgent := p.urgent()
	if n, ok := g.prio.Of(urgent); ok {
		prio = fmt.Sprint(n)
	}
	if urgent {
		return prio, g.queue.Ack
	}
	return prio, g.queue.Name
}

// SetQueues tells the model the numbers of queues, and of pairs "a, b", by name.
func (m *Model) SetQueues(number func(name string) uint16) { m.queues = number }

// queueNumber returns the number of what set queue names.
func (m *Model) queueNumber(q resolve.SetQueue) uint16 {
	switch {
	case q.Name == "" || m.queues == nil:
		return 0
	case q.Name == q.Ack:
		return m.queues(q.Name)
	}
	return m.queues(q.Name + ", " + q.Ack)
}

// A packetQoS is the priority and queue of one packet.
type packetQoS struct {
	prio    uint8
	hasPrio bool // prio is valid
	queue   uint16
}

// packetQoS computes a packet's priority and queue from what the rules set.
func (m *Model) packetQoS(p *packet) packetQoS {
	if p.recorded != nil {
		return *p.recorded
	}
	var g packetQoS
	urgent := p.urgent()
	g.prio, g.hasPrio = p.qos.prio.Of(urgent)
	if name := p.qos.queue.Name; name != "" && m.queues != nil {
		if urgent {
			name = p.qos.queue.Ack
		}
		g.queue = m.queues(name)
	}
	return g
}

// Bits of skb->priority: the rest is the number of the queue.
const (
	priorityMask = 0xffff
	queueShift   = 16
)

// priority is step 15: the packet's skb->priority when it goes on.
func (g packetQoS) priority(before uint32) uint32 {
	switch {
	case g.hasPrio:
		before = uint32(g.prio)
	case g.queue == 0:
		return before
	}
	return before&priorityMask | uint32(g.queue)<<queueShift
}

// urgent reports whether a packet takes the second priority and queue. TCP segments with
// ACK and without data do, and packets whose sender asks for a low delay.
func (p *packet) urgent() bool {
	const lowDelay, ack = 0x10, 0x10
	bare := p.tuple.Proto == protoTCP && p.fragment != fragmentLater && p.tcp.flags&ack != 0 && p.tcp.payload == 0
	return bare || p.tos&lowDelay != 0
}
