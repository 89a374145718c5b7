package iperf

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"weir/internal/lab"
	"weir/internal/testenv"
)

// host makes a network namespace in which tests run iperf3, with its loopback as a pair.
func host(t *testing.T) (*Tool, *lab.Lab, Pair) {
	t.Helper()
	testenv.NeedRoot(t)
	testenv.NeedProgram(t, "iperf3")
	tool, err := Find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	o := lab.Options{Name: "weir-test-iperf", Topology: lab.Topology{Hosts: []lab.Host{{Name: "host"}}}}
	if _, err := lab.Remove(o.Name, o.Topology); err != nil {
		t.Fatal(err)
	}
	l, err := lab.Up(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if left, err := lab.Processes(o.Name, o.Topology); err != nil || len(left) > 0 {
			t.Errorf("left behind: processes %v, %v", left, err)
			for _, pid := range left {
				_ = syscall.Kill(pid, syscall.SIGKILL) // the test has failed already
			}
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	start := func(c *exec.Cmd) error { return l.Start("host", c) }
	return tool, l, Pair{Address: "127.0.0.1", Bind: "127.0.0.1", Client: start, Server: start,
		Await: func(ctx context.Context, port uint16) error { return l.AwaitListener(ctx, "host", port) }}
}

// files returns the number of files that this process has open.
func files(t *testing.T) int {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(open)
}

// TestRun runs the machine's own iperf3 on loopback: two loads at once, one of them with
// a rate.
func TestRun(t *testing.T) {
	tool, _, here := host(t)
	results, err := tool.Run(t.Context(),
		Load{Pair: here, Streams: 3, Time: time.Second, Congestion: "cubic"},
		Load{Pair: here, Streams: 2, Time: time.Second, Rate: 20e6})
	if err != nil {
		t.Fatal(err)
	}
	if r := results[0]; r.Streams != 3 || r.Rate < 100e6 || r.Congestion != "cubic" || r.Seconds < 0.9 || r.HostCPU <= 0 {
		t.Errorf("as fast as it goes: %+v", r)
	}
	if r := results[1]; r.Streams != 2 || r.Rate < 10e6 || r.Rate > 40e6 {
		t.Errorf("at 20 Mbit/s: %+v", r)
	}
}

// TestRunFails returns iperf3's error about an address that it does not have. [host]
// checks that no server is left.
func TestRunFails(t *testing.T) {
	tool, _, here := host(t)
	here.Bind = "192.0.2.77"
	_, err := tool.Run(t.Context(), Load{Pair: here, Streams: 1, Time: time.Second})
	var said *ToolError
	if !errors.As(err, &said) {
		t.Errorf("got %v, want what iperf3 says", err)
	}
}

// TestRunCanceled ends clients that still wait at the barrier.
func TestRunCanceled(t *testing.T) {
	tool, _, here := host(t)
	ctx, cancel := context.WithCancel(t.Context())
	second := here
	second.Client = func(*exec.Cmd) error {
		cancel()
		return errors.New("this host starts nothing")
	}
	begin := time.Now()
	_, err := tool.Run(ctx, Load{Pair: here, Streams: 1, Time: 30 * time.Second}, Load{Pair: second, Streams: 1, Time: 30 * time.Second})
	if err == nil || !strings.Contains(err.Error(), "this host starts nothing") || time.Since(begin) > 20*time.Second {
		t.Errorf("got %v after %v", err, time.Since(begin))
	}
}

// TestNothingStarts closes the barrier of a run in which no server could be started.
func TestNothingStarts(t *testing.T) {
	tool, _, here := host(t)
	here.Server = func(*exec.Cmd) error { return errors.New("this host starts nothing") }
	before := files(t)
	for range 10 {
		if _, err := tool.Run(t.Context(), Load{Pair: here, Streams: 1, Time: time.Second}); err == nil {
			t.Fatal("a run without a server succeeded")
		}
	}
	if after := files(t); after > before {
		t.Errorf("%d files are open after, %d before", after, before)
	}
}

// TestServerDiesWithItsShell: a server does not outlive its shell, whatever ends it.
// [host] checks that.
func TestServerDiesWithItsShell(t *testing.T) {
	tool, l, here := host(t)
	var shell *exec.Cmd
	here.Server = func(c *exec.Cmd) error { shell = c; return l.Start("host", c) }
	wait := here.Await
	here.Await = func(ctx context.Context, port uint16) error {
		err := wait(ctx, port)
		if err != nil {
			return err
		}
		if err := shell.Process.Kill(); err != nil {
			return err
		}
		for ctx.Err() == nil { // until nothing listens any more
			gone, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
			err := wait(gone, port)
			cancel()
			if err != nil {
				return errShellKilled
			}
		}
		return ctx.Err()
	}
	_, err := tool.Run(t.Context(), Load{Pair: here, Streams: 1, Time: time.Second})
	if !errors.Is(err, errShellKilled) {
		t.Errorf("got %v, want the server to end with its shell", err)
	}
}

var errShellKilled = errors.New("the shell was killed")

// TestArguments: a rate is that of each stream, and both directions can be measured.
func TestArguments(t *testing.T) {
	for _, test := range []struct {
		load Load
		want []string
	}{
		{Load{Pair: Pair{Address: "192.0.2.1"}, Streams: 4, Rate: 100e6, Reverse: true, Time: 2 * time.Second, Omit: time.Second, Interval: time.Second / 4},
			[]string{"-c 192.0.2.1", "-p 5201", "-P 4", "-b 25000000", "-R", "-t 2", "-O 1", "-i 0.25", "-J"}},
		{Load{Streams: 1, UDP: true, Rate: 1472e3, Length: 1472, Both: true}, []string{"-u", "-l 1472", "-b 1472000", "--bidir", "-t 1", "-i 0"}},
	} {
		got := strings.Join(test.load.arguments(test.load.Streams, 5201), " ") + " "
		for _, want := range test.want {
			if !strings.Contains(got, want+" ") && !strings.Contains(got, want+".00 ") {
				t.Errorf("%q is not in %q", want, got)
			}
		}
	}
}
