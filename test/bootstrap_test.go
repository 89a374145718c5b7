package test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"weir/internal/testenv"
)

// shell runs lines with the functions of script/bootstrap. The file that packages ask
// before they start services is $1 here.
func shell(t *testing.T, policy, lines string) {
	t.Helper()
	const libraries = `set -eu; me=bootstrap; . script/lib/say.sh; . script/lib/packages.sh; service_policy=$1; `
	cmd := exec.Command("sh", "-c", libraries+lines, "bootstrap", policy)
	cmd.Dir = testenv.Root(t)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", lines, err, out)
	}
}

// TestServicePolicy: the file that keeps packages from starting services is removed when
// the script ends, or at the next run if it was killed. The machine's own file stays, and
// so does that of a running script.
func TestServicePolicy(t *testing.T) {
	policy := filepath.Join(t.TempDir(), "policy-rc.d")
	there := func() bool {
		_, err := os.Stat(policy)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		return err == nil
	}
	if shell(t, policy, "forbid_services; allow_services"); there() {
		t.Error("the file outlives its use")
	}
	if shell(t, policy, "forbid_services; remove_left_policy; [ -e $service_policy ]"); !there() {
		t.Error("the file of a script at work is taken away")
	}
	if out, err := exec.Command("sh", policy).CombinedOutput(); err == nil || cmdStatus(err) != 101 {
		t.Errorf("the file does not forbid services: %v %s", err, out)
	}
	if shell(t, policy, "remove_left_policy"); there() { // its maker has ended
		t.Error("the file of a killed run stays")
	}
	own := fmt.Sprintf("#!/bin/sh\n# process %d\nexit 101\n", 1<<22)
	if err := os.WriteFile(policy, []byte(own), 0o600); err != nil {
		t.Fatal(err)
	}
	if shell(t, policy, "forbid_services; allow_services; remove_left_policy"); !there() {
		t.Error("the machine's own file is taken away")
	}
}

func cmdStatus(err error) int {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	return -1
}
