package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"weir/internal/host/cpulist"
	"weir/internal/host/irqname"
	"weir/internal/pattern"
	"weir/internal/units"
)

// foreignChecks returns the checks for other firewalls, whose own output doctor reads.
func foreignChecks() []Check {
	return []Check{
		{ID: "PF-1", Title: "pf's tables or queues are full", Reads: []string{"pf"}, Worst: Critical, run: pfFull},
		{ID: "SPLIT-1", Title: "a core that receives has other work", Reads: []string{"workers", "irqs"}, Worst: Warning, run: split},
		{ID: "BSD-1", Title: "FreeBSD does not forward, or not by its fast path", Reads: []string{"sysctls"}, Worst: Warning, needs: []need{(*view).noFreeBSD}, run: tryforward},
		{ID: "BSD-2", Title: "FreeBSD's input queue dropped", Reads: []string{"sysctls"}, Worst: Warning, needs: []need{(*view).noFreeBSD}, run: netisr},
		{ID: "BSD-3", Title: "FreeBSD's cards use one queue", Reads: []string{"sysctls"}, Worst: Warning, needs: []need{(*view).noFreeBSD}, run: bsdQueues},
		{ID: "BSD-4", Title: "FreeBSD's cards have lost packets", Reads: []string{"sysctls"}, Worst: Warning, needs: []need{(*view).noFreeBSD}, run: bsdLosses},
		{ID: "BSD-5", Title: "FreeBSD's cores are full", Reads: []string{"bsd"}, Worst: Critical, run: bsdFullCores},
		{ID: "BSD-6", Title: "FreeBSD has no buffers for packets", Reads: []string{"bsd"}, Worst: Critical, run: bsdBuffers},
	}
}

func pfFull(v *view) (o outcome) {
	if v.PF == nil {
		o.absent = "nothing was read of a pf"
		return o
	}
	if v.PF.StateLimit == 0 {
		o.lacks(v, "pf.state_limit (pfctl -sm)")
	} else if grade := fill(float64(v.PF.States)/float64(v.PF.StateLimit), 0); grade > Notice {
		o.add(Finding{
			Severity: grade, core: -1,
			Says:     "pf's state table holds " + of(v.PF.States, v.PF.StateLimit),
			Evidence: []string{"states: " + of(v.PF.States, v.PF.StateLimit)},
			Remedies: []Remedy{{Command: moreStates(2 * v.PF.StateLimit), Text: "takes effect at once; put the same line into pf.conf to keep it; on FreeBSD net.pf.states_hashsize (at boot) should grow with it"}},
			Expect:   "new connections are no longer refused",
		})
	}
	memory := Remedy{Command: "pfctl -sm", Text: "see the limits: raise the one that is reached (states, src-nodes, frags)"}
	if v.PF.StateLimit > 0 {
		memory = Remedy{Command: moreStates(2 * v.PF.StateLimit), Text: "raise the limit of states, and likewise src-nodes and frags where they are reached (pfctl -sm)"}
	}
	for _, c := range []struct {
		counter, means string
		remedy         Remedy
	}{
		{"memory", "no memory, or no room in the table, for a state", memory},
		{"congestion", "the input queue was full: the box did not keep up", Remedy{Command: "top -HSP", Text: "find the core that packets fill; net.isr settings and queues decide"}},
		{"state-limit", "a rule's max states was reached", Remedy{Command: "pfctl -vsr", Text: "find the rules with max, and their states: raise it, or find out who opens so many (pfctl -ss)"}},
	} {
		if n := v.PF.Counters[c.counter]; n > 0 {
			o.add(Finding{
				Severity: Warning, core: -1, weight: float64(n),
				Says:     fmt.Sprintf("pf has dropped %s since it was enabled: %s", plural(n, "packet"), c.means),
				Evidence: []string{fmt.Sprintf("counter %s: %s", c.counter, units.Thousands(n))},
				Remedies: []Remedy{c.remedy},
				Expect:   "the counter no longer grows; two readings some time apart tell whether it does already",
			})
		}
	}
	return o
}

