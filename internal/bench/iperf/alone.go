package iperf

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Measure runs one client in this network namespace, against a server that waits at a
// port, for at most the given time. series has the rates ahead and back, as in [Series].
func (t *Tool) Measure(ctx context.Context, l *Load, port uint16, patience time.Duration) (r *Result, series [2][]float64, err error) {
	text, err := t.execute(ctx, l.arguments(l.Streams, port), patience)
	if err != nil {
		return nil, series, err
	}
	if r, err = Parse(text); err == nil && l.Both && r.Back == nil {
		err = fmt.Errorf("iperf3 %s did not measure both directions", t.Version)
	}
	series[0], series[1] = Series(text)
	return r, series, err
}

// Serve runs a server in this network namespace for one client, at an address and a port.
// If most is not 0, it ends a test that exceeds that many bits per second for a second.
func (t *Tool) Serve(ctx context.Context, address string, port uint16, most float64, patience time.Duration) (*Result, error) {
	args := []string{"-s", "-1", "-J", "-p", strconv.Itoa(int(port)), "-B", address}
	if most > 0 {
		args = append(args, "--server-bitrate-limit", number(most, 0)+"/1")
	}
	text, err := t.execute(ctx, args, patience)
	if err != nil {
		return nil, err
	}
	return Parse(text)
}

// execute runs iperf3 for at most the given time and returns what it printed. The kernel
// kills it when this process ends.
func (t *Tool) execute(ctx context.Context, args []string, patience time.Duration) ([]byte, error) {
	// The signal comes when the thread that started the program ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(limited, t.Path, args...)
	cmd.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case limited.Err() != nil:
		return nil, fmt.Errorf("iperf3 did not end within %s", patience)
	case err != nil && stdout.Len() == 0:
		return nil, fmt.Errorf("iperf3: %w %s", err, stderr.String())
	}
	return stdout.Bytes(), nil // the JSON says what failed
}
