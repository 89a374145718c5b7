package test

import (
	"errors"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"weir/internal/testenv"
)

//	lan ══ one queue of two ══> fw ═══════════> wan
//	generator on one core       nft, received by another core
//
// More comes than one core carries: doctor names the core and the queue, and weir
// affinity auto has the stack spread the queue's flows. What that is worth is
// measured by weir bench affinity with more and longer runs, on a quiet machine.
func TestOneFullCore(t *testing.T) {
	testenv.NeedRoot(t)
	if runtime.NumCPU() < 2 {
		testenv.SkipOutside(t, "the generator needs a core of its own")
	}
	file := filepath.Join(t.TempDir(), "report.json")
	cmd := exec.CommandContext(t.Context(), string(weir), "bench", "affinity", "--runs", "1", "--seconds", "0.5", "--json", file)
	said, err := cmd.CombinedOutput()
	var status *exec.ExitError
	if errors.As(err, &status) && status.ExitCode() == 1 {
		err = nil // the control's: one run proves nothing
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	notes := strings.Join(readReport(t, file).Notes, "\n")
	for _, part := range []string{"is full of receiving in threads", "queue 0 of lan0 carries 100 % of the packets", "lan0:0/rps = "} {
		if !strings.Contains(notes, part) {
			t.Errorf("%q is missing:\n%s\n%s", part, notes, said)
		}
	}
}