// moreStates returns the command that sets this one option. Rules and other options stay
// as they are (pfctl(8), -m).
func moreStates(n int) string { return fmt.Sprintf("echo 'set limit states %d' | pfctl -mf -", n) }

// split looks for cores that receive for several interfaces or queues, or that receive
// and also run a firewall instance.
func split(v *view) (o outcome) {
	if v.Workers == nil {
		o.absent = "no firewall instances were read"
		return o
	}
	jobs := v.jobs()
	if len(jobs) == 0 {
		o.lacks(v, "irqs")
		return o
	}
	table := v.splitTable(jobs)
	for _, id := range sortedKeys(jobs) {
		work := slices.Concat(jobs[id], v.workersOn(id))
		if len(work) < 2 {
			continue
		}
		o.add(Finding{
			Severity: Warning, Subject: fmt.Sprintf("cpu%d", id), core: id, weight: float64(len(work)),
			Says: fmt.Sprintf("cpu%d does the work of %s, so it fills first: %d of %d cores receive, and %d run firewall instances",
				id, join(work), len(jobs), len(v.CPUs), v.workerCores()),
			Evidence: table,
			Remedies: v.splitRemedies(id, work),
			Expect:   "each of them has a core of its own; these tables do not show the cores' load: look at top",
		})
	}
	return o
}

// jobs returns the interfaces and queues that each core receives for.
func (v *view) jobs() map[int][]string {
	jobs := map[int][]string{}
	for _, irq := range v.IRQs {
		list, err := cpulist.Parse(irq.Affinity)
		if err != nil {
			continue // the bundle was checked when it was read
		}
		what := irq.Interface
		card := irqname.Card{Name: irq.Interface}
		if n, ok := card.Number(irq.Name); ok {
			what = fmt.Sprintf("queue %d of %s", n, irq.Interface)
		}
		for _, id := range list {
			jobs[id] = append(jobs[id], what)
		}
	}
	return jobs
}

func (v *view) workersOn(id int) (names []string) {
	for _, w := range v.Workers {
		if w.CPU == id {
			names = append(names, w.Name)
		}
	}
	return names
}

func (v *view) workerCores() int {
	ids := make([]int, len(v.Workers))
	for i, w := range v.Workers {
		ids[i] = w.CPU
	}
	return distinct(ids)
}

func (v *view) splitTable(jobs map[int][]string) (rows []string) {
	for _, c := range v.CPUs {
		rows = append(rows, fmt.Sprintf("cpu%d: %s", c.ID, cmp.Or(strings.Join(slices.Concat(jobs[c.ID], v.workersOn(c.ID)), ", "), "none")))
	}
	return rows
}

// splitRemedies returns Check Point's own commands. The core for receiving is one that
// the tables do not name. If there is none, the last firewall instance gives its core.
func (v *view) splitRemedies(id int, work []string) (remedies []Remedy) {
	free, last := v.freeCore(), v.lastWorker()
	from := fmt.Sprintf("cpu%d, which the tables give nothing to", free)
	if free < 0 {
		free, from = last.CPU, fmt.Sprintf("cpu%d, which %s leaves", last.CPU, last.Name)
		remedies = []Remedy{{Command: "cpconfig", Text: fmt.Sprintf("CoreXL: %d firewall instances instead of %d, so that %s and its core go to receiving; needs a reboot", len(v.Workers)-1, len(v.Workers), last.Name)}}
	}
	if len(v.workersOn(id)) == 0 {
		work = work[1:] // the first stays
	}
	for _, w := range work {
		if v.device(w) != nil && free != id {
			remedies = append(remedies, Remedy{Command: fmt.Sprintf("fw ctl affinity -s -i %s %d", w, free), Text: fmt.Sprintf("bring %s from cpu%d to %s (fw ctl affinity -l says whether it is free)", w, id, from)})
		}
	}
	for i := range v.Interfaces {
		if n := &v.Interfaces[i]; n.Driver != "" && n.RxQueues > 0 {
			remedies = append(remedies, Remedy{Command: fmt.Sprintf("cpmq set rx_num %s %d", n.Driver, n.RxQueues+1), Text: fmt.Sprintf("or receive from %s by one queue more, as its card allows; needs a reboot", n.Name)})
		}
	}
	return remedies
}

