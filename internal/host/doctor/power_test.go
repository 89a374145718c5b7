package doctor

import (
	"strings"
	"testing"
)

// TestSlowClock checks which clock is a cause, by driver, governor and load.
func TestSlowClock(t *testing.T) {
	for _, c := range []struct {
		name         string
		cpu          CPU
		busy         float64
		says, remedy string // "": no finding
	}{
		{"a turbo that is not reached by all", CPU{Governor: "performance", Scaling: "intel_pstate", MHz: 2600, MaxMHz: 3900, BaseMHz: 2100}, 98, "", ""},
		{"below what all cores keep", CPU{Governor: "powersave", Scaling: "intel_pstate", MHz: 1500, MaxMHz: 2600, BaseMHz: 2000}, 97, "less than 80 % of the clock that all cores keep (1500 of 2,000 MHz", "cpupower frequency-set -g performance"},
		{"the same, without its base", CPU{Governor: "powersave", Scaling: "intel_pstate", MHz: 1500, MaxMHz: 2600}, 97, "", ""},
		{"the same, with room", CPU{Governor: "powersave", Scaling: "intel_pstate", MHz: 1500, MaxMHz: 2600, BaseMHz: 2000}, 84, "", ""},
		{"a driver without turbo", CPU{Governor: "ondemand", Scaling: "cpufreq-dt", MHz: 1200, MaxMHz: 1800}, 95, "(1200 of 1,800 MHz", "cpupower frequency-set -g performance"},
		{"nearly its clock", CPU{Governor: "ondemand", Scaling: "cpufreq-dt", MHz: 1512, MaxMHz: 1800}, 99, "", ""},
		{"what schedutil aims at", CPU{Governor: "schedutil", Scaling: "cpufreq-dt", MHz: 1200, MaxMHz: 1800}, 80, "", ""},
		{"a boost of acpi-cpufreq", CPU{Governor: "schedutil", Scaling: "acpi-cpufreq", MHz: 2250, MaxMHz: 3400, BaseMHz: 2250}, 97, "", ""},
		{"acpi-cpufreq without turbo", CPU{Governor: "schedutil", Scaling: "acpi-cpufreq", MHz: 1800, MaxMHz: 3400}, 97, "(1800 of 3,400 MHz", "cpupower"},
		{"a laptop's processor above its base", CPU{Governor: "powersave", Scaling: "intel_pstate", MHz: 2000, MaxMHz: 5000, BaseMHz: 1700}, 97, "", ""},
		{"far below", CPU{Governor: "schedutil", Scaling: "acpi-cpufreq", MHz: 800, MaxMHz: 3400}, 70, "less than 50 % of the fastest clock", "cpupower"},
		{"nothing but heat or power", CPU{Governor: "performance", Scaling: "amd-pstate-epp", MHz: 1600, MaxMHz: 4400, BaseMHz: 3400}, 97, "less than 50 %", "turbostat"},
		{"performance, below its base", CPU{Governor: "performance", Scaling: "amd-pstate-epp", MHz: 2400, MaxMHz: 4400, BaseMHz: 3400}, 97, "all cores keep (2400 of 3,400 MHz", "turbostat"},
		{"a limit", CPU{Governor: "performance", Scaling: "intel_pstate", MHz: 1200, MaxMHz: 3400, BaseMHz: 2400, LimitMHz: 1200}, 85, "limited to 1,200 of 3,400 MHz", "cpupower frequency-set -u 3400MHz"},
		{"a limit that takes the turbo", CPU{Governor: "performance", Scaling: "intel_pstate", MHz: 2400, MaxMHz: 3400, BaseMHz: 2400, LimitMHz: 2400}, 97, "", ""},
		{"a limit below a laptop's base", CPU{Governor: "performance", Scaling: "intel_pstate", MHz: 1500, MaxMHz: 5000, BaseMHz: 1700, LimitMHz: 1500}, 97, "limited to 1,500 of 5,000 MHz", "cpupower frequency-set -u 5000MHz"},
		{"a limit on an idle box", CPU{Governor: "powersave", Scaling: "intel_pstate", MHz: 800, MaxMHz: 3400, BaseMHz: 2400, LimitMHz: 800}, 12, "", ""},
		{"a core with room that crawls", CPU{Governor: "ondemand", Scaling: "cpufreq-dt", MHz: 48, MaxMHz: 716}, 12, "takes 14 times as long", "cpupower frequency-set -g performance"},
		{"a core with room, slow", CPU{Governor: "ondemand", Scaling: "cpufreq-dt", MHz: 408, MaxMHz: 1416}, 12, "", ""},
		{"a processor that chooses by itself", CPU{Governor: "schedutil", Scaling: "intel_cpufreq", MHz: 400, MaxMHz: 4700, BaseMHz: 2100}, 12, "", ""},
		{"the lowest", CPU{Governor: "powersave", Scaling: "acpi-cpufreq", MHz: 1200, MaxMHz: 2400}, 70, "at the lowest clock", "cpupower frequency-set -g performance"},
		{"only one clock", CPU{Governor: "powersave", Scaling: "acpi-cpufreq", MHz: 2400, MaxMHz: 2400}, 97, "", ""},
	} {
		b := forwarding(4, c.busy-2)
		for i := range b.s.CPUs {
			p := &b.s.CPUs[i]
			p.Governor, p.Scaling, p.MHz, p.MaxMHz, p.BaseMHz, p.LimitMHz = c.cpu.Governor, c.cpu.Scaling, c.cpu.MHz, c.cpu.MaxMHz, c.cpu.BaseMHz, c.cpu.LimitMHz
		}
		r, err := Examine(b.s, nil)
		if err != nil {
			t.Fatal(err)
		}
		f := findingOf(r, "PWR-1")
		switch {
		case (f != nil) != (c.says != ""):
			t.Errorf("%s: %+v", c.name, f)
		case f != nil && (!strings.Contains(f.Says, c.says) || !strings.HasPrefix(f.Remedies[0].Command, c.remedy)):
			t.Errorf("%s: %s; %+v", c.name, f.Says, f.Remedies)
		case f != nil && c.busy >= 100*full && r.Verdict.Check != "PWR-1":
			t.Errorf("%s: the verdict is %s", c.name, r.Verdict.Sentence)
		}
	}
}
