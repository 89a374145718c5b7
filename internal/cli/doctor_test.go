package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/fw/daemon"
	"weir/internal/host/doctor"
	"weir/internal/testenv"
)

// interrupter interrupts after this much output.
type interrupter struct {
	bytes.Buffer
	verdicts  int // verdicts left
	interrupt func()
}

func (i *interrupter) Write(p []byte) (int, error) {
	if i.verdicts -= bytes.Count(p, []byte(`"verdict"`)); i.verdicts <= 0 {
		i.interrupt()
	}
	return i.Buffer.Write(p)
}

// TestWatchEnds checks that an interrupt ends doctor --watch silently, with the status of
// the last verdict.
func TestWatchEnds(t *testing.T) {
	testenv.NeedRoot(t)
	for _, verdicts := range []int{0, 1, 2} {
		ctx, stop := context.WithCancel(t.Context())
		out, said := &interrupter{verdicts: verdicts, interrupt: stop}, bytes.Buffer{}
		if verdicts == 0 {
			stop()
		}
		status := Run(ctx, &Env{Stdin: strings.NewReader(""), Stdout: out, Stderr: &said}, []string{"doctor", "--watch", "--json", "--interval", "200ms"})
		stop()
		var last doctor.Report
		count := 0
		for d := json.NewDecoder(&out.Buffer); ; count++ {
			if err := d.Decode(&last); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
		if count != verdicts || status != last.Status() || said.Len() > 0 {
			t.Errorf("%d verdicts, want %d; status %d, want %d; said %q", count, verdicts, status, last.Status(), said.String())
		}
	}
}

// TestExplainJSON checks that a check's page is printed as JSON, too, with what the check reads.
func TestExplainJSON(t *testing.T) {
	var out, said bytes.Buffer
	status := Run(t.Context(), &Env{Stdout: &out, Stderr: &said}, []string{"doctor", "--explain", "ct-1", "--json"})
	var c doctor.Explained
	if err := json.Unmarshal(out.Bytes(), &c); status != exitDone || err != nil || c.ID != "CT-1" || !slices.Contains(c.Reads, "log") || !strings.HasPrefix(c.Page, "# CT-1: ") {
		t.Errorf("status %d, %v, %q: %+v", status, err, said.String(), c)
	}
	if status := Run(t.Context(), &Env{Stdout: &out, Stderr: &said}, []string{"doctor", "--explain", "CT-99", "--json"}); status != exitUsage {
		t.Errorf("status %d", status)
	}
}

// TestFromEnds checks that an interrupt ends the reading of an endless pipe with the same
// status as the reading of this machine.
func TestFromEnds(t *testing.T) {
	testenv.NeedRoot(t)
	for _, command := range []string{"doctor", "affinity"} {
		in, keep := io.Pipe()
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(50*time.Millisecond, stop)
		var out, said, live bytes.Buffer
		status := Run(ctx, &Env{Stdin: in, Stdout: &out, Stderr: &said}, []string{command, "--from", "-"})
		want := Run(ctx, &Env{Stdin: in, Stdout: &out, Stderr: &live}, []string{command})
		if status != want || status == exitDone || out.Len() > 0 || !strings.Contains(said.String(), "interrupted") {
			t.Errorf("%s: status %d, %q; of this machine %d, %q; printed %q", command, status, said.String(), want, live.String(), out.String())
		}
		keep.Close() // ends what was left behind
	}
}

// TestPIDNamespace checks that doctor and affinity say why they do not see the kernel's
// threads. It runs itself in a PID namespace, as in a privileged container.
func TestPIDNamespace(t *testing.T) {
	testenv.NeedRoot(t)
	const inside = "WEIR_TEST_PID_NAMESPACE"
	if os.Getenv(inside) == "" {
		c := exec.Command(testenv.NeedProgram(t, "unshare"), "--pid", "--fork", "--mount-proc", os.Args[0], "-test.run", "^TestPIDNamespace$", "-test.v")
		c.Env = append(os.Environ(), inside+"=1")
		if out, err := c.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestPIDNamespace") {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	for _, command := range []string{"doctor", "affinity", "affinity auto --dry-run"} {
		var out, said bytes.Buffer
		Run(t.Context(), &Env{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &said}, append(strings.Fields(command), "--interval", "200ms"))
		if want := "this is a PID namespace, where the kernel's threads are not seen"; !strings.Contains(out.String(), want) {
			t.Errorf("weir %s does not say %q:\n%s%s", command, want, out.String(), said.String())
		}
	}
}

// TestRulesFile checks that doctor's remedies name the file that the daemon reads.
func TestRulesFile(t *testing.T) {
	if doctor.RulesFile != daemon.DefaultFile {
		t.Errorf("doctor names %s, the daemon reads %s", doctor.RulesFile, daemon.DefaultFile)
	}
}
