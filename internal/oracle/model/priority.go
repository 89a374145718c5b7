package model

import (
	"cmp"

	"weir/internal/fw/state"
	"weir/pf/resolve"
)

// A given is what rules set for packets with set prio and set queue.
type given struct {
	prio  state.Prio // 0: none
	queue resolve.SetQueue
}

// takes adds what a rule sets, replacing earlier values.
func (g *given) takes(r *resolve.Rule) {
	if r.SetPrio.Set {
		g.prio = state.PrioOf(r.SetPrio.N, r.SetPrio.Ack)
	}
	if r.SetQueue.Name != "" {
		g.queue = r.SetQueue
	}
}

// or returns g, with missing values from other.
func (g given) or(other given) given {
	return given{cmp.Or(g.prio, other.prio), cmp.Or(g.queue, other.queue)}
}

// keptGiven returns what a connection's sides with state set for its packets, by
// direction. The side where they leave overrides the side where they came in.
func keptGiven(flags state.Flags, in, out *crossing) [2]given {
	var came, left given
	if flags&state.EvaluateIn == 0 {
		came = in.given
	}
	if flags&state.EvaluateOut == 0 {
		left = out.given
	}
	return [2]given{left.or(came), came.or(left)}
}

// gives notes what a connection sets for its packets of each direction.
func (m *Model) gives(c *connection, kept [2]given) {
	c.given = kept
	for d, g := range kept {
		c.Flow[d].Prio = g.prio
		c.Queues[d] = m.queueNumber(g.queue)
	}
}

// widenGiven adds what the rules set at a new side of a connection.
func (m *Model) widenGiven(c *connection, side state.Flags, here given) {
	kept := c.given
	leaves := 0
	if side == state.In {
		leaves = 1
	}
	kept[leaves] = here.or(kept[leaves])
	kept[1-leaves] = kept[1-leaves].or(here)
	m.gives(c, kept)
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

// A gift is the priority and queue of one packet.
type gift struct {
	prio  uint8
	given bool // prio is valid
	queue uint16
}

// gift computes a packet's priority and queue from what the rules set.
func (m *Model) gift(p *packet) gift {
	if p.recorded != nil {
		return *p.recorded
	}
	var g gift
	urgent := p.urgent()
	g.prio, g.given = p.given.prio.Of(urgent)
	if name := p.given.queue.Name; name != "" && m.queues != nil {
		if urgent {
			name = p.given.queue.Ack
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
func (g gift) priority(before uint32) uint32 {
	switch {
	case g.given:
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
