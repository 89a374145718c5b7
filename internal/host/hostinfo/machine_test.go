package hostinfo

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseCPU(t *testing.T) {
	name, virtual := parseCPU("processor\t: 0\ncpu family\t: 6\nmodel\t\t: 85\nmodel name\t: Some CPU @ 2 GHz\nflags\t\t: fpu hypervisor\n\nprocessor\t: 1\nmodel name\t: Other\n")
	if name != "Some CPU @ 2 GHz, family 6 model 85" || !virtual {
		t.Errorf("%q, %v", name, virtual)
	}
	if name, virtual = parseCPU("processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n"); name != "implementer 0x41 part 0xd0c" || virtual {
		t.Errorf("%q, %v", name, virtual)
	}
}

func TestDescribe(t *testing.T) {
	m, err := Describe()
	if err != nil {
		t.Fatal(err)
	}
	if m.Cores < 1 || m.Memory < 1 || m.Kernel == "" || m.CPU == "" {
		t.Errorf("%+v", m)
	}
	if !strings.Contains(m.String(), m.Kernel) {
		t.Errorf("the line %q does not name the kernel", m)
	}
}

func TestCountList(t *testing.T) {
	for list, want := range map[string]int{"": 0, "0": 1, "0-3": 4, "0-1,8-9": 4, "0,4": 2, "x": 0} {
		if got := countList(list); got != want {
			t.Errorf("%q: %d, want %d", list, got, want)
		}
	}
}

// TestReadSys reads a machine with two threads per core, two nodes and one card.
func TestReadSys(t *testing.T) {
	sys := t.TempDir()
	for name, text := range map[string]string{
		"devices/system/cpu/cpu0/cpufreq/scaling_governor":            "powersave",
		"devices/system/cpu/cpu0/topology/thread_siblings_list":       "0,4",
		"devices/system/cpu/intel_pstate/no_turbo":                    "1",
		"devices/system/cpu/isolated":                                 "2-3",
		"devices/system/cpu/vulnerabilities/meltdown":                 "Not affected",
		"devices/system/cpu/vulnerabilities/spectre_v2":               "Mitigation: Retpolines",
		"devices/system/node/online":                                  "0-1",
		"devices/system/clocksource/clocksource0/current_clocksource": "tsc",
		"class/dmi/id/sys_vendor":                                     "QEMU",
		"class/dmi/id/product_name":                                   "Standard PC",
		"class/net/nocard0/mtu":                                       "1500",
		"class/net/card0/device/vendor":                               "0x8086",
		"class/net/card0/speed":                                       "10000",
		"class/net/card0/mtu":                                         "9000",
		"class/net/card0/queues/rx-0/rps_cpus":                        "0",
		"class/net/card0/queues/rx-1/rps_cpus":                        "0",
	} {
		file := filepath.Join(sys, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	m := Machine{Governor: "none", Hypervisor: true, CPU: "Some CPU", Cores: 8, Kernel: "6.18", Memory: 2048, Architecture: "amd64"}
	m.readSys(sys)
	want := Machine{Governor: "powersave", Hypervisor: true, CPU: "Some CPU", Cores: 8, Kernel: "6.18", Memory: 2048, Architecture: "amd64",
		Host: "QEMU Standard PC", Mitigations: map[string]string{"spectre_v2": "Mitigation: Retpolines"}, ThreadsPerCore: 2, NUMANodes: 2,
		Turbo: "off", Isolated: "2-3", ClockSource: "tsc", NICs: []NIC{{Name: "card0", Mbit: 10000, MTU: 9000, Queues: 2}}}
	if diff := cmp.Diff(want, m); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var b strings.Builder
	for _, f := range m.Facts() {
		b.WriteString(f.Name + ": " + f.Value + "\n")
	}
	for _, want := range []string{"cores: 8, 2 threads to each core's units, 2 NUMA nodes\n", "governor: powersave, turbo off\n",
		"virtual: a virtual machine: QEMU Standard PC\n", "card0: , 10,000 Mbit/s, 2 queues, MTU 9000\n", "mitigations: spectre_v2: Mitigation: Retpolines\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}
