package iperf

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"weir/internal/missing"
)

const (
	firstPort = 5201
	// serverStart is how long a server may take until it listens.
	serverStart = 30 * time.Second
	// slack is how long a test may take beyond its time, to connect, end and exchange
	// results.
	slack = 20 * time.Second
	// connectPatience is how long a client tries to connect.
	connectPatience = 5 * time.Second
)

// Pair is a client's host and a server's host. Each is in a network namespace that
// nothing else uses, because servers take its ports from 5201 on.
type Pair struct {
	Address string // the server's address, as the client knows it
	Bind    string // the client's own address; "": the route chooses
	// Client and Server start a program on their host.
	Client, Server func(*exec.Cmd) error
	// Await waits until the server's host listens on a TCP port.
	Await func(ctx context.Context, port uint16) error
}

// Load is the traffic of a pair in a run.
type Load struct {
	Pair    Pair
	Streams int           // connections
	Time    time.Duration // length of the traffic in whole seconds, at least one
	Omit    time.Duration // beginning that does not count, in whole seconds
	Rate    float64       // bits per second of all streams together; 0: no limit
	UDP     bool
	Length  int  // bytes of a datagram or a write; 0: iperf3's default
	Reverse bool // the server sends
	Both    bool // both ends send at the same time
	// Interval is the length of the parts that [Series] returns. 0 means one part.
	Interval time.Duration
	// Congestion is TCP's congestion control. "" means the system's.
	Congestion string
	// Begun is called when the clients of all loads are released. It may be nil.
	Begun func()
}

// Run runs all loads at the same time. Every client waits, connected to nothing, until
// all servers listen, and then all begin together. It returns one result for each load,
// in their order.
func (t *Tool) Run(ctx context.Context, loads ...Load) (results []*Result, err error) {
	r := &run{tool: t, cores: runtime.NumCPU()}
	defer func() { err = errors.Join(err, r.close()) }()
	if err := r.prepare(ctx, loads); err != nil {
		return nil, err
	}
	r.barrier.release()
	for _, l := range loads {
		if l.Begun != nil {
			l.Begun()
		}
	}
	return r.collect(loads)
}

// run is one run of several clients and servers.
type run struct {
	tool    *Tool
	cores   int
	barrier *gate // the clients wait at it
	alive   *gate // the servers live until it is released
	clients []*client
	servers []*exec.Cmd
	cancel  context.CancelFunc
}

// client is one client process.
type client struct {
	load           int
	cmd            *exec.Cmd
	stdout, stderr bytes.Buffer
}

// gate is a pipe that programs read from. Its end releases all of them at the same time,
// even if this process dies. It may be released again.
type gate struct{ read, write *os.File }

func newGate() (*gate, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a barrier: %w", err)
	}
	return &gate{read, write}, nil
}

func (g *gate) release() {
	if g != nil {
		g.write.Close()
		g.read.Close()
	}
}

func (r *run) prepare(ctx context.Context, loads []Load) (err error) {
	if _, err := exec.LookPath("setpriv"); err != nil {
		return missing.Errorf("the program setpriv, which ends iperf3 with what has started it, is not installed (package util-linux)")
	}
	if r.alive, err = newGate(); err != nil {
		return err
	}
	if r.barrier, err = newGate(); err != nil {
		return err
	}
	longest := time.Duration(0)
	for _, l := range loads {
		longest = max(longest, l.Time)
	}
	ctx, r.cancel = context.WithTimeout(ctx, longest+serverStart+slack)
	port := uint16(firstPort)
	for i, l := range loads {
		for _, streams := range r.tool.Version.processes(l.Streams, r.cores) {
			if err := r.startServer(ctx, &l.Pair, port); err != nil {
				return err
			}
			if err := r.startClient(ctx, i, &l, streams, port); err != nil {
				return err
			}
			port++
		}
	}
	return nil
}

// serve runs a server until its standard input ends, which happens at the latest when
// this process dies. If the shell itself is killed, the kernel kills the server, because
// the server dies with the thread that started it. Of this process that thread belongs to
// a network namespace and ends at once.
const serve = `setpriv --pdeathsig KILL "$@" >/dev/null & server=$!; read -r _; kill $server 2>/dev/null; wait $server`

