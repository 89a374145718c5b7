package ruleset

import (
	"fmt"
	"hash/fnv"

	"weir/internal/fw/state"
	"weir/pf/resolve"
)

const maxQueues = 1<<16 - 1

// A QueuePair is what set queue names: the number of the queue for packets, and of
// that for packets that carry no data or ask for a low delay.
type QueuePair struct {
	Queue, Ack uint16
}

// prio gives a rule's priorities as states keep them; 0: none.
func prio(p resolve.SetPrio) uint8 {
	if !p.Set {
		return 0
	}
	return uint8(state.PrioOf(p.N, p.Ack))
}

// queue numbers what a rule says with set queue: one queue has its own number, two
// have another one together.
func (c *compiler) queue(q resolve.SetQueue) uint16 {
	if q.Name == "" {
		return 0
	}
	pair := QueuePair{Queue: c.queueNumber(q.Name), Ack: c.queueNumber(q.Ack)}
	if pair.Queue == pair.Ack {
		return pair.Queue
	}
	number := c.queueNumber(q.Name + ", " + q.Ack)
	c.program.QueuePairs[number] = pair
	return number
}

// queueNumber chooses a number by the name, as tag does: states keep the
// numbers of their queues over reloads.
func (c *compiler) queueNumber(name string) uint16 {
	if number, ok := c.queues[name]; ok {
		return number
	}
	number := uint16(0)
	if len(c.queues) < maxQueues {
		number = numberByName(name, maxQueues, c.program.Queues)
		c.program.Queues[number] = name
		c.program.QueuePairs[number] = QueuePair{Queue: number, Ack: number}
	}
	c.queues[name] = number
	return number
}

// tooManyQueues is the error of a ruleset that names more queues than there are
// numbers.
func (c *compiler) tooManyQueues() error {
	if len(c.queues) <= maxQueues {
		return nil
	}
	return &Error{Rule: len(c.rules) - 1, What: fmt.Sprintf("there are more than %d queues and pairs of queues", maxQueues)}
}

// numberByName chooses the number of a name from 1 to most. It comes from the
// name, so that it is mostly the same in the next file; where another name has it,
// it is the next free one.
func numberByName(name string, most uint32, taken map[uint16]string) uint16 {
	hash := fnv.New32a()
	hash.Write([]byte(name))
	number := uint16(hash.Sum32()%most) + 1
	for taken[number] != "" {
		number = uint16(uint32(number)%most) + 1
	}
	return number
}
