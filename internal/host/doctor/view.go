package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// view is a snapshot with values calculated from its two samples.
type view struct {
	*Snapshot
	sampled bool // there are two samples, and the time between them is known
	cores   []*core
	// nics are the physical devices that are up. In a network namespace without any,
	// they are the veths that connect it.
	nics []*nic
}

// core is how one core spent the time between the samples, in shares of it.
type core struct {
	CPU
	busy, softirq, irq, user, system, steal float64
	processed, dropped, squeezed            uint64
	flowLimited                             uint64 // of the dropped ones, by the flow limit
	received                                uint64 // packets handed over by other cores (RPS)

	threads float64 // system time of threaded NAPI
	ticks   uint64  // ticks between the samples
}

// Shares of a core's time above which it is called full, busy or at work, and the idle
// share above which it is called idle. Full leaves room for what sampling ticks misses.
// Below busy, a core has room for the peaks of an uneven load. A core that is idle four
// fifths of the time has room for a queue.
const (
	full    = 0.90
	busy    = 0.80
	working = 0.60
	quiet   = 0.20
)

// network returns the share of the core's time that packets took.
func (c *core) network() float64 { return c.softirq + c.irq + c.threads }

// inKernel reports whether kernel threads, rather than programs, take the time that
// packets leave. Programs' system calls also take system time, but come with user time.
func (c *core) inKernel() bool { return c.system >= 4*c.user && c.system >= c.busy/2 }

// forwards reports whether packets, rather than programs, fill the core.
func (c *core) forwards() bool {
	return c.network() >= c.busy/2 || c.network()+c.system >= 0.75*c.busy && c.user < c.busy/4 && c.network() >= c.busy/4
}

func newView(s *Snapshot) *view {
	v := &view{Snapshot: s, sampled: s.Before != nil && s.After != nil && s.Seconds > 0}
	if v.sampled {
		v.cores = coresOf(s)
	}
	inside := !slices.ContainsFunc(s.Interfaces, func(i Interface) bool { return i.Kind == "physical" })
	for i := range s.Interfaces {
		if n := &s.Interfaces[i]; n.Up && (n.Kind == "physical" || inside && n.Kind == "veth") {
			v.nics = append(v.nics, newNIC(v, n))
		}
	}
	v.setShares()
	v.bookThreads()
	return v
}

// bookThreads counts the time of receiving threads (napi_threaded_poll) as time of
// packets. If nobody read how long they ran, it takes the system time of all cores,
// because they may run on any.
func (v *view) bookThreads() {
	if v.sampled && v.After.Threads != nil && v.Before.Threads != nil {
		v.bookEach()
		return
	}
	threaded := slices.ContainsFunc(v.nics, func(n *nic) bool { return n.Threaded != nil && *n.Threaded && n.link.RxPackets > 0 })
	for _, c := range v.cores {
		if threaded && c.inKernel() {
			c.threads = c.system
		}
	}
}

// bookEach books each thread's time on the core that it ran on last. A thread's time
// includes interrupts that came while it ran.
func (v *view) bookEach() {
	for i := range v.Interfaces {
		n := &v.Interfaces[i]
		for _, r := range n.NAPI {
			before, known := v.Before.Threads[n.Name][r.Queue]
			after, still := v.After.Threads[n.Name][r.Queue]
			if r.Thread == nil || !known || !still {
				continue
			}
			if c := v.core(r.Thread.core()); c != nil && c.ticks > 0 {
				c.threads = min(c.system, c.threads+float64(Grown(after, before))/float64(c.ticks))
			}
		}
	}
}

func coresOf(s *Snapshot) []*core {
	facts := map[int]CPU{}
	for _, c := range s.CPUs {
		facts[c.ID] = c
	}
	var all []*core
	for _, id := range slices.Sorted(maps.Keys(s.After.CPUs)) {
		before, known := s.Before.CPUs[id]
		if !known {
			continue // it has just come online
		}
		c := &core{CPU: facts[id]}
		c.ID = id
		c.spend(before, s.After.CPUs[id])
		a, b := s.After.Softnet[id], s.Before.Softnet[id]
		c.processed, c.dropped = wrapped(a.Processed, b.Processed), wrapped(a.Dropped, b.Dropped)
		c.squeezed, c.received = wrapped(a.Squeezed, b.Squeezed), wrapped(a.RPS, b.RPS)
		c.flowLimited = wrapped(a.FlowLimit, b.FlowLimit)
		all = append(all, c)
	}
	return all
}

// spend sets the shares. The kernel sometimes corrects idle time backwards.
func (c *core) spend(before, after CPUTimes) {
	user := Grown(after.User, before.User) + Grown(after.Nice, before.Nice)
	system := Grown(after.System, before.System)
	idle := Grown(after.Idle, before.Idle) + Grown(after.IOWait, before.IOWait)
	irq, softirq := Grown(after.IRQ, before.IRQ), Grown(after.Softirq, before.Softirq)
	steal := Grown(after.Steal, before.Steal)
	total := float64(user + system + idle + irq + softirq + steal)
	if total == 0 {
		return
	}
	c.ticks = uint64(total)
	share := func(n uint64) float64 { return float64(n) / total }
	c.busy = 1 - share(idle)
	c.user, c.system, c.irq, c.softirq, c.steal = share(user), share(system), share(irq), share(softirq), share(steal)
}

