package doctor

import (
	"fmt"

	"weir/internal/host/cpulist"
)

// Shares of an isolated core's time from which on its programs, and the packets beside them,
// matter: a router may well have isolated cores for its queues alone.
const (
	atItsWork  = 0.25
	interrupts = 0.01
)

// isolated finds queues that are served by cores which were isolated for programs. The kernel
// puts interrupts there if a card has more queues than the other cores have room for, or if
// something set their masks without regard.
func isolated(v *view) (o outcome) {
	var others []int
	apart := 0
	for _, c := range v.cores {
		if c.Isolated {
			apart++
		} else {
			others = append(others, c.ID)
		}
	}
	if apart == 0 {
		o.absent = "no core is isolated"
		return o
	}
	by := v.places(&o)
	var hit []*core
	var moved []place
	for _, c := range v.cores {
		if c.Isolated && len(by[c.ID]) > 0 && c.user+c.system >= atItsWork && c.network() >= interrupts {
			hit, moved = append(hit, c), append(moved, by[c.ID]...)
		}
	}
	if len(hit) == 0 || len(others) == 0 {
		return o
	}
	who := fmt.Sprintf("%s (cpu%s)", plural(len(hit), "isolated core"), cpulist.Format(idsOf(hit)))
	f := Finding{
		Severity: Warning, Subject: who, core: -1, cores: idsOf(hit), weight: float64(len(hit)),
		Says:   fmt.Sprintf("%s %s %s: each packet interrupts a program there", who, servesVerb(len(hit)), names(moved)),
		Expect: "the isolated cores have their time for their programs",
	}
	v.showCores(&f, hit)
	for _, n := range v.nics {
		if queues := queuesOf(moved, n); queues > 0 && n.Channels != nil && n.Channels.Combined > len(others) {
			f.Remedies = append(f.Remedies, Remedy{Command: fmt.Sprintf("ethtool -L %s combined %d", n.Name, len(others)), Text: "no more queues than cores that may serve them; the link may go down for a moment"})
		}
	}
	f.Remedies = append(f.Remedies,
		Remedy{Command: "for i in " + irqList(moved) + "; do echo " + cpulist.Format(others) + " > /proc/irq/$i/smp_affinity_list; done", Text: "let the other cores serve them"},
		Remedy{Text: "for good: irqaffinity=" + cpulist.Format(others) + " among the kernel's parameters, beside isolcpus="})
	o.add(f)
	return o
}

func servesVerb(count int) string {
	if count == 1 {
		return "serves"
	}
	return "serve"
}

// queuesOf counts the queues of a card.
func queuesOf(places []place, n *nic) (count int) {
	for _, p := range places {
		if p.nic == n {
			count++
		}
	}
	return count
}

// irqList lists the queues' interrupts, as far as they are known.
func irqList(places []place) string {
	text := ""
	for _, p := range places {
		if p.queue.irq > 0 {
			text += fmt.Sprintf(" %d", p.queue.irq)
		}
	}
	if text == "" {
		return "…"
	}
	return text[1:]
}
