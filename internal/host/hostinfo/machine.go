package hostinfo

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"weir/internal/host/cpulist"
	"weir/internal/units"
)

// Machine describes the machine on which figures were measured.
type Machine struct {
	CPU          string            `json:"cpu"`
	Cores        int               `json:"cores"`
	Architecture string            `json:"architecture"`
	Kernel       string            `json:"kernel"`
	Memory       int               `json:"memory_mib"`
	Governor     string            `json:"governor"` // "none": the hardware, or the host, decides alone
	Hypervisor   bool              `json:"hypervisor"`
	Host         string            `json:"host,omitempty"` // the machine's name from its hypervisor or maker
	Mitigations  map[string]string `json:"mitigations"`    // by the CPU's vulnerabilities
	Conntrack    *Conntrack        `json:"conntrack,omitempty"`

	ThreadsPerCore int    `json:"threads_per_core,omitempty"`
	NUMANodes      int    `json:"numa_nodes,omitempty"`
	Turbo          string `json:"turbo,omitempty"`    // "on", "off"; "": unknown
	Isolated       string `json:"isolated,omitempty"` // cores that the scheduler does not use
	ClockSource    string `json:"clock_source,omitempty"`
	NICs           []NIC  `json:"nics,omitempty"`
}

// Describe reads what it can. What it cannot read is empty. It returns an error only for
// what every Linux has.
func Describe() (Machine, error) {
	m := Machine{
		Cores: runtime.NumCPU(), Architecture: runtime.GOARCH, CPU: "unknown", Governor: "none",
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
	m.readSys("/sys")
	if c, err := ReadConntrack(); err == nil {
		m.Conntrack = &c
	}
	return m, nil
}

// readSys reads the kernel's files about the hardware below sys.
func (m *Machine) readSys(sys string) {
	cpu := filepath.Join(sys, "devices/system/cpu")
	if governor := readText(filepath.Join(cpu, "cpu0/cpufreq/scaling_governor")); governor != "" {
		m.Governor = governor
	}
	m.Mitigations = mitigations(filepath.Join(cpu, "vulnerabilities"))
	m.ThreadsPerCore = countList(readText(filepath.Join(cpu, "cpu0/topology/thread_siblings_list")))
	m.NUMANodes = countList(readText(filepath.Join(sys, "devices/system/node/online")))
	m.Isolated = readText(filepath.Join(cpu, "isolated"))
	m.ClockSource = readText(filepath.Join(sys, "devices/system/clocksource/clocksource0/current_clocksource"))
	m.Turbo = turbo(cpu)
	dmi := filepath.Join(sys, "class/dmi/id")
	m.Host = strings.TrimSpace(readText(filepath.Join(dmi, "sys_vendor")) + " " + readText(filepath.Join(dmi, "product_name")))
	m.NICs = nics(sys)
}

// turbo reads the setting of the two drivers that have such a switch.
func turbo(cpu string) string {
	for file, words := range map[string]map[string]string{
		"intel_pstate/no_turbo": {"0": "on", "1": "off"},
		"cpufreq/boost":         {"1": "on", "0": "off"},
	} {
		if word := words[readText(filepath.Join(cpu, file))]; word != "" {
			return word
		}
	}
	return ""
}

// countList returns the number of cores in a list such as "0-3,8"; 0 if it is not a list.
func countList(list string) int {
	all, err := cpulist.Parse(list)
	if err != nil {
		return 0
	}
	return len(all)
}

// parseCPU returns the first core's name, and whether it is virtual. ARM has no name
// there, only the numbers of maker and part.
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

// mitigations returns the kernel's status of each CPU vulnerability, without those that
// do not affect it.
func mitigations(folder string) map[string]string {
	found := map[string]string{}
	files, err := filepath.Glob(filepath.Join(folder, "*"))
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

// String returns in one line what the figures depend on.
func (m Machine) String() string {
	kind := ""
	if m.Hypervisor {
		kind = " (virtual machine)"
	}
	text := fmt.Sprintf("%s%s, %s, %d MiB, Linux %s, governor %s", m.CPU, kind, units.Plural(m.Cores, "core"), m.Memory, m.Kernel, m.Governor)
	if len(m.Mitigations) > 0 {
		text += "; " + m.mitigationList()
	}
	if m.Conntrack != nil {
		text += fmt.Sprintf("; conntrack holds %s in %s buckets", units.Thousands(m.Conntrack.Max), units.Thousands(m.Conntrack.Buckets))
	}
	return text
}
