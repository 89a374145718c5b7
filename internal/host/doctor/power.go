package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"weir/internal/host/cpulist"
	"weir/internal/units"
)

func powerChecks() []Check {
	return []Check{
		{ID: "PWR-1", Title: "cores run below their speed", Reads: []string{"cpus.governor", "cpus.mhz"}, Worst: Critical, needs: []need{noCPUs}, run: governor},
		{ID: "PWR-2", Title: "idle cores sleep deeply", Reads: []string{"host.idle_states"}, Worst: Notice, run: sleeps},
		{ID: "THR-1", Title: "the CPU is throttled by heat or power", Reads: []string{"throttle"}, Worst: Critical, run: throttled},
		{ID: "MIT-1", Title: "mitigations of CPU vulnerabilities cost cycles", Reads: []string{"host.mitigations"}, Worst: Notice, needs: []need{noMitigations}, run: mitigations},
	}
}

// ownPace lists drivers whose governor "powersave" lets the CPU choose any clock from
// slowest to fastest.
var ownPace = map[string]bool{"intel_pstate": true, "amd-pstate-epp": true, "amd_pstate": true, "amd-pstate": true}

// turboMax lists drivers whose fastest clock is, or may be, a turbo that only one core
// reaches. Those of other drivers are clocks that all cores keep.
var turboMax = map[string]bool{"": true, "acpi-cpufreq": true, "intel_pstate": true, "intel_cpufreq": true, "amd-pstate": true, "amd-pstate-epp": true, "amd_pstate": true, "cppc_cpufreq": true}

// Shares of a clock below which something holds it back. With all cores at work,
// processors run at little more than half of a turbo. A clock that all cores keep is
// another matter: below four fifths of it, a fourth more packets are possible, which is
// more than any other setting gives a full core.
const (
	slowTurbo = 0.5
	slowClock = 0.8
)

// keeps returns the clock that the core keeps under load; 0: unknown. acpi-cpufreq knows of a
// turbo only if the firmware has CPPC, which then tells the clock without it, too.
func (c *core) keeps() int {
	if !turboMax[c.Scaling] || c.Scaling == "acpi-cpufreq" && c.BaseMHz == 0 {
		return c.MaxMHz
	}
	return min(c.BaseMHz, c.MaxMHz)
}

// slowness says in which way the clock of a busy core is slow.
type slowness uint8

const (
	fast      slowness = iota
	lowest             // its governor knows no other than the lowest
	limited            // it may not be faster
	farBelow           // it is far below its fastest
	belowKept          // it is below what it keeps under load
	crawling           // it has room, and is so slow that a single packet takes long
)

// crawl is the share of a clock at which a core with room is slow for each single packet:
// its governor raises the clock only after some ten milliseconds of load.
const crawl = 0.125

// fewArrive is the rate, in packets a second, below which hardly anybody waits for single packets.
const fewArrive = 100

// sampling lists governors that choose the clock of a driver without turbo by the load that
// they saw. Processors that choose by themselves do so within a packet.
var sampling = map[string]bool{"ondemand": true, "conservative": true, "schedutil": true, "interactive": true}

// slow says in which way the core's clock is slow. Governors slow down a core with room, so
// that a clock little below what the core keeps counts only if the core is full.
func (c *core) slow() slowness {
	kept, most := float64(c.keeps()), slowTurbo*float64(c.MaxMHz)
	if c.BaseMHz > 0 && turboMax[c.Scaling] {
		most = min(most, float64(c.BaseMHz)) // processors for laptops keep less than half of their turbo
	}
	switch {
	case c.busy < working && c.MHz > 0 && sampling[c.Governor] && !turboMax[c.Scaling] && float64(c.MHz) <= crawl*float64(c.MaxMHz):
		return crawling
	case c.busy < working:
	case c.Governor == "powersave" && !ownPace[c.Scaling] && (c.MaxMHz == 0 || c.MHz < c.MaxMHz):
		return lowest
	case c.busy >= busy && c.LimitMHz > 0 && (float64(c.LimitMHz) < slowClock*kept || float64(c.LimitMHz) < most):
		return limited
	case c.MHz > 0 && float64(c.MHz) < most:
		return farBelow
	case c.busy >= full && c.MHz > 0 && float64(c.MHz) < slowClock*kept:
		return belowKept
	}
	return fast
}

