package bpfload

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"weir/internal/missing"
)

// The oldest kernel with TCX. script/lib/machine.sh and README.md name it too.
const kernelMajor, kernelMinor = 6, 6

// needed lists the capabilities that root may lack in a container. CAP_SYS_ADMIN includes
// CAP_BPF and CAP_PERFMON.
var needed = []struct {
	bit  uint
	name string
}{{unix.CAP_NET_ADMIN, "CAP_NET_ADMIN"}, {unix.CAP_SYS_ADMIN, "CAP_SYS_ADMIN"}}

// inContainer is the usual remedy.
const inContainer = "(in a container? it must be a privileged one)"

// Need says in one sentence what the kernel or this process lacks to load weir's
// programs. It changes nothing.
func Need() error {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return fmt.Errorf("ask for the kernel's release: %w", err)
	}
	if release := unix.ByteSliceToString(name.Release[:]); tooOld(release) {
		return missing.Errorf("weir needs Linux %d.%d or newer (TCX); this machine runs %s", kernelMajor, kernelMinor, release)
	}
	lacks, err := lacking()
	if err != nil {
		return err
	}
	if len(lacks) > 0 {
		return missing.Errorf("this root lacks %s %s", strings.Join(lacks, " and "), inContainer)
	}
	return tryProgram()
}

// tooOld compares a kernel's release with the oldest one. A release that it cannot parse
// passes.
func tooOld(release string) bool {
	var major, minor int
	if _, err := fmt.Sscanf(release, "%d.%d", &major, &minor); err != nil {
		return false
	}
	return major < kernelMajor || major == kernelMajor && minor < kernelMinor
}

func lacking() (names []string, err error) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return nil, fmt.Errorf("ask for this process's capabilities: %w", err)
	}
	for _, c := range needed {
		if data[c.bit/32].Effective>>(c.bit%32)&1 == 0 {
			names = append(names, c.name)
		}
	}
	return names, nil
}

// tryProgram loads the smallest program. Capabilities alone prove nothing: they do not
// count in a user namespace, and a container's system call filter may refuse the call.
func tryProgram() error {
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "weir_need", Type: ebpf.SchedCLS, Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
	})
	switch {
	case err == nil:
		return p.Close()
	case errors.Is(err, unix.ENOSYS), errors.Is(err, ebpf.ErrNotSupported):
		return missing.Errorf("this kernel has no BPF system call (CONFIG_BPF_SYSCALL)")
	case errors.Is(err, unix.EPERM):
		return missing.Errorf("the kernel refuses BPF programs to this root %s", inContainer)
	}
	return fmt.Errorf("try whether BPF programs load: %w", err)
}
