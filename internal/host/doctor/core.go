package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"weir/internal/host/cpulist"
	"weir/internal/units"
)

func coreChecks() []Check {
	return []Check{
		{ID: "CPU-1", Title: "packets fill some cores while others have room", Reads: []string{"cpus"}, Worst: Critical, needs: []need{(*view).noCores}, run: oneCoreFull},
		{ID: "CPU-2", Title: "packets fill all cores", Reads: []string{"cpus"}, Worst: Critical, needs: []need{(*view).noCores}, run: allCoresFull},
		{ID: "CPU-3", Title: "other work fills a core that serves a queue", Reads: []string{"cpus", "irqs", "statistics", "ksoftirqd"}, Worst: Critical, needs: []need{(*view).noCores}, run: programs},
		{ID: "CPU-4", Title: "softirqs that are not of packets fill cores", Reads: []string{"cpus", "links", "watched"}, Worst: Critical, needs: []need{(*view).noCores}, run: otherSoftirqs},
		{ID: "IRQ-5", Title: "a card interrupts for nearly each packet", Reads: []string{"cpus", "irqs", "interfaces.coalesce"}, Worst: Critical, needs: []need{(*view).noCores}, run: interrupted},
		{ID: "TUN-1", Title: "one tunnel fills a core", Reads: []string{"tunnels", "interfaces", "links", "cpus"}, Worst: Critical, needs: []need{noInterfaces, (*view).noCores}, run: oneTunnel},
		{ID: "VIRT-1", Title: "the hypervisor takes time away", Reads: []string{"cpus"}, Worst: Critical, needs: []need{(*view).noCores}, run: stolen},
		{ID: "VIRT-2", Title: "the cloud host limits the machine's traffic", Reads: []string{"statistics", "links"}, Worst: Critical, needs: []need{(*view).noNICs}, run: allowed},
	}
}

// exhausted is the mean load of all cores above which spreading the load no longer helps.
const exhausted = 0.85

func (v *view) noCores(o *outcome) bool {
	if len(v.cores) == 0 {
		o.lacks(v, "before.cpus and after.cpus")
	}
	return len(v.cores) == 0
}

func (v *view) meanBusy() float64 {
	mean, _, _ := v.others(nil)
	return mean
}

// program reports whether a program fills the core. Packets take precedence over
// programs. A kernel thread may be WireGuard's, whose work is packet work too.
func (v *view) program(c *core) bool {
	return c.busy >= full && !c.forwards() && (!c.inKernel() || len(v.tunnels()) == 0)
}

// busyShare returns the mean share of the cores' time that packets have to wait for.
func (v *view) busyShare() (mean float64) {
	for _, c := range v.cores {
		if v.program(c) {
			mean += c.network() + c.steal
			continue
		}
		mean += c.busy
	}
	return mean / float64(max(len(v.cores), 1))
}

// spreadable returns the full cores if the other cores have room.
func (v *view) spreadable() []*core {
	filled := v.fullCores()
	if len(filled) == 0 || len(filled) == len(v.cores) || v.busyShare() >= exhausted {
		return nil
	}
	return filled
}

func oneCoreFull(v *view) (o outcome) {
	filled := v.spreadable()
	if len(filled) == 0 {
		return o
	}
	f := Finding{
		Severity: v.critical(), Subject: cpuNames(filled), core: filled[0].ID, cores: idsOf(filled), bites: true,
		Says:   fmt.Sprintf("%s %s full of %s; %s", cpuNames(filled), beVerb(len(filled)), packetWork(filled), v.room(filled)),
		Expect: "the box forwards more packets per second, because more cores take part",
	}
	v.showCores(&f, filled)
	mean, _, count := v.others(filled)
	f.Evidence = append(f.Evidence, fmt.Sprintf("%s: %s busy on average", otherCores(count), percent(mean)))
	f.relief = true
	o.add(f)
	return o
}

// showCores adds how cores spent their time, and what the kernel counted on them.
func (v *view) showCores(f *Finding, cores []*core) {
	for _, c := range cores {
		f.Evidence = append(f.Evidence, c.line())
		if line := v.watched(c); line != "" {
			f.Evidence = append(f.Evidence, line)
		}
	}
}

// softirqWork is the work of packets, unless threads receive.
const softirqWork = "softirq"

// packetWork names the packet work that fills the cores.
func packetWork(filled []*core) string {
	for _, c := range filled {
		if c.threads < c.network()/2 {
			return softirqWork
		}
	}
	return "receiving in threads (threaded NAPI)"
}

// room describes the load of the other cores.
func (v *view) room(filled []*core) string {
	mean, idle, count := v.others(filled)
	if idle == count {
		return plural(count, "core") + " idle"
	}
	if mean >= exhausted && packetWork(filled) == softirqWork {
		return fmt.Sprintf("programs use %s, and packets have priority over them", otherCores(count))
	}
	if mean >= exhausted {
		return fmt.Sprintf("programs use %s, which threads that receive would have to share", otherCores(count))
	}
	return fmt.Sprintf("%s %s busy for %s of the time", otherCores(count), beVerb(count), percent(mean))
}