// Grown returns how far a counter grew. It returns 0 if the counter went back, because it
// was reset.
func Grown(now, then uint64) uint64 {
	if now < then {
		return 0
	}
	return now - then
}

// wrapped does the same for the stack's 32-bit counters.
func wrapped(now, then uint64) uint64 { return uint64(uint32(now) - uint32(then)) }

// find returns the first that is wanted; nil: none is.
func find[T any](all []*T, wanted func(*T) bool) *T {
	if i := slices.IndexFunc(all, wanted); i >= 0 {
		return all[i]
	}
	return nil
}

func (v *view) core(id int) *core {
	return find(v.cores, func(c *core) bool { return c.ID == id })
}

// fullCores returns the cores filled by packets, fullest first.
func (v *view) fullCores() []*core { return v.coresAt(full) }

// coresAt returns the cores that packets keep busy for at least this share, fullest first.
func (v *view) coresAt(least float64) []*core {
	all := slices.DeleteFunc(slices.Clone(v.cores), func(c *core) bool { return c.busy < least || !c.forwards() })
	slices.SortStableFunc(all, func(a, b *core) int { return cmp.Compare(b.network(), a.network()) })
	return all
}

// others returns how busy the other cores are on average, and how many of them are idle.
func (v *view) others(but []*core) (mean float64, idle, count int) {
	for _, c := range v.cores {
		if slices.Contains(but, c) {
			continue
		}
		count++
		mean += c.busy
		if c.busy < quiet {
			idle++
		}
	}
	if count > 0 {
		mean /= float64(count)
	}
	return mean, idle, count
}

// realCores returns the number of cores without hyper-threads; 0: unknown.
func (v *view) realCores() int {
	seen := map[int]bool{}
	n := 0
	for _, c := range v.CPUs {
		if seen[c.ID] {
			continue
		}
		n++
		for _, s := range c.Siblings {
			seen[s] = true
		}
	}
	return n
}

// link returns an interface's counts between the samples.
func (v *view) link(name string) (Link, bool) {
	if !v.sampled {
		return Link{}, false
	}
	a, ok := v.After.Links[name]
	b, known := v.Before.Links[name]
	if !ok || !known {
		return Link{}, false
	}
	return Link{
		RxPackets: Grown(a.RxPackets, b.RxPackets), TxPackets: Grown(a.TxPackets, b.TxPackets),
		RxBytes: Grown(a.RxBytes, b.RxBytes), TxBytes: Grown(a.TxBytes, b.TxBytes),
		RxErrors: Grown(a.RxErrors, b.RxErrors), TxErrors: Grown(a.TxErrors, b.TxErrors),
		RxDropped: Grown(a.RxDropped, b.RxDropped), TxDropped: Grown(a.TxDropped, b.TxDropped),
		RxMissed: Grown(a.RxMissed, b.RxMissed), RxFIFO: Grown(a.RxFIFO, b.RxFIFO),
		CarrierChanges: Grown(a.CarrierChanges, b.CarrierChanges), TxTimeouts: Grown(a.TxTimeouts, b.TxTimeouts),
	}, true
}

// statistic sums the growth of an interface's own counters whose names match.
func (v *view) statistic(name string, match func(string) bool) (sum uint64, found bool) {
	if !v.sampled {
		return 0, false
	}
	before := v.Before.Statistics[name]
	for key, now := range v.After.Statistics[name] {
		if then, known := before[key]; known && match(key) {
			sum += Grown(now, then)
			found = true
		}
	}
	return sum, found
}

func (v *view) device(name string) *Interface {
	if i := slices.IndexFunc(v.Interfaces, func(d Interface) bool { return d.Name == name }); i >= 0 {
		return &v.Interfaces[i]
	}
	return nil
}

// up returns the interfaces of a kind that are up.
func (v *view) up(kind string) (all []*Interface) {
	for i := range v.Interfaces {
		if d := &v.Interfaces[i]; d.Up && d.Kind == kind {
			all = append(all, d)
		}
	}
	return all
}

// number returns a sysctl's value.
func (v *view) number(name string) (int, bool) {
	fields := strings.Fields(v.Sysctls[name])
	if len(fields) == 0 {
		return 0, false
	}
	n, err := strconv.Atoi(fields[0])
	return n, err == nil
}

// A setting is a number that a sysctl may have.
type setting struct {
	name  string
	value int
}

// raise returns the command that raises settings, without those that are as large already or larger; "" if all are.
func (v *view) raise(settings ...setting) string {
	command := ""
	for _, s := range settings {
		if now, known := v.number(s.name); !known || now < s.value {
			command += fmt.Sprintf(" %s=%d", s.name, s.value)
		}
	}
	if command == "" {
		return ""
	}
	return "sysctl -w" + command
}

// weirReason returns how many packets weir counted for a reason between the samples.
func (v *view) weirReason(name string) (n uint64, known bool) {
	if !v.sampled || v.After.Weir == nil || v.Before.Weir == nil {
		return 0, false
	}
	return Grown(v.After.Weir.Reasons[name], v.Before.Weir.Reasons[name]), true
}