func (r *run) startServer(ctx context.Context, p *Pair, port uint16) error {
	cmd := exec.Command("sh", "-c", serve, "sh", r.tool.Path, "-s", "-1", "-p", strconv.Itoa(int(port)))
	cmd.Stdin = r.alive.read
	if err := p.Server(cmd); err != nil {
		return fmt.Errorf("start an iperf3 server: %w", err)
	}
	r.servers = append(r.servers, cmd)
	ctx, cancel := context.WithTimeout(ctx, serverStart)
	defer cancel()
	if err := p.Await(ctx, port); err != nil {
		return fmt.Errorf("wait for an iperf3 server: %w", err)
	}
	return nil
}

// wait holds a client back until its standard input ends, and then becomes it.
const wait = `read -r _; exec "$@"`

func (r *run) startClient(ctx context.Context, load int, l *Load, streams int, port uint16) error {
	args := append([]string{"-c", wait, "sh", r.tool.Path}, l.arguments(streams, port)...)
	c := &client{load: load, cmd: exec.CommandContext(ctx, "sh", args...)}
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = r.barrier.read, &c.stdout, &c.stderr
	if err := l.Pair.Client(c.cmd); err != nil {
		return fmt.Errorf("start an iperf3 client: %w", err)
	}
	r.clients = append(r.clients, c)
	return nil
}

// arguments returns the arguments of iperf3.
func (l *Load) arguments(streams int, port uint16) []string {
	args := []string{"-c", l.Pair.Address, "-p", strconv.Itoa(int(port)), "-t", strconv.Itoa(max(wholeSeconds(l.Time), 1)),
		"-P", strconv.Itoa(streams), "-J", "-i", number(l.Interval.Seconds(), 2), "-O", strconv.Itoa(wholeSeconds(l.Omit)),
		"--connect-timeout", strconv.FormatInt(connectPatience.Milliseconds(), 10)}
	if l.Pair.Bind != "" {
		args = append(args, "-B", l.Pair.Bind)
	}
	if l.UDP {
		args = append(args, "-u")
	}
	if l.Rate > 0 { // iperf3 counts per stream
		args = append(args, "-b", number(l.Rate/float64(l.Streams), 0))
	} else if l.UDP {
		args = append(args, "-b", "0")
	}
	if l.Length > 0 {
		args = append(args, "-l", strconv.Itoa(l.Length))
	}
	if l.Reverse {
		args = append(args, "-R")
	}
	if l.Both {
		args = append(args, "--bidir")
	}
	if l.Congestion != "" && !l.UDP {
		args = append(args, "-C", l.Congestion)
	}
	return args
}

func wholeSeconds(d time.Duration) int { return int(d.Round(time.Second) / time.Second) }

func number(v float64, decimals int) string { return strconv.FormatFloat(v, 'f', decimals, 64) }

// collect waits for all clients and adds up the processes of each load.
func (r *run) collect(loads []Load) ([]*Result, error) {
	parts := make([][]*Result, len(loads))
	var errs []error
	for _, c := range r.clients {
		ended := c.cmd.Wait()
		part, err := Parse(c.stdout.Bytes())
		var said *ToolError
		switch {
		case errors.As(err, &said):
			errs = append(errs, err)
		case err != nil && ended != nil:
			errs = append(errs, fmt.Errorf("iperf3 client: %w: %s", ended, strings.TrimSpace(c.stderr.String())))
		case err != nil:
			errs = append(errs, err)
		default:
			parts[c.load] = append(parts[c.load], part)
		}
	}
	r.clients = nil
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	results := make([]*Result, len(loads))
	for i := range loads {
		results[i] = Total(parts[i])
	}
	return results, nil
}

// close ends everything that still runs.
func (r *run) close() error {
	if r.cancel != nil {
		r.cancel()
	}
	r.barrier.release()
	for _, c := range r.clients {
		_ = c.cmd.Wait() // canceled: its status says nothing
	}
	r.alive.release()
	var errs []error
	for _, s := range r.servers {
		// A server that was ended, or whose test failed, has such a status. Its
		// client reports why.
		var exit *exec.ExitError
		if err := s.Wait(); err != nil && !errors.As(err, &exit) {
			errs = append(errs, fmt.Errorf("iperf3 server: %w", err))
		}
	}
	return errors.Join(errs...)
}
