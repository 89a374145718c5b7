package paths

import (
	"bytes"
	"context"
	_ "embed" // the queues of both sides
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"

	"weir/internal/bench/testbed"
	"weir/internal/bench/traffic"
	"weir/internal/lab"
)

// Queues are what the kernel and weir have on the paths with queues: the same classes for
// the same packets.
var (
	//go:embed htb.sh
	HTBScript string
	//go:embed qos.conf
	QueuesConf string
	//go:embed held.conf
	HeldConf string
)

// AmpleRate is the line's rate, in bits per second, if nothing is to be dropped.
const AmpleRate = 100_000_000_000

// queuesConf returns weir's queues for a line.
func queuesConf(queues string, rate uint64) string {
	return strings.ReplaceAll(queues, "RATE", strconv.FormatUint(rate/1000, 10)+"K")
}

// QueueCounts are what all queues of a path have counted.
type QueueCounts struct{ Packets, Drops uint64 }

// startHTB runs [HTBScript] on the firewall's device to the internet.
func startHTB(rate uint64) func(context.Context, *traffic.Setup, *UndoList) error {
	return func(ctx context.Context, w *traffic.Setup, undo *UndoList) error {
		undo.Add(func() error { return runHTB(context.WithoutCancel(ctx), w.Testbed, "stop", rate) })
		return runHTB(ctx, w.Testbed, "start", rate)
	}
}

func runHTB(ctx context.Context, b *testbed.Testbed, action string, rate uint64) error {
	cmd := exec.CommandContext(ctx, "sh", "-s", action, testbed.FarDoor.Device, strconv.FormatUint(rate/1000, 10))
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Stderr = strings.NewReader(HTBScript), &stderr
	if err := b.Lab.Start(lab.FW, cmd); err != nil {
		return err
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%s queues of the kernel: %w: %s", action, err, firstLine(stderr.String()))
	}
	return nil
}

// htbMissing returns why the kernel's queues cannot be measured here, or "".
func htbMissing(ctx context.Context, b *testbed.Testbed) string {
	for _, program := range []string{"tc", "ip"} {
		if _, err := exec.LookPath(program); err != nil {
			return "the program " + program + " is not installed"
		}
	}
	err := errors.Join(runHTB(ctx, b, "start", AmpleRate), runHTB(context.WithoutCancel(ctx), b, "stop", AmpleRate))
	if err != nil {
		return "this kernel or tc does not take the queues: " + err.Error()
	}
	return ""
}

// countHTB reads the root queues of the kernel.
func countHTB(ctx context.Context, b *testbed.Testbed) (c QueueCounts, err error) {
	out, err := b.Lab.Run(ctx, lab.FW, "tc", "-s", "-j", "qdisc", "show")
	if err != nil {
		return c, err
	}
	var all []struct {
		Kind    string `json:"kind"`
		Packets uint64 `json:"packets"`
		Drops   uint64 `json:"drops"`
	}
	if err := json.Unmarshal(out, &all); err != nil {
		return c, fmt.Errorf("read the queues of the kernel: %w", err)
	}
	for _, q := range all {
		if q.Kind == "htb" {
			c.Packets, c.Drops = c.Packets+q.Packets, c.Drops+q.Drops
		}
	}
	return c, nil
}

// countWeir reads weir's root queues.
func countWeir(ctx context.Context, b *testbed.Testbed) (c QueueCounts, err error) {
	out, err := exec.CommandContext(ctx, b.Program, "queues", "--json", "--netns", b.Firewall()).Output()
	if err != nil {
		return c, fmt.Errorf("weir queues: %w", err)
	}
	var all struct {
		Trees []struct {
			Queues []struct {
				Packets uint64 `json:"packets"`
				Drops   uint64 `json:"dropped_packets"`
			} `json:"queues"`
		} `json:"trees"`
	}
	if err := json.Unmarshal(out, &all); err != nil {
		return c, fmt.Errorf("read weir's queues: %w", err)
	}
	for _, tree := range all.Trees {
		root := tree.Queues[0]
		c.Packets, c.Drops = c.Packets+root.Packets, c.Drops+root.Drops
	}
	return c, nil
}
