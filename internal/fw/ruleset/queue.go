package ruleset

import (
	"fmt"
	"hash/fnv"

	"weir/internal/fw/state"
	"weir/pf/resolve"
)

const maxQueues = 1<<16 - 1

// A QueuePair is the value of set queue: the queue for packets, and the queue for packets
// that carry no data or ask for low delay.
type QueuePair struct {
	Queue, Ack uint16
}

// prio returns a rule's priorities in the form that states keep. 0 means none.
func prio(p resolve.SetPrio) uint8 {
	if !p.Set {
		return 0
	}
	return uint8(state.PrioOf(p.N, p.Ack))
}

// queue returns the number of a rule's set queue. A single queue has its own number, and
// a pair has another.
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

// queueNumber derives a number from the name, as tag does, because states keep the
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

// tooManyQueues returns the error for a ruleset that names more queues than there are
// numbers.
func (c *compiler) tooManyQueues() error {
	if len(c.queues) <= maxQueues {
		return nil
	}
	return &Error{Rule: len(c.rules) - 1, What: fmt.Sprintf("there are more than %d queues and pairs of queues", maxQueues)}
}

// numberByName derives a number from 1 to most from the name, so that it is usually the
// same in the next file. If another name has that number, it takes the next free one.
func numberByName(name string, most uint32, taken map[uint16]string) uint16 {
	hash := fnv.New32a()
	hash.Write([]byte(name))
	number := uint16(hash.Sum32()%most) + 1
	for taken[number] != "" {
		number = uint16(uint32(number)%most) + 1
	}
	return number
}
