package kernels_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"weir/internal/testenv"
)

// modules are parts of the kernel that weir or its tests use and that a kernel
// may have as modules, built in or not at all.
var modules = []string{"veth", "tun", "8021q", "bridge", "macvlan", "wireguard", "ppp_async", "nf_tables", "nft_masq", "nf_conntrack", "nft_flow_offload"}

func TestModules(t *testing.T) {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		t.Fatal(err)
	}
	release := unix.ByteSliceToString(name.Release[:])
	folder := filepath.Join("/lib/modules", release)
	var known strings.Builder
	for _, file := range []string{"modules.dep", "modules.builtin"} {
		text, err := os.ReadFile(filepath.Join(folder, file))
		if err != nil {
			testenv.SkipOutside(t, "this kernel's modules are not described: %v", err)
		}
		known.Write(text)
	}
	for _, module := range modules {
		if !strings.Contains(known.String(), "/"+module+".ko") {
			t.Errorf("Linux %s has no module %s", release, module)
		}
	}
}

func TestFileSystems(t *testing.T) {
	text, err := os.ReadFile("/proc/filesystems")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "\tbpf\n") {
		t.Error("the kernel has no bpf file system")
	}
}
