package test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/lab"
	"weir/internal/testenv"
)

//	lan ══ one queue of two ══> fw ═══════════> wan
//	generator on one core       nft, received by another core
//
// All packets come by one queue. weir affinity auto makes the stack spread its flows, and
// revert restores that. weir bench affinity measures that a core is full of them, as
// doctor then says, and what spreading is worth. It needs more and longer runs on a quiet
// machine; here other programs may fill the cores.
func TestOneFullQueue(t *testing.T) {
	testenv.NeedRoot(t)
	testenv.NeedKernelThreads(t)
	if runtime.NumCPU() < 2 {
		testenv.SkipOutside(t, "the generator needs a core of its own")
	}
	file := filepath.Join(t.TempDir(), "report.json")
	said, err := measureAffinity(t, file)
	if _, missing := os.Stat(file); missing != nil { // else the control failed: one run proves nothing
		t.Fatalf("%v\n%s", err, said)
	}
	notes := strings.Join(readReport(t, file).Notes, "\n")
	for _, part := range []string{"weir doctor, before: ", "lan0:0/rps = 0-"} {
		if !strings.Contains(notes, part) {
			t.Errorf("%q is missing:\n%s\n%s", part, notes, said)
		}
	}
}

// measureAffinity waits a while until another benchmark of the machine, which it would
// disturb, has ended.
func measureAffinity(t *testing.T, file string) (said []byte, err error) {
	t.Helper()
	for range 15 {
		cmd := exec.CommandContext(t.Context(), string(weir), "bench", "affinity", "--runs", "1", "--seconds", "0.5", "--json", file)
		said, err = cmd.CombinedOutput()
		if err == nil || !bytes.Contains(said, []byte("another benchmark is running")) {
			return said, err
		}
		time.Sleep(2 * time.Second)
	}
	testenv.Skip(t, "%s", said)
	return nil, nil
}

// The reader of a trial's output may go away before the trial ends, as an ssh session
// without a terminal does. Everything is then put back, and the exit status says so.
// Nothing is tried if nobody is told.
func TestTrialUnread(t *testing.T) {
	t.Parallel()
	b := weir.Box(t, "tcx")
	for _, heard := range []bool{true, false} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		cmd := exec.CommandContext(t.Context(), string(weir), "--netns", b.Namespace(lab.FW), "affinity", "set", "lan0:0/rps=0", "--confirm", "2s")
		cmd.Stdout, cmd.Stderr = w, w
		if !heard {
			r.Close()
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if heard {
			if line, err := bufio.NewReader(r).ReadString('\n'); err != nil || !strings.Contains(line, "type weir affinity confirm") {
				t.Errorf("%q, %v", line, err)
			}
			r.Close()
		}
		if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 1 {
			t.Errorf("heard: %t: %v", heard, err)
		}
		if said := b.Weir("affinity", "revert"); !strings.Contains(said, "nothing to undo") {
			t.Errorf("heard: %t: %s", heard, said)
		}
	}
}

// set, confirm and revert print what they did as data.
func TestAffinityJSON(t *testing.T) {
	t.Parallel()
	b := weir.Box(t, "tcx")
	type entry struct{ Key, To string }
	command := func(args ...string) *exec.Cmd {
		return exec.CommandContext(t.Context(), string(weir), append([]string{"--netns", b.Namespace(lab.FW), "affinity"}, args...)...)
	}
	parse := func(said []byte, want ...entry) {
		t.Helper()
		var got []entry
		if err := json.Unmarshal(said, &got); err != nil || got == nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", said, err, want)
		}
	}
	run := func(args ...string) []byte {
		t.Helper()
		said, err := command(append(args, "--json")...).Output()
		if err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		return said
	}
	set, before := entry{"lan0:0/rps", "0"}, entry{"lan0:0/rps", ""}
	parse(run("set", "lan0:0/rps=0", "--dry-run"), set)
	parse(run("set", "lan0:0/rps=0"), set)
	parse(run("revert"), before)
	parse(run("revert"))

	trial := command("set", "lan0:0/rps=0", "--json", "--confirm", "30s")
	var kept bytes.Buffer
	trial.Stdout = &kept
	told, err := trial.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := trial.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(told).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	// The line comes before the change, so that nothing is changed if it cannot be written.
	var confirmed []byte
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if confirmed, err = command("confirm", "--json").Output(); err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("confirm: %v", err)
		}
	}
	if err := trial.Wait(); err != nil {
		t.Fatal(err)
	}
	parse(kept.Bytes(), set)
	if !bytes.Contains(confirmed, []byte(set.Key)) {
		t.Errorf("confirm: %s", confirmed)
	}
	parse(run("revert"), before)
}
