package lib

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/testenv"
)

// programTime is the longest time that a program of a story may run.
const programTime = time.Minute

// Run runs a program in a host and returns its standard output; it must succeed. A client of
// iperf3 tries again while its server is busy.
func (b *Box) Run(host, program string, args ...string) string {
	b.Helper()
	out, err := b.Try(host, program, args...)
	for tries := 1; err != nil && tries < 20 && strings.Contains(err.Error()+out, iperf3IsBusy); tries++ {
		time.Sleep(100 * time.Millisecond)
		out, err = b.Try(host, program, args...)
	}
	if err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	return out
}

// iperf3IsBusy is what an iperf3 server says that has not yet ended the test before: it does a moment
// after the client.
const iperf3IsBusy = "the server is busy running a test"

// Try runs a program in a host and returns its standard output.
func (b *Box) Try(host, program string, args ...string) (string, error) {
	b.Helper()
	testenv.NeedProgram(b, program)
	ctx, cancel := context.WithTimeout(b.Context(), Scaled(programTime))
	defer cancel()
	out, err := b.Lab.Run(ctx, host, program, args...)
	return string(out), err
}

// A Process runs beside the story.
type Process struct {
	b    *Box
	cmd  *exec.Cmd
	name string
	out  buffer
	done chan struct{}
	err  error
}

// Start starts a program in a host; it is killed with the story.
func (b *Box) Start(host, program string, args ...string) *Process {
	b.Helper()
	testenv.NeedProgram(b, program)
	return b.start(host, exec.Command(program, args...))
}

// StartHere starts a program outside of the lab; it is killed with the story.
func (b *Box) StartHere(cmd *exec.Cmd) *Process {
	b.Helper()
	return b.start("", cmd)
}

func (b *Box) start(host string, cmd *exec.Cmd) *Process {
	b.Helper()
	p := &Process{b: b, cmd: cmd, name: strings.Join(cmd.Args, " "), done: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &p.out, &p.out
	// Children that a program leaves behind keep its output open.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Second
	var err error
	if host == "" {
		err = cmd.Start()
	} else {
		err = b.Lab.Start(host, cmd)
	}
	if err != nil {
		b.Fatal(err)
	}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	b.Cleanup(p.Kill)
	return p
}

// Kill ends the process and its children at once, by SIGKILL, and waits for
// its end.
func (p *Process) Kill() {
	syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) //nolint:errcheck // it may have ended by itself
	<-p.done
}

// Signal sends a signal.
func (p *Process) Signal(s syscall.Signal) {
	p.b.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.b.Fatalf("signal %s: %v", p.name, err)
	}
}

// LimitFiles makes the kernel refuse the process more than a few new files, until the
// returned function is called. The limit applies to descriptor numbers, and free ones are
// between others.
func (p *Process) LimitFiles(few int) (lift func()) {
	p.b.Helper()
	pid := p.cmd.Process.Pid
	limit := uint64(0)
	for ; few > 0; limit++ {
		if _, err := os.Lstat(fmt.Sprintf("/proc/%d/fd/%d", pid, limit)); err != nil {
			few--
		}
	}
	var before unix.Rlimit
	set := func(limit, old *unix.Rlimit) {
		if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, limit, old); err != nil {
			p.b.Fatalf("limit the files of %s: %v", p.name, err)
		}
	}
	set(nil, &before)
	set(&unix.Rlimit{Cur: limit, Max: before.Max}, nil)
	return func() { set(&before, nil) }
}

// Interrupt is Ctrl-C at a terminal: SIGINT for the process and its children.
func (p *Process) Interrupt() {
	p.b.Helper()
	if err := syscall.Kill(-p.cmd.Process.Pid, syscall.SIGINT); err != nil {
		p.b.Fatalf("interrupt %s: %v", p.name, err)
	}
}

// Wait waits until the process ends and returns all its output. It must end with the
// given status within patience.
func (p *Process) Wait(patience time.Duration, status int) string {
	p.b.Helper()
	select {
	case <-p.done:
	case <-time.After(Scaled(patience)):
		p.b.Fatalf("%s: still running after %v:\n%s", p.name, Scaled(patience), p.out.String())
	}
	if got := p.cmd.ProcessState.ExitCode(); got != status {
		p.b.Fatalf("%s: exit status %d, want %d (%v):\n%s", p.name, got, status, p.err, p.out.String())
	}
	return p.out.String()
}

// PID returns the process's number.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Said returns the process's output so far.
func (p *Process) Said() string { return p.out.String() }

// Running reports whether the process has not ended yet.
func (p *Process) Running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// AwaitSaid waits until a running process has written a text. The process is mostly weir,
// which may wait for the kernel to verify programs.
func (b *Box) AwaitSaid(p *Process, text string) {
	b.Helper()
	b.Until(StartPatience, "it says "+text, func() bool {
		if !p.Running() {
			b.Fatalf("it ended before it said %q:\n%s", text, p.Said())
		}
		return strings.Contains(p.Said(), text)
	})
}

// Killed reports whether the process has ended by a signal.
func (p *Process) Killed() bool { return !p.Running() && p.cmd.ProcessState.ExitCode() == -1 }

// Listen starts a server in a host and waits until it listens on a port, TCP or
// UDP.
func (b *Box) Listen(host string, port uint16, program string, args ...string) *Process {
	b.Helper()
	p := b.Start(host, program, args...)
	ctx, cancel := context.WithTimeout(b.Context(), Scaled(10*time.Second))
	defer cancel()
	if err := b.AwaitListener(ctx, host, port); err != nil {
		b.Fatalf("%v; %s said:\n%s", err, p.name, p.Said())
	}
	return p
}

// ServeHello replies to each HTTP request at an IPv4 port of the host with "hello". It
// reads the request first: if its child ends before it has passed the request on, socat
// does not send the reply.
func (b *Box) ServeHello(host string, port uint16) {
	b.Helper()
	b.Listen(host, port, "socat", fmt.Sprintf("TCP4-LISTEN:%d,fork,reuseaddr", port),
		"SYSTEM:while read x; do test ${#x} -gt 1 || break; done; echo HTTP/1.0 200 OK; echo; echo hello")
}

// Until waits until so holds, for at most patience. If so runs programs, it is asked less
// often: what the story waits for needs the processor, too.
func (b *Box) Until(patience time.Duration, what string, so func() bool) {
	b.Helper()
	for deadline := time.Now().Add(Scaled(patience)); ; {
		asked := time.Now()
		if so() {
			return
		}
		if time.Now().After(deadline) {
			b.Fatalf("not so after %v: %s", Scaled(patience), what)
		}
		time.Sleep(min(max(50*time.Millisecond, time.Since(asked)), time.Second))
	}
}

// buffer is a bytes.Buffer that a process writes while a story reads.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
