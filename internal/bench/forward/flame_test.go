package forward

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/bench/cpu"
	"weir/internal/bench/report"
	"weir/internal/testenv"
)

// perf samples a core on which this process keeps the kernel busy for a while.
func TestProfiler(t *testing.T) {
	testenv.NeedRoot(t)
	if _, err := exec.LookPath("perf"); err != nil {
		testenv.SkipOutside(t, "needs perf, which is of a kernel's release")
	}
	cores, err := cpu.Available()
	if err != nil {
		t.Fatal(err)
	}
	p := &profiler{file: filepath.Join(t.TempDir(), "perf.data")}
	if err := p.start(cores[0]); err != nil {
		t.Fatal(err)
	}
	for range cores {
		go keepKernelBusy(time.Second)
	}
	time.Sleep(time.Second)
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	samples := 0
	for _, s := range p.found {
		samples += s.Count
	}
	if samples < 100 {
		t.Errorf("%d samples in a second of work: %+v; perf said %q", samples, p.found, p.said.String())
	}
	if _, err := os.Stat(p.file); !os.IsNotExist(err) {
		t.Errorf("perf's file is left: %v", err)
	}
}

// keepKernelBusy lets the kernel clear memory for that long. All samples are then in the
// kernel.
func keepKernelBusy(span time.Duration) {
	zero, err := os.Open("/dev/zero")
	if err != nil {
		return // perf then finds nothing, and the test fails
	}
	defer zero.Close()
	buffer := make([]byte, 1<<20)
	for end := time.Now().Add(span); time.Now().Before(end); {
		if _, err := zero.Read(buffer); err != nil {
			return
		}
	}
}

// No process, temporary file or file descriptor is left if perf cannot be started, ends
// without an answer, or is gone before it is told to stop.
func TestProfilerFailure(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	perf, file := filepath.Join(dir, "perf"), filepath.Join(dir, "perf.data")
	for name, script := range map[string]string{
		"no perf":     "",
		"no answer":   "#!/bin/sh\n: > " + file + "\n",
		"gone before": "#!/bin/sh\n: > " + file + "\nread order <&3\necho ack >&4\n",
	} {
		if err := os.WriteFile(perf, []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
		before := openFiles(t)
		p := &profiler{file: file}
		err := p.start(0)
		if name == "gone before" {
			if err != nil {
				t.Fatal(err)
			}
			_, _ = p.cmd.Process.Wait() // as if it had been reaped already
			err = p.stop()
		}
		if err == nil {
			t.Errorf("%s: no error", name)
		}
		if after := openFiles(t); after != before {
			t.Errorf("%s: %d files are open, %d were before", name, after, before)
		}
		if _, err := os.Stat(file); !os.IsNotExist(err) {
			t.Errorf("%s: perf's file is left: %v", name, err)
		}
		if p.cmd != nil && p.cmd.Process != nil && p.cmd.Process.Signal(syscall.Signal(0)) == nil {
			t.Errorf("%s: perf runs on", name)
		}
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func TestFold(t *testing.T) {
	got := fold(`weir   4711 
	ffffffff81000010 bpf_prog_0123456789abcdef_weir_xdp
	ffffffff81000000 veth_poll

weir   4711 
	ffffffff81000014 bpf_prog_0123456789abcdef_weir_xdp
	ffffffff81000000 veth_poll

weir   4711 
	            7f10 [unknown]
	ffffffff81000014 bpf_prog_0123456789abcdef_weir_xdp
	            7f00 [unknown]
	ffffffff81000000 veth_poll

swapper     0 
	ffffffff82000000 [unknown]

a shell   815 
	ffffffff83000000 bpf_check

a shell   815 
	ffffffff83000000 do_exit

`, 4711)
	want := []report.Stack{{Frames: []string{"other programs"}, Count: 2}, {Frames: []string{"swapper"}, Count: 1}, {Frames: []string{"weir", "veth_poll", "bpf: weir_xdp"}, Count: 3}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