func otherCores(count int) string {
	if count == 1 {
		return "the other core"
	}
	return fmt.Sprintf("the other %d cores", count)
}

// coreList names cores as in files: "core 0", "cores 0-3,8".
func coreList(ids []int) string {
	if len(ids) == 1 {
		return fmt.Sprintf("core %d", ids[0])
	}
	return "cores " + cpulist.Format(ids)
}

// isStolen reports whether the hypervisor takes most of the time that the cores lack.
func (v *view) isStolen() bool {
	var stolen, taken float64
	for _, c := range v.cores {
		stolen += c.steal
		taken += c.busy
	}
	return stolen > taken/2
}

func allCoresFull(v *view) (o outcome) {
	filled := v.fullCores()
	if len(filled) == 0 || len(v.spreadable()) > 0 || v.isStolen() {
		return o
	}
	f := Finding{
		Severity: v.critical(), Subject: cpuNames(filled), core: filled[0].ID, cores: idsOf(filled), bites: true,
		Says:   fmt.Sprintf("packets fill the box: its %s are busy for %s of their time, and no core has room", plural(len(v.cores), "core"), percent(v.meanBusy())),
		Expect: "cheaper packets or more cores; settings alone give a full core 10 to 20 % more at most",
	}
	v.showCores(&f, v.cores)
	if len(v.cores) == 1 {
		f.Says = fmt.Sprintf("packets fill the box: its only core is busy for %s of its time", percent(v.meanBusy()))
	}
	f.Remedies = []Remedy{
		cheaper,
		{Text: "use a machine with more or faster cores; do not enlarge rings, which only adds delay"},
	}
	o.add(f)
	return o
}

// cheaper is the remedy if no core has room: cheaper packets.
var cheaper = Remedy{Command: "weir interfaces", Text: "check that packets are handled at XDP: it costs a fraction of what the stack costs"}

// crowded reports whether packets lack time on a core: it is full, or it is at work and
// a ring that it empties loses packets.
func (v *view) crowded(c *core) bool {
	return c.busy >= full || c.busy >= working && slices.ContainsFunc(v.nics, func(n *nic) bool {
		lost, _ := v.lost(n)
		return lost >= fewLost && v.load(n) == c
	})
}

// fills says what something does to a core: it fills it, or takes most of its time.
func (c *core) fills(who, verb string) string {
	if c.busy >= full {
		return who + " " + verb + " " + c.name()
	}
	return fmt.Sprintf("%s %s %s busy for %s of its time", who, strings.Replace(verb, "fill", "keep", 1), c.name(), percent(c.busy))
}

// fullness says how full the core is.
func (c *core) fullness() string {
	if c.busy >= full {
		return "full"
	}
	return "busy for " + percent(c.busy) + " of its time"
}

func programs(v *view) (o outcome) {
	for _, c := range v.cores {
		waits := v.waited(c)
		v.besideQueue(&o, c)
		if !v.crowded(c) && waits == nil || c.forwards() || c.steal > c.user+c.system {
			continue
		}
		served, busiest := v.servedBy(c.ID)
		if len(served) == 0 {
			continue
		}
		f := v.otherWork(c, served)
		if !v.crowded(c) {
			f = v.longWaits(c, waits, served)
		}
		if busiest < few {
			f.Severity, f.bites = Notice, false // hardly a packet waits
		}
		o.add(f)
	}
	return o
}

// besideQueue checks the core of a queue on a machine that does not forward. A program that takes a
// good part of it is likely the one that reads the packets: on another core, both have room.
func (v *view) besideQueue(o *outcome, c *core) {
	forwards, known := v.forwarding()
	served, busiest := v.servedBy(c.ID)
	other := c.user + c.system
	if !known || forwards || c.busy < full || !c.forwards() || c.network() >= working || other < beside || busiest < few || v.meanBusy() >= working {
		return
	}
	o.add(Finding{
		Severity: v.critical(), Subject: c.name(), core: c.ID, weight: other, bites: true, kind: "beside",
		Says:     fmt.Sprintf("%s is full, because it serves %s and also runs a program, which takes %s of it; %s", c.name(), join(served), percent(other), v.room([]*core{c})),
		Evidence: []string{c.line()},
		Remedies: []Remedy{{Command: "top -1 -H", Text: fmt.Sprintf("find the program (the one that reads the packets, most likely), and keep it off %s (CPUAffinity= of its unit, or taskset -c)", c.name())}},
		Expect:   "packets and program each have a core, and more goes through",
	})
}

