package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// Machine is what has to be known of a machine to judge its figures.
type Machine struct {
	CPU          string            `json:"cpu"`
	Cores        int               `json:"cores"`
	Architecture string            `json:"architecture"`
	Kernel       string            `json:"kernel"`
	Memory       int               `json:"memory_mib"`
	Governor     string            `json:"governor"` // "none": the machine, or its host, decides alone
	Hypervisor   bool              `json:"hypervisor"`
	Mitigations  map[string]string `json:"mitigations"` // of what the CPU is affected by
	Conntrack    *Conntrack        `json:"conntrack,omitempty"`
}

// describeMachine reads what can be read; what cannot is empty.
func describeMachine() (Machine, error) {
	m := Machine{
		Cores: runtime.NumCPU(), Architecture: runtime.GOARCH, CPU: "unknown", Governor: "none", Mitigations: mitigations(),
	}
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return m, fmt.Errorf("ask for the kernel's release: %w", err)
	}
	m.Kernel = unix.ByteSliceToString(name.Release[:])
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return m, fmt.Errorf("ask for the memory's size: %w", err)
	}
	m.Memory = int(info.Totalram * uint64(info.Unit) >> 20)
	cpuinfo, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return m, fmt.Errorf("read the CPU's name: %w", err)
	}
	m.CPU, m.Hypervisor = parseCPU(string(cpuinfo))
	if b, err := os.ReadFile("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"); err == nil {
		m.Governor = strings.TrimSpace(string(b))
	}
	if c, err := readConntrack(); err == nil {
		m.Conntrack = &c
	}
	return m, nil
}

// parseCPU finds the first core's name, and whether it is a virtual one. ARM
// has no name there, but the numbers of its maker and part.
func parseCPU(cpuinfo string) (name string, hypervisor bool) {
	values := map[string]string{}
	for line := range strings.Lines(cpuinfo) {
		key, value, found := strings.Cut(line, ":")
		key = strings.TrimSpace(key)
		if _, seen := values[key]; found && !seen {
			values[key] = strings.TrimSpace(value)
		}
	}
	for _, flag := range strings.Fields(values["flags"]) {
		hypervisor = hypervisor || flag == "hypervisor"
	}
	if name = values["model name"]; name != "" {
		return name + ", family " + values["cpu family"] + " model " + values["model"], hypervisor
	}
	if values["CPU part"] != "" {
		return "implementer " + values["CPU implementer"] + " part " + values["CPU part"], hypervisor
	}
	return "unknown", hypervisor
}

// mitigations are the kernel's answers to the CPU's faults; those that it does
// not have are left out.
func mitigations() map[string]string {
	found := map[string]string{}
	files, err := filepath.Glob("/sys/devices/system/cpu/vulnerabilities/*")
	if err != nil {
		return found
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if text := strings.TrimSpace(string(b)); err == nil && text != "Not affected" {
			found[filepath.Base(file)] = text
		}
	}
	return found
}
