package qos

import (
	"cmp"
	"context"
	_ "embed" // the kernel's queues
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"weir/internal/bench/paths"
	"weir/internal/bench/testbed"
	"weir/internal/lab"
)

// Script sets up the kernel's queues.
//
//go:embed queues.sh
var Script string

// kernelQueues reports whether a path is the kernel's, with queues.
func kernelQueues(path string) bool { return path != PathNone && path != PathWeir && path != PathHeld }

// startPath starts a path for a scene.
func (b *bench) startPath(ctx context.Context, path string, s *scene) (stop func() error, err error) {
	if !kernelQueues(path) {
		return paths.StartWeir(ctx, b.bed, s.rules(path), paths.WeirOptions{Hook: b.options.Hook})
	}
	forwarding, err := paths.StartForSockets(ctx, b.bed, paths.Kernel, paths.SocketOptions{GRO: true})
	if err != nil {
		return nil, err
	}
	args := []string{testbed.FarDoor.Device, fmt.Sprintf("%.0f", s.rate/1e3), path}
	stop = func() error {
		return errors.Join(b.net.run(context.WithoutCancel(ctx), Script, append([]string{"stop"}, args...)...), forwarding())
	}
	if err := b.net.run(ctx, Script, append([]string{"start"}, args...)...); err != nil {
		return nil, errors.Join(err, stop())
	}
	return stop, nil
}

// leaveOut removes the paths that this machine does not have, and notes why.
func (b *bench) leaveOut(ctx context.Context) {
	for _, path := range b.options.Paths {
		if !kernelQueues(path) && path != PathHeld {
			continue
		}
		why := b.missing(ctx, path)
		if why != "" {
			b.missed[path] = why
			b.skip(path, why)
		}
	}
}

// missing returns why a path cannot be had, or "".
func (b *bench) missing(ctx context.Context, path string) string {
	for _, program := range []string{"tc", "ip"} {
		if _, err := exec.LookPath(program); err != nil {
			return "the program " + program + " is not installed"
		}
	}
	stop, err := b.startPath(ctx, path, &scene{rate: 10e6})
	if err != nil {
		return "this kernel or tc does not have it: " + err.Error()
	}
	leaf := b.leafOf(ctx)
	b.leaf[path] = cmp.Or(leaf, path)
	if err := stop(); err != nil {
		return "it could not be removed: " + err.Error()
	}
	if path == PathHeld && leaf == "" {
		return "the kernel does not hold weir's packets"
	}
	return ""
}

// leafOf returns the queue in which the path that runs keeps its packets; "": none is known.
func (b *bench) leafOf(ctx context.Context) string {
	out, err := b.bed.Lab.Run(ctx, lab.FW, "tc", "qdisc", "show", "dev", testbed.FarDoor.Device)
	if err != nil {
		return ""
	}
	for _, kind := range []string{"cake", "fq_codel", "sfq", "pfifo", "bfifo"} {
		if strings.Contains(string(out), "qdisc "+kind+" ") {
			return kind
		}
	}
	return ""
}
