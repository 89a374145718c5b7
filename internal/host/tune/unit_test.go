package tune

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/testenv"
)

// TestUnitVerified checks that systemd reads the unit without a message. It would name
// anything that it does not know.
func TestUnitVerified(t *testing.T) {
	analyze := testenv.NeedProgram(t, "systemd-analyze")
	verify := func(text string) string {
		file := filepath.Join(t.TempDir(), filepath.Base(unitFile))
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(analyze, "--man=no", "verify", file).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	text := unitText("/bin/true")
	if out := verify(text); out != "" {
		t.Errorf("systemd: %s", out)
	}
	if out := verify(strings.Replace(text, "Type=", "Tpe=", 1)); !strings.Contains(out, "Tpe") {
		t.Errorf("a fault goes by: %q", out)
	}
}