// otherWork tells programs from the kernel's own threads, which no unit's
// CPUAffinity= binds.
func (v *view) otherWork(c *core, served []string) Finding {
	also := ", which also serves " + join(served)
	if c.busy < full {
		also = ", and it also serves " + join(served)
	}
	f := Finding{
		Severity: Warning, Subject: c.name(), core: c.ID, weight: c.user + c.system, bites: true,
		Says:     c.fills("programs", "fill") + also,
		Evidence: []string{c.line()},
		Remedies: []Remedy{{Command: "top -1 -H", Text: "find the program, and keep it off " + c.name() + " (CPUAffinity= of its unit, or taskset)"}},
		Expect:   "packets of these queues no longer wait for the program",
	}
	if !c.inKernel() {
		return f
	}
	f.Says = c.fills("the kernel's threads", "fill") + also
	f.Remedies = []Remedy{{Command: "top -1 -H", Text: "find the thread: the name of a kworker ends with the queue whose work it does"}}
	if tunnels := v.tunnels(); len(tunnels) == 0 {
		f.Says = c.fills("threads of the kernel, or the system calls of a program,", "fill") + also
		f.Remedies = []Remedy{{Command: "top -1 -H", Text: "find the thread (the name of a kworker ends with the queue whose work it does), or the program, and keep that off " + c.name() + " (CPUAffinity= of its unit, or taskset)"}}
	} else {
		f.Says += "; WireGuard (" + join(tunnels) + ") encrypts and decrypts in such threads, on all cores"
		f.Remedies = append(f.Remedies, Remedy{Text: "if it is WireGuard: more or faster cores carry more of it; keep the busiest queues on cores that have room"})
	}
	return f
}

// tunnels are the WireGuard interfaces that are up.
func (v *view) tunnels() (names []string) {
	for _, d := range v.up("wireguard") {
		names = append(names, d.Name)
	}
	return names
}

// servedBy names the queues that come to a core and carry packets, and how many the
// busiest of them does.
func (v *view) servedBy(id int) (names []string, busiest uint64) {
	for _, n := range v.nics {
		for _, q := range n.active() {
			if slices.Contains(q.cores, id) {
				names = append(names, place{n, q}.String())
				busiest = max(busiest, q.packets)
			}
		}
	}
	return names, busiest
}

// Shares of steal: a host that is shared takes a little now and then; from some on
// packets wait for it, and much is what fills a ring.
const (
	someSteal = 0.05
	muchSteal = 0.10
	hardlyAny = 0.03
)

func stolen(v *view) (o outcome) {
	by := map[Severity][]*core{}
	for _, c := range v.cores {
		switch {
		case c.steal < hardlyAny:
		case c.steal >= muchSteal && c.busy >= full:
			by[Critical] = append(by[Critical], c)
		case c.steal >= muchSteal, c.steal >= someSteal && c.busy >= quiet:
			by[Warning] = append(by[Warning], c)
		default:
			by[Notice] = append(by[Notice], c) // it is little, or nothing waits for it
		}
	}
	for _, grade := range []Severity{Critical, Warning, Notice} {
		if len(by[grade]) > 0 {
			o.add(stolenTime(by[grade], grade))
		}
	}
	return o
}

// robbed reports whether these cores would have room with the time that is taken away.
func robbed(cores []*core) bool {
	return slices.ContainsFunc(cores, func(c *core) bool { return c.steal >= muchSteal && c.busy-c.steal < busy })
}

func idsOf(cores []*core) []int {
	ids := make([]int, len(cores))
	for i, c := range cores {
		ids[i] = c.ID
	}
	return ids
}

func stolenTime(cores []*core, grade Severity) Finding {
	most := slices.MaxFunc(cores, func(a, b *core) int { return cmp.Compare(a.steal, b.steal) })
	f := Finding{
		Severity: grade, Subject: cpuNames(cores), core: most.ID, weight: most.steal, cores: idsOf(cores), bites: robbed(cores),
		Says:     fmt.Sprintf("the hypervisor takes %s of %s's time away", percent(most.steal), most.name()),
		Remedies: []Remedy{{Command: "mpstat -P ALL 2", Text: "on the host, give the virtual machine cores of its own (pinning), or move it to a less busy host; watch %steal meanwhile"}},
		Expect:   "the core has that time for packets, and delays no longer vary with other machines' load",
	}
	if len(cores) > 1 {
		f.Says = fmt.Sprintf("the hypervisor takes up to %s of the time of %s away (%s)", percent(most.steal), plural(len(cores), "core"), most.name())
	}
	for _, c := range cores {
		f.Evidence = append(f.Evidence, c.line())
	}
	return f
}

func (c *core) name() string { return fmt.Sprintf("cpu%d", c.ID) }

// line describes how the core spent its time.
func (c *core) line() string {
	text := fmt.Sprintf("%s: %s busy, of it softirq %s, irq %s, system %s, programs %s", c.name(), percent(c.busy),
		percent(c.softirq), percent(c.irq), percent(c.system), percent(c.user))
	if c.steal > 0 {
		text += ", stolen " + percent(c.steal)
	}
	return text
}

// cpuNames joins the cores' names: "cpu1, cpu2 and cpu5".
func cpuNames(cores []*core) string {
	ids := make([]string, len(cores))
	for i, c := range slices.SortedFunc(slices.Values(cores), func(a, b *core) int { return a.ID - b.ID }) {
		ids[i] = c.name()
	}
	return join(ids)
}

func join(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

func beVerb(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

func plural(n int, noun string) string { return units.Plural(n, noun) }

// percent rounds to a whole percent if the fraction does not matter.
func percent(share float64) string {
	if share > 0 && share < 0.095 {
		return units.Digits(100*share, 2) + " %"
	}
	return fmt.Sprintf("%.0f %%", 100*share)
}
