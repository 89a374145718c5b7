package test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"weir/internal/killpoint"
	"weir/internal/lab"
	"weir/internal/testenv"
	"weir/test/lib"
)

// unfinished is what strace writes if another thread's call comes before a call returns.
const unfinished = "<unfinished ...>"

// succeeded is the end of the line of a call that changed something.
var succeeded = regexp.MustCompile(` = \d+$`)

// changes are the system calls with which weir changes what outlives it.
var changes = regexp.MustCompile(`^\d+ +(bpf\(BPF_(OBJ_PIN|LINK_CREATE|LINK_UPDATE|LINK_DETACH)\b.*` +
	`|(renameat2?|unlink(at)?|mkdirat|mount|umount2)\(.*|openat\(.*"/proc/sys/.*O_WRONLY.*)( = \d+| <unfinished \.\.\.>)$`)

//	fw: strace weir run, strace weir stop
//
// The steps at which other tests kill weir cover every change to the kernel: strace sees
// a step between any two changes.
func TestEveryChangeIsAStep(t *testing.T) {
	t.Parallel()
	testenv.NeedProgram(t, "strace")
	b := weir.Box(t, "tcx")
	list, rules := filepath.Join(t.TempDir(), "steps"), b.Rules(onlyPing)
	if err := os.WriteFile(list, []byte("0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	traced := func(name string, args ...string) (*lib.Process, string) {
		out := filepath.Join(t.TempDir(), name)
		strace := []string{"-f", "--seccomp-bpf", "-o", out, "-E", killpoint.Variable + "=" + list,
			"-e", "trace=bpf,renameat,renameat2,unlink,unlinkat,mkdirat,mount,umount2,openat",
			string(weir), "--netns", b.Namespace(lab.FW)}
		return b.StartHere(exec.Command("strace", append(strace, args...)...)), out
	}
	run, ran := traced("run", "run", "--hook", "tcx", "-f", rules)
	b.Until(lib.StartPatience, "weir run is ready", func() bool { return strings.Contains(run.Said(), "weir: ready") })
	stop, stopped := traced("stop", "stop")
	stop.Wait(lib.StartPatience, 0)
	run.Wait(lib.StartPatience, 0)
	for _, trace := range []string{ran, stopped} {
		f, err := os.Open(trace)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		before, seen := "", 0
		begun := make(map[string]string) // by thread: the call that has not returned yet
		for lines := bufio.NewScanner(f); lines.Scan(); {
			line := lines.Text()
			thread, _, _ := strings.Cut(line, " ")
			if strings.Contains(line, " resumed>") && begun[thread] != "" {
				if !succeeded.MatchString(line) {
					begun[thread] = ""
					continue
				}
				line, begun[thread] = begun[thread], ""
			} else if strings.HasSuffix(line, unfinished) && changes.MatchString(line) {
				begun[thread] = line
				continue
			}
			switch {
			case strings.Contains(line, list):
				before = ""
			case changes.MatchString(line):
				if before != "" {
					t.Errorf("no step between\n%s\n%s", before, line)
				}
				before = line
				seen++
			}
		}
		if seen < 10 {
			t.Errorf("strace saw %d changes", seen)
		}
	}
}
