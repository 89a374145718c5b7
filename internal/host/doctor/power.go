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

// slowClock is the share of the fastest clock below which a governor is likely the cause,
// rather than turbo. With all cores at work, processors run at little more than half of
// their fastest clock.
const slowClock = 0.5

// governor checks busy cores only. An idle core is rightly slow.
func governor(v *view) (o outcome) {
	if v.noCores(&o) {
		return o
	}
	known := 0
	var slow, pinned []*core
	for _, c := range v.cores {
		if c.Governor == "" && c.MaxMHz == 0 {
			continue
		}
		known++
		if c.busy < working {
			continue
		}
		switch {
		case c.Governor == "powersave" && !ownPace[c.Scaling]:
			pinned = append(pinned, c)
		case c.MHz > 0 && c.MaxMHz > 0 && float64(c.MHz) < slowClock*float64(c.MaxMHz):
			slow = append(slow, c)
		}
	}
	if known == 0 {
		return v.upToHost("cpus.governor")
	}
	// Under governor performance, one slow core is a moment's reading. All of them are a
	// clock that something holds back.
	working := slices.DeleteFunc(slices.Clone(v.cores), func(c *core) bool { return c.busy < working })
	if len(slow) < len(working) {
		slow = slices.DeleteFunc(slow, func(c *core) bool { return c.Governor == "performance" })
	}
	remedy := Remedy{Command: "cpupower frequency-set -g performance", Text: "keep cores at their speed"}
	if len(pinned) > 0 {
		o.add(Finding{
			Severity: Warning, Subject: cpuNames(pinned), core: -1, cores: idsOf(pinned), bites: true,
			Says:     fmt.Sprintf("%s %s busy at the lowest clock: governor powersave of %s", cpuNames(pinned), beVerb(len(pinned)), cmp.Or(pinned[0].Scaling, "none")),
			Evidence: clocks(pinned), Remedies: []Remedy{remedy}, Expect: "the packet rate rises with the clock",
		})
	}
	if len(slow) > 0 {
		grade := Notice
		if slices.ContainsFunc(slow, func(c *core) bool { return c.busy >= busy }) {
			grade = Warning // with more room than that, a slow clock is what the governor should choose
		}
		remedies := []Remedy{remedy, stuckClock}
		if slices.ContainsFunc(slow, func(c *core) bool { return c.Governor == "performance" }) {
			remedies = []Remedy{stuckClock} // no governor holds it back
		}
		o.add(Finding{
			Severity: grade, Subject: cpuNames(slow), core: -1, cores: idsOf(slow), bites: true,
			Says:     fmt.Sprintf("%s %s busy, and at less than %s of the fastest clock (%d of %s MHz, governor %s)", cpuNames(slow), beVerb(len(slow)), percent(slowClock), slow[0].MHz, units.Thousands(slow[0].MaxMHz), cmp.Or(slow[0].Governor, "none")),
			Evidence: clocks(slow), Remedies: remedies, Expect: "the packet rate rises with the clock",
		})
	}
	return o
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
		lines = append(lines, fmt.Sprintf("%s: %d of %d MHz, governor %s, driver %s, %s busy", c.name(), c.MHz, c.MaxMHz, cmp.Or(c.Governor, "none"), cmp.Or(c.Scaling, "none"), percent(c.busy)))
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