// governor checks busy cores only. An idle core is rightly slow.
func governor(v *view) (o outcome) {
	if v.noCores(&o) {
		return o
	}
	by := map[slowness][]*core{}
	known, atWork := 0, 0
	for _, c := range v.cores {
		if c.Governor == "" && c.MaxMHz == 0 {
			continue
		}
		known++
		if c.busy >= working {
			atWork++
		}
		by[c.slow()] = append(by[c.slow()], c)
	}
	if known == 0 {
		return v.upToHost("cpus.governor")
	}
	// Under governor performance, one slow core is a moment's reading. All of them are a
	// clock that something holds back.
	if slow := len(by[farBelow]) + len(by[belowKept]); slow < atWork {
		for _, s := range []slowness{farBelow, belowKept} {
			by[s] = slices.DeleteFunc(by[s], func(c *core) bool { return c.Governor == "performance" })
		}
	}
	if slices.ContainsFunc(v.cores, func(c *core) bool { return c.busy >= working }) || v.received() == 0 {
		delete(by, crawling) // what is busy matters more, and where nothing comes nothing waits
	}
	quiet := float64(v.received()) < fewArrive*v.Seconds
	for _, s := range []slowness{lowest, limited, farBelow, belowKept, crawling} {
		if len(by[s]) > 0 {
			f := slowCores(s, by[s])
			if s == crawling && quiet {
				f.Severity = Notice // an idle router's clock is rightly low
			}
			o.add(f)
		}
	}
	return o
}

// atSpeed is the remedy if a governor chooses the clock.
var atSpeed = Remedy{Command: "cpupower frequency-set -g performance", Text: "keep cores at their speed"}

func slowCores(s slowness, cores []*core) Finding {
	first, are := cores[0], beVerb(len(cores))
	f := Finding{
		Severity: Warning, Subject: cpuNames(cores), core: -1, cores: idsOf(cores), bites: true,
		Evidence: clocks(cores), Remedies: []Remedy{atSpeed}, Expect: "the packet rate rises with the clock",
	}
	switch s {
	case lowest:
		f.Says = fmt.Sprintf("%s %s busy at the lowest clock: governor powersave of %s", f.Subject, are, cmp.Or(first.Scaling, "none"))
		return f
	case limited:
		f.Says = fmt.Sprintf("%s %s busy, and limited to %s of %s MHz", f.Subject, are, units.Thousands(first.LimitMHz), units.Thousands(first.MaxMHz))
		f.Remedies = []Remedy{{Command: fmt.Sprintf("cpupower frequency-set -u %dMHz", first.MaxMHz), Text: "lift the limit (scaling_max_freq); something set it, such as a power profile, tlp or thermald, and may set it again. The kernel itself does where the processor is hot: then look at cooling (/sys/class/thermal)"}}
		return f
	case crawling:
		f.bites = false
		f.Says = fmt.Sprintf("%s %s at %d of %s MHz until load lasts (governor %s): a packet that comes alone takes %d times as long", f.Subject, are, first.MHz, units.Thousands(first.MaxMHz), first.Governor, first.MaxMHz/first.MHz)
		f.Remedies = append(f.Remedies, Remedy{Command: fmt.Sprintf("cpupower frequency-set -d %dMHz", first.MaxMHz/2), Text: "or let the governor choose among the upper half (scaling_min_freq)"})
		f.Expect = "shorter and steadier delays; as many packets as before"
		return f
	case farBelow:
		f.Says = fmt.Sprintf("%s %s busy, and at less than %s of the fastest clock (%d of %s MHz, governor %s)", f.Subject, are, percent(slowTurbo), first.MHz, units.Thousands(first.MaxMHz), cmp.Or(first.Governor, "none"))
	default:
		f.Says = fmt.Sprintf("%s %s full, and at less than %s of the clock that all cores keep (%d of %s MHz, governor %s)", f.Subject, are, percent(slowClock), first.MHz, units.Thousands(first.keeps()), cmp.Or(first.Governor, "none"))
	}
	if !slices.ContainsFunc(cores, func(c *core) bool { return c.busy >= busy }) {
		f.Severity = Notice // with more room than that, a slow clock is what the governor should choose
	}
	if f.Remedies = append(f.Remedies, stuckClock); slices.ContainsFunc(cores, func(c *core) bool { return c.Governor == "performance" }) {
		f.Remedies = []Remedy{stuckClock} // no governor holds it back
	}
	return f
}

// stuckClock is the remedy if the governor is not what holds the clock back.
var stuckClock = Remedy{Command: "turbostat --interval 2", Text: "see Busy% and Bzy_MHz under load: if the clock stays low, look at heat, the power supply, the BIOS's power limits and its version; a cold start frees a clock that is stuck"}

