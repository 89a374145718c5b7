package tree

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/testenv"
)

// TestInstall has make install put everything where it belongs: a weir that runs,
// a unit that starts that one, manual pages of all commands, examples.
func TestInstall(t *testing.T) {
	testenv.NeedProgram(t, "make")
	const prefix = "/opt/weir"
	dir := t.TempDir()
	install := exec.Command("make", "--no-print-directory", "-C", testenv.Root(t), "install", "DESTDIR="+dir, "PREFIX="+prefix)
	install.Env = append(os.Environ(), "MAKEFLAGS=", "MAKELEVEL=") // it is no part of the make that runs the tests
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("make install: %v\n%s", err, out)
	}
	installed := func(path string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(dir, prefix, path))
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
	if out, err := exec.Command(filepath.Join(dir, prefix, "bin", "weir"), "version").CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "weir ") {
		t.Errorf("the installed weir's version: %v, %s", err, out)
	}
	unit := installed("lib/systemd/system/weir.service")
	if !strings.Contains(unit, "\nExecStart="+prefix+"/bin/weir run --or-block\n") || strings.Contains(unit, "@PREFIX@") {
		t.Errorf("the installed unit is\n%s", unit)
	}
	if unit := installed("lib/systemd/system/weir-vpn.service"); !strings.Contains(unit, "\nExecStart="+prefix+"/bin/weir vpn run\n") {
		t.Errorf("the installed unit of tunnels is\n%s", unit)
	}
	for path, part := range map[string]string{
		"share/man/man8/weir.8":                  "firewall",
		"share/man/man8/weir-load.8":             "confirm",
		"share/bash-completion/completions/weir": "weir",
		"share/doc/weir/README.md":               "# weir",
		"share/doc/weir/examples/gateway.conf":   "block",
		"share/doc/weir/examples/authlogin":      "authpf_users",
		"share/doc/weir/packet-path.md":          "# The packet's way",
	} {
		if !strings.Contains(installed(path), part) {
			t.Errorf("%s has nothing like %q", path, part)
		}
	}
}
