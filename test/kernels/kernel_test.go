package kernels_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"weir/internal/testenv"
)

// modules are parts of the kernel that weir or its tests use and that a kernel
// may have as modules, built in or not at all.
var modules = []string{"veth", "tun", "8021q", "bridge", "macvlan", "wireguard", "ppp_async", "xfrm_interface", "esp4", "esp6", "nf_tables", "nft_masq", "nf_conntrack", "nft_flow_offload"}

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

// TestListedTestsExist checks that each name in tests.txt is a test of its package. The
// list would run fewer tests after a test got another name, and nobody would see it.
func TestListedTestsExist(t *testing.T) {
	root := testenv.Root(t)
	text, err := os.ReadFile(filepath.Join(root, "test", "kernels", "tests.txt"))
	if err != nil {
		t.Fatal(err)
	}
	packages := regexp.MustCompile(`^(\./\S+)\s`)
	names := regexp.MustCompile(`\^Test(?:\(([A-Za-z0-9|]+)\)|([A-Za-z0-9]+))\$`)
	parts := regexp.MustCompile(`\$/\./\^\(([A-Za-z0-9_|]+)\)\$`)
	listed, folder := 0, ""
	for line := range strings.Lines(string(text)) {
		if found := packages.FindStringSubmatch(line); found != nil {
			folder = found[1]
		}
		found := names.FindStringSubmatch(line)
		if found == nil {
			continue // a comment, or a whole package
		}
		files, err := filepath.Glob(filepath.Join(root, folder, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		var source strings.Builder
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			source.Write(text)
		}
		for name := range strings.SplitSeq(found[1]+found[2], "|") {
			listed++
			if !strings.Contains(source.String(), "\nfunc Test"+name+"(") {
				t.Errorf("%s has no Test%s", folder, name)
			}
		}
		if parts := parts.FindStringSubmatch(line); parts != nil {
			for name := range strings.SplitSeq(parts[1], "|") {
				if !strings.Contains(source.String(), `.Tell("`+strings.ReplaceAll(name, "_", " ")+`"`) {
					t.Errorf("%s has no story with a part %s", folder, name)
				}
			}
		}
	}
	if listed < 20 {
		t.Errorf("only %d tests are listed", listed)
	}
}