// upToHost notes an input that a virtual machine does not have, and that others lack.
func (v *view) upToHost(what string) (o outcome) {
	if v.Host.Hypervisor {
		o.absent = "a virtual machine: only its host knows"
	} else {
		o.lacks(v, what)
	}
	return o
}

func clocks(cores []*core) (lines []string) {
	for _, c := range cores {
		line := fmt.Sprintf("%s: %d of %d MHz, governor %s, driver %s, %s busy", c.name(), c.MHz, c.MaxMHz, cmp.Or(c.Governor, "none"), cmp.Or(c.Scaling, "none"), percent(c.busy))
		if c.BaseMHz > 0 {
			line += fmt.Sprintf(", without turbo %d MHz", c.BaseMHz)
		}
		if c.LimitMHz > 0 && c.LimitMHz < c.MaxMHz {
			line += fmt.Sprintf(", limited to %d MHz", c.LimitMHz)
		}
		lines = append(lines, line)
	}
	return lines
}

func sleeps(v *view) (o outcome) {
	if v.Host.IdleStates == nil {
		return v.upToHost("host.idle_states")
	}
	s := v.deepest()
	if s == nil || s.ExitUsec < 100 {
		return o
	}
	o.add(Finding{
		Severity: Notice, core: -1,
		Says:     fmt.Sprintf("idle cores may sleep in %s, from which they wake after %d µs: the first packet after a pause waits, and a short ring may overflow", s.Name, s.ExitUsec),
		Evidence: []string{fmt.Sprintf("idle state %s: %d µs to wake up", s.Name, s.ExitUsec)},
		Remedies: []Remedy{{Command: "cpupower idle-set -D 50", Text: "switch off states that take longer than 50 µs; they save power, so only if RING-1 or delays ask for it"}},
		Expect:   "steadier delays at low load",
	})
	return o
}

func throttled(v *view) (o outcome) {
	if !v.sampled || v.After.Throttle == nil || v.Before.Throttle == nil {
		return v.upToHost("throttle")
	}
	var hot []int
	var sum uint64
	grade := Warning
	for _, id := range sortedKeys(v.After.Throttle) {
		n := Grown(v.After.Throttle[id], v.Before.Throttle[id])
		if n == 0 {
			continue
		}
		hot, sum = append(hot, id), sum+n
		grade = max(grade, v.severe(v.core(id)))
	}
	if len(hot) == 0 {
		return o
	}
	names := "cpu" + cpulist.Format(hot)
	f := Finding{
		Severity: grade, Subject: names, core: -1, cores: hot, weight: float64(sum), bites: true,
		Says:     fmt.Sprintf("%s was slowed down %d times in %s, by heat or by its power limit", names, sum, seconds(v.Seconds)),
		Evidence: []string{fmt.Sprintf("core_throttle_count of %s grew by %d", names, sum)},
		Remedies: []Remedy{{Command: fmt.Sprintf("grep . /sys/devices/system/cpu/cpu%d/thermal_throttle/*", hot[0]), Text: "see for how long; then check fans, dust, heat sink and the BIOS power limits"}},
		Expect:   "the clock stays constant",
	}
	if len(hot) > 1 {
		f.Says = fmt.Sprintf("%s were slowed down %d times in %s, by heat or by the power limit", plural(len(hot), "core"), sum, seconds(v.Seconds))
	}
	o.add(f)
	return o
}

// mitigations names them only if cores are full; otherwise their cost does not matter.
// They stay on unless the owner of the box decides otherwise.
func mitigations(v *view) (o outcome) {
	if len(v.fullCores()) == 0 {
		return o
	}
	var dear []string
	for _, name := range sortedKeys(v.Host.Mitigations) {
		if strings.HasPrefix(v.Host.Mitigations[name], "Mitigation") {
			dear = append(dear, name+": "+v.Host.Mitigations[name])
		}
	}
	if len(dear) == 0 {
		return o
	}
	o.add(Finding{
		Severity: Notice, core: -1,
		Says:     "a core is full, and mitigations of CPU vulnerabilities add to the cost of each packet",
		Evidence: dear,
		Remedies: []Remedy{{Command: "grep . /sys/devices/system/cpu/vulnerabilities/*", Text: "see them all; they protect against programs on this box; whether a router without untrusted programs needs them is for its owner to decide (mitigations= of the kernel's command line). XDP makes fewer of the calls that they slow down"}},
		Expect:   "up to a third more packets in the stack, less in XDP; measure with weir bench forward",
	})
	return o
}