// freeCore returns a core number missing from the tables; -1: none.
func (v *view) freeCore() int {
	for i, c := range v.CPUs {
		if c.ID > i {
			return i
		}
	}
	return -1
}

// lastWorker returns the instance with the highest number.
func (v *view) lastWorker() Worker {
	return slices.MaxFunc(v.Workers, func(a, b Worker) int {
		return cmp.Or(cmp.Compare(len(a.Name), len(b.Name)), strings.Compare(a.Name, b.Name))
	})
}

// noFreeBSD reports whether the sysctls are not FreeBSD's, and notes it.
func (v *view) noFreeBSD(o *outcome) bool {
	o.absent = "no FreeBSD's sysctls were read"
	return v.Host.System != "FreeBSD" || v.Sysctls == nil
}

// tryforward checks FreeBSD's fast path. IPv6 packets, and IPv4 packets before FreeBSD
// 14, take it only if the box sends no redirects (V_ipsendredirects in ip_input(),
// V_ip6_sendredirects in ip6_input()). From FreeBSD 14 on, IPv4's fast path sends
// redirects itself.
func tryforward(v *view) (o outcome) {
	for _, family := range []struct{ name, forwarding, redirect string }{
		{"IPv4", "net.inet.ip.forwarding", "net.inet.ip.redirect"}, {"IPv6", "net.inet6.ip6.forwarding", "net.inet6.ip6.redirect"},
	} {
		forwards, known := v.number(family.forwarding)
		redirects, knows := v.number(family.redirect)
		if (!known || !knows) && family.name == "IPv6" && v.readIPv4() {
			if redirects != 0 || !knows { // otherwise it takes the fast path, whether it forwards or not
				o.apart = append(o.apart, "IPv6: sysctls."+family.redirect+" and "+family.forwarding)
			}
			continue
		}
		if !known || !knows {
			o.lacks(v, "sysctls."+family.redirect+" and "+family.forwarding)
			continue
		}
		switch {
		case forwards == 0 && family.name == "IPv4":
			o.add(Finding{
				Severity: Notice, core: -1, Says: "this FreeBSD does not forward IPv4",
				Evidence: []string{family.forwarding + " = 0"}, Remedies: []Remedy{{Command: "sysctl " + family.forwarding + "=1", Text: "if it is a router"}},
				Expect: "the box routes " + family.name,
			})
		case forwards != 0 && redirects != 0:
			v.slowPath(&o, family.name, family.redirect)
		}
	}
	return o
}

// readIPv4 reports whether the inputs for IPv4 were read. The check then does not need
// those for IPv6, which the kernel or the selection of lines may leave out.
func (v *view) readIPv4() bool {
	_, forwards := v.number("net.inet.ip.forwarding")
	_, redirects := v.number("net.inet.ip.redirect")
	return forwards && redirects
}

// release returns FreeBSD's major version; 0: unknown.
func (v *view) release() int {
	digits, _, _ := strings.Cut(v.Host.Kernel, ".")
	major, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return major
}

// bothWays is the first FreeBSD whose IPv4 fast path also sends redirects.
const bothWays = 14

func (v *view) slowPath(o *outcome, family, redirect string) {
	if family == "IPv4" && v.release() >= bothWays {
		return
	}
	if family == "IPv4" && v.release() == 0 {
		o.lacks(v, "sysctls.kern.osrelease") // the path depends on the version
		return
	}
	o.add(Finding{
		Severity: Warning, core: -1,
		Says:     fmt.Sprintf("%s packets are forwarded by the slow path, because redirects are sent", family),
		Evidence: []string{fmt.Sprintf("%s = %s, FreeBSD %s", redirect, v.Sysctls[redirect], cmp.Or(v.Host.Kernel, "none"))},
		Remedies: []Remedy{{Command: "sysctl " + redirect + "=0", Text: "tryforward then takes them; redirects are useless on a network with one router"}},
		Expect:   "more packets per second, unless the packet filter costs more; measure",
	})
}

