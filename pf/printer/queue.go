package printer

import (
	"fmt"
	"strconv"
	"time"

	"weir/pf/ast"
)

// queue prints the definition of a queue.
func queue(q *ast.Queue) string {
	c := clauses{"queue", name(q.Name.Text)}
	queueOptions(&c, q)
	return c.String()
}

// discipline prints FreeBSD's altq on.
func discipline(d *ast.Discipline) string {
	c := clauses{"altq"}
	queueOptions(&c, &d.Queue)
	return c.String()
}

func queueOptions(c *clauses, q *ast.Queue) {
	c.addIf(len(q.On) > 0, "on", list(q.On, onInterface))
	if len(q.On) > 0 && (q.Direction == ast.In || q.Parent != nil) {
		c.add(direction(q.Direction))
	}
	if q.Parent != nil {
		c.add("parent", name(q.Parent.Text))
	}
	if q.ALTQ.Scheduler != nil {
		c.add(scheduler(q.ALTQ.Scheduler))
	}
	number(c, "flows", uint64(q.Flows), q.Flows > 0)
	number(c, "quantum", uint64(q.Quantum), q.Quantum > 0)
	if q.Bandwidth != nil {
		text := "bandwidth " + bandwidth(q.Bandwidth)
		if q.Min != nil {
			text += ", min " + bandwidth(q.Min)
		}
		if q.Max != nil {
			text += ", max " + bandwidth(q.Max)
		}
		c.add(text)
	}
	c.addIf(q.Default.IsValid(), "default")
	if q.QueueLimit != nil {
		number(c, "qlimit", uint64(*q.QueueLimit), *q.QueueLimit > 0)
	}
	if q.Priority != nil {
		number(c, "priority", uint64(q.Priority.N), true)
	}
	altq(c, &q.ALTQ)
	ownQueue(c, &q.Own)
}

// ownQueue prints what only weir's queues have.
func ownQueue(c *clauses, o *ast.OwnQueue) {
	c.addIf(o.Fair != ast.FairNotGiven, "fair", ast.FairWords[o.Fair])
	c.addIf(o.ECN.IsValid(), "ecn")
	if o.RTT != nil {
		c.add("rtt", duration(o.RTT.For))
	}
	c.addIf(o.Engine != ast.EngineNotGiven, "engine", ast.EngineWords[o.Engine])
	c.addIf(o.Modem.IsValid(), "modem")
	c.addIf(len(o.Link) > 0, "link", list(o.Link, func(w *ast.Word) string { return w.Text }))
	if o.Overhead != nil {
		c.add("overhead", strconv.Itoa(int(o.Overhead.N)))
	}
	if o.MPU != nil {
		number(c, "mpu", uint64(o.MPU.N), true)
	}
}

// duration prints a time in the largest unit that keeps it whole.
func duration(d time.Duration) string {
	switch {
	case d%time.Second == 0:
		return fmt.Sprintf("%ds", d/time.Second)
	case d%time.Millisecond == 0:
		return fmt.Sprintf("%dms", d/time.Millisecond)
	}
	return fmt.Sprintf("%dus", d/time.Microsecond)
}

// altq prints what only FreeBSD's queues have.
func altq(c *clauses, a *ast.ALTQ) {
	if a.Bucket != nil {
		number(c, "tbrsize", uint64(*a.Bucket), true)
	}
	c.addIf(len(a.Queues) > 0, "queue", list(a.Queues, func(w *ast.Word) string { return name(w.Text) }))
}

func number(c *clauses, word string, n uint64, given bool) {
	c.addIf(given, word, strconv.FormatUint(n, 10))
}

func bandwidth(b *ast.Bandwidth) string {
	text := rate(b.Rate)
	if b.Percent > 0 {
		text = fmt.Sprintf("%d%%", b.Percent)
	}
	if b.Burst == nil {
		return text
	}
	return fmt.Sprintf("%s burst %s for %dms", text, rate(b.Burst.Rate), b.Burst.For)
}

// rate prints bits per second in the largest unit that keeps the number whole. Like
// pfctl, it prints a blank if there is no unit.
func rate(n uint64) string {
	unit := 0
	for ; n >= 1000 && n%1000 == 0 && unit < 3; unit++ {
		n /= 1000
	}
	return fmt.Sprintf("%d%c", n, " KMG"[unit])
}

func scheduler(s *ast.Scheduler) string {
	if len(s.Options) == 0 {
		return s.Name.Text
	}
	var c clauses
	for _, o := range s.Options {
		c.add(o.Name.Text)
		values := make(clauses, len(o.Values))
		for i := range o.Values {
			values[i] = word(o.Values[i].Text)
		}
		if o.Listed {
			c.add("(" + values.String() + ")")
		} else {
			c.add(values.String())
		}
	}
	return s.Name.Text + "(" + c.String() + ")"
}
