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

	"weir/internal/testenv"
)

// programTime is the longest that a program of a story may run.
const programTime = time.Minute

// Run runs a program in a host and returns its standard output; it must succeed.
func (b *Box) Run(host, program string, args ...string) string {
	b.Helper()
	out, err := b.Try(host, program, args...)
	if err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	return out
}

// Try runs a program in a host and returns its standard output.
func (b *Box) Try(host, program string, args ...string) (string, error) {
	b.Helper()
	testenv.NeedProgram(b, program)
	ctx, cancel := context.WithTimeout(b.Context(), programTime)
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

func (b *Box) start(host string, cmd *exec.Cmd) *Process {
	b.Helper()
	p := &Process{b: b, cmd: cmd, name: strings.Join(cmd.Args, " "), done: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &p.out, &p.out
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

// Kill ends the process at once, as SIGKILL does, and waits for its end.
func (p *Process) Kill() {
	p.cmd.Process.Kill() //nolint:errcheck // it may have ended by itself
	<-p.done
}

// Signal sends a signal.
func (p *Process) Signal(s syscall.Signal) {
	p.b.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.b.Fatalf("signal %s: %v", p.name, err)
	}
}

// Wait waits until the process ends and returns all it said; it must end with
// the given status within patience.
func (p *Process) Wait(patience time.Duration, status int) string {
	p.b.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		p.b.Fatalf("%s: still running after %v:\n%s", p.name, patience, p.out.String())
	}
	if got := p.cmd.ProcessState.ExitCode(); got != status {
		p.b.Fatalf("%s: exit status %d, want %d (%v):\n%s", p.name, got, status, p.err, p.out.String())
	}
	return p.out.String()
}

// Said is what the process has written so far.
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

// Listen starts a server in a host and waits until it listens on a port, TCP or
// UDP.
func (b *Box) Listen(host string, port uint16, program string, args ...string) *Process {
	b.Helper()
	p := b.Start(host, program, args...)
	b.Until(10*time.Second, fmt.Sprintf("%s listens on port %d", p.name, port), func() bool {
		return b.listens(host, port)
	})
	return p
}

// listens looks for a listening TCP or an unconnected UDP socket in the
// kernel's tables, because a connection would disturb the server.
func (b *Box) listens(host string, port uint16) bool {
	found := false
	err := b.Do(host, func() error {
		for _, table := range []string{"tcp", "tcp6", "udp", "udp6"} {
			text, err := os.ReadFile("/proc/thread-self/net/" + table)
			if err != nil {
				return err
			}
			found = found || tableListens(string(text), table[:3], port)
		}
		return nil
	})
	return err == nil && found
}

// tableListens reads /proc/net/tcp and udp: local address, remote address and
// state stand in columns 2 to 4; state 0A listens, 07 is an unconnected socket.
func tableListens(text, proto string, port uint16) bool {
	suffix := fmt.Sprintf(":%04X", port)
	want := map[string]string{"tcp": "0A", "udp": "07"}[proto]
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) > 3 && strings.HasSuffix(f[1], suffix) && f[3] == want {
			return true
		}
	}
	return false
}

// Until waits until something is so, for at most patience.
func (b *Box) Until(patience time.Duration, what string, so func() bool) {
	b.Helper()
	for deadline := time.Now().Add(patience); !so(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.Fatalf("not so after %v: %s", patience, what)
		}
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
