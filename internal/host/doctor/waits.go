package doctor

import (
	"fmt"
	"time"
)

// Waits of ksoftirqd that are more than the scheduler's turns: a thread that shares a core
// with others waits for a few milliseconds. It waits longer for what the kernel does not
// interrupt (a long system call, where it is not built to be preempted), and for real-time threads.
const (
	longTurn  = 5 * time.Millisecond
	longShare = 0.05 // of the time between the samples
)

// waited returns the waits of a core's ksoftirqd if they are long; nil: they are not, or
// unknown.
func (v *view) waited(c *core) *Waits {
	after, known := v.After.Ksoftirqd[c.ID]
	before, sampled := v.Before.Ksoftirqd[c.ID]
	if !known || !sampled {
		return nil
	}
	w := Waits{Nanoseconds: Grown(after.Nanoseconds, before.Nanoseconds), Turns: Grown(after.Turns, before.Turns)}
	if w.Turns < fewLost || w.mean() < longTurn || float64(w.Nanoseconds) < longShare*v.Seconds*1e9 {
		return nil
	}
	return &w
}

func (w *Waits) mean() time.Duration { return time.Duration(w.Nanoseconds / max(1, w.Turns)) }

// longWaits names a core with time left, on which packets all the same wait for other work.
func (v *view) longWaits(c *core, w *Waits, served []string) Finding {
	return Finding{
		Severity: Warning, Subject: c.name(), core: c.ID, weight: c.user + c.system, bites: true, kind: "waits",
		Says: fmt.Sprintf("packets on %s wait for other work, %d ms at a time: ksoftirqd is kept off it, and it serves %s", c.name(), w.mean().Milliseconds(), join(served)),
		Evidence: []string{
			fmt.Sprintf("ksoftirqd/%d waited for %s in %s, before %d turns", c.ID, time.Duration(w.Nanoseconds).Round(time.Millisecond), seconds(v.Seconds), w.Turns),
			c.line(),
		},
		Remedies: []Remedy{
			{Command: fmt.Sprintf("perf sched timehist --cpu %d", c.ID), Text: "after perf sched record: find what ran meanwhile. Often it is a program whose system calls take long (one that reads the files of many cgroups), or a real-time thread; keep it off this core (CPUAffinity= of its unit, or taskset)"},
			{Text: "or boot with preempt=full, so that such calls give way"},
		},
		Expect: "packets no longer wait; the delay, not the throughput, gets better",
	}
}
