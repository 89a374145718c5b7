package doctor

import (
	"cmp"
	"fmt"

	"weir/internal/units"
)

// nfqueues checks the queues in which the kernel hands packets to a program that judges them
// (NFQUEUE): an IPS, a meter, a filter by content. A queue that is full drops, and so does one
// whose program does not read its socket.
func nfqueues(v *view) (o outcome) {
	if !v.sampled || v.After.NFQueues == nil {
		o.lacks(v, "nfqueues")
		return o
	}
	if len(v.After.NFQueues) == 0 {
		o.absent = "no program judges packets (NFQUEUE)"
	}
	for i := range v.After.NFQueues {
		q := v.After.NFQueues[i]
		for _, b := range v.Before.NFQueues {
			if q.continues(&b) {
				q.Given, q.Dropped, q.Unread = wrapped(q.Given, b.Given), q.Dropped-b.Dropped, q.Unread-b.Unread
				break
			}
		}
		v.nfqueue(&o, &q)
	}
	return o
}

// continues reports whether a queue is the one of the first sample. The counters of a program's
// queue start at 0 when the program starts again.
func (q *NFQueue) continues(b *NFQueue) bool {
	return b.Number == q.Number && b.PortID == q.PortID && q.Dropped >= b.Dropped && q.Unread >= b.Unread
}

func (v *view) nfqueue(o *outcome, q *NFQueue) {
	lost := q.Dropped + q.Unread
	share := float64(lost) / float64(max(1, lost+q.Given))
	if lost < fewLost || share < seen {
		return
	}
	program := cmp.Or(q.Program, "a program")
	f := Finding{
		Severity: gradeLoss(lost, share), Subject: fmt.Sprintf("NFQUEUE %d", q.Number), core: -1, weight: share, bites: true,
		Says: fmt.Sprintf("%s judges packets (NFQUEUE %d) and does not keep up: %s of them are dropped", program, q.Number, percent(share)),
		Evidence: []string{fmt.Sprintf("NFQUEUE %d: %s given to %s, %s dropped because it was full, %s because its socket was; %d wait", q.Number,
			v.rate(q.Given), program, units.Thousands(int(q.Dropped)), units.Thousands(int(q.Unread)), q.Waiting)},
		Remedies: []Remedy{
			{Command: "cat /proc/net/netfilter/nfnetlink_queue", Text: "see which queues wait (third column) and drop (sixth and seventh); then give the program several queues on several cores: --queue-balance 0:3 --queue-cpu-fanout in iptables, queue flags fanout to 0-3 in nftables, and as many threads in its configuration"},
			{Text: "hand it less: only the first packets of a connection, or only the protocols that it knows; with flag bypass, packets pass where no program listens. A longer queue holds bursts only, and adds delay"},
		},
		Expect: "packets pass at the rate of all its threads",
	}
	o.add(f)
}
