package dataplane

// A QueueWhy says why a queue has dropped a packet (enum queue_why of bpf/queue/queue.h).
type QueueWhy uint8

// The reasons.
const (
	QueueFull  QueueWhy = iota // its connection owes all that it may
	QueueYoung                 // the new connections of its host or class owe all that they may together
	QueueDeaf                  // its connection pays no heed to losses, so it gets its share alone
	QueueTold                  // one loss, to tell a connection that starts
	queueWhys
)

func (w QueueWhy) String() string {
	return [...]string{"full", "young", "deaf", "told"}[w%queueWhys]
}

// QueueDrops are the packets that a class has dropped, by the reason.
type QueueDrops struct {
	Full  uint64 `json:"full"`
	Young uint64 `json:"young"`
	Deaf  uint64 `json:"deaf"`
	Told  uint64 `json:"told"`
}

func queueDropsOf(c *xdpQueueClass) QueueDrops {
	return QueueDrops{Full: c.Why[QueueFull], Young: c.Why[QueueYoung], Deaf: c.Why[QueueDeaf], Told: c.Why[QueueTold]}
}
