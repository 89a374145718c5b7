package bench

import (
	"strings"
	"testing"
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

func TestDescribeMachine(t *testing.T) {
	m, err := describeMachine()
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