func netisr(v *view) (o outcome) {
	drops, known := v.number("net.inet.ip.intr_queue_drops")
	length, knows := v.number("net.inet.ip.intr_queue_maxlen")
	if !known || !knows {
		o.lacks(v, "sysctls.net.inet.ip.intr_queue_drops and maxlen")
		return o
	}
	if drops == 0 {
		return o
	}
	o.add(Finding{
		Severity: Warning, core: -1, weight: float64(drops),
		Says:     fmt.Sprintf("the input queue of IPv4 has dropped %s since the start", plural(drops, "packet")),
		Evidence: []string{fmt.Sprintf("net.inet.ip.intr_queue_drops = %d, net.inet.ip.intr_queue_maxlen = %d, net.isr.dispatch = %s", drops, length, cmp.Or(v.Sysctls["net.isr.dispatch"], "none"))},
		Remedies: []Remedy{{Command: "sysctl net.inet.ip.intr_queue_maxlen=3000", Text: "make it hold longer bursts, if cores have room while it drops; PPPoE with net.isr.dispatch=deferred uses it most"}},
		Expect:   "the counter no longer grows",
	})
	return o
}

var bsdQueue = pattern.New(`^dev\.([a-z]+\.\d+)\.queue(\d+)\.rx_packets$`)

// bsdQueues reads each queue's packets since boot, which older drivers report.
func bsdQueues(v *view) (o outcome) {
	if msix, known := v.number("hw.pci.enable_msix"); known && msix == 0 {
		o.add(Finding{
			Severity: Warning, core: -1, Says: "MSI-X is off, so that each card has one queue",
			Evidence: []string{"hw.pci.enable_msix = 0"},
			Remedies: []Remedy{{Command: "grep -n hw.pci.enable_msix /boot/loader.conf /boot/loader.conf.local", Text: "remove it: it was a workaround for old drivers; needs a reboot"}},
			Expect:   "as many queues as the card and the cores have",
		})
	}
	packets := map[string]map[int]float64{}
	for name, value := range v.Sysctls {
		m := bsdQueue.FindStringSubmatch(name)
		if m == nil {
			continue
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			o.lacks(v, "sysctls."+name)
			continue
		}
		if packets[m[1]] == nil {
			packets[m[1]] = map[int]float64{}
		}
		packets[m[1]][whole(m[2])] = n
	}
	if interrupts := v.oneInterrupt(&o); len(packets) == 0 && !interrupts && len(o.findings) == 0 {
		o.lacks(v, "sysctls.dev.*.queue*.rx_packets")
	}
	for _, device := range sortedKeys(packets) {
		uneven(&o, device, packets[device])
	}
	return o
}

func uneven(o *outcome, device string, queues map[int]float64) {
	var sum, most float64
	at := 0
	for _, q := range sortedKeys(queues) {
		sum += queues[q]
		if queues[q] > most {
			at, most = q, queues[q]
		}
	}
	if len(queues) < 2 || sum < few || most/sum*float64(len(queues)) < unequal {
		return
	}
	o.add(Finding{
		Severity: Notice, Subject: device, core: -1, weight: most / sum,
		Says:     fmt.Sprintf("queue %d of %s has carried %s of the packets since the start; an even share of %d queues is %s", at, device, percent(most/sum), len(queues), percent(1/float64(len(queues)))),
		Evidence: []string{fmt.Sprintf("dev.%s.queue%d.rx_packets = %s of %s", device, at, units.Thousands(int(most)), units.Thousands(int(sum)))},
		Remedies: []Remedy{{Command: "sysctl dev." + device + " | grep rx_packets", Text: "look again under load: PPPoE comes by one queue whatever the card does; else see whether the flows are few"}},
		Expect:   "as many cores receive as there are queues",
	})
}
