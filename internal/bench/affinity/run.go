package affinity

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"weir/internal/bench/paths"
	"weir/internal/bench/report"
	"weir/internal/bench/testbed"
	"weir/internal/bench/tester"
	"weir/internal/bench/traffic"
	"weir/internal/host/hostinfo"
	"weir/internal/lab"
	"weir/internal/stats"
)

// bench is the lab with the path in place. The router receives in threads bound to one
// core, from a generator on another core.
type bench struct {
	o       *Options
	testbed *testbed.Testbed
	tester  *tester.Tester
}

// result is everything that was measured.
type result struct {
	capacity float64        // frames per second that one core carries
	runs     [settings]runs // of each setting
	verdict  verdict        // doctor's verdict before the changes
	changes  string         // changes of weir affinity auto
}

// runs are the runs of one setting: frames per second, and what delayed the generator.
type runs struct {
	offered, arrived stats.Sample
	late             stats.Sample // share of late bursts
	busy             stats.Sample // share of time in which the generator did not wait
	foreign          stats.Sample // share of the cores' time that programs took
}

func (r *runs) add(one offer) {
	r.offered, r.arrived = append(r.offered, one.offered), append(r.arrived, one.arrived)
	r.late, r.busy, r.foreign = append(r.late, one.late), append(r.busy, one.busy), append(r.foreign, one.foreign)
}

// offer is one run, or a piece of one.
type offer struct{ offered, arrived, late, busy, foreign float64 }

// add adds a piece to a run that has this number of pieces.
func (o *offer) add(piece offer, pieces int) {
	n := float64(pieces)
	o.offered += piece.offered / n
	o.arrived += piece.arrived / n
	o.late += piece.late / n
	o.busy += piece.busy / n
	o.foreign += piece.foreign / n
}

func (o offer) String() string {
	return fmt.Sprintf("%.0f of %.0f frames/s arrived; %.0f %% of bursts late, the generator's core busy for %.0f %%, programs had %.0f %% of the cores",
		o.arrived, o.offered, 100*o.late, 100*o.busy, 100*o.foreign)
}

// verdict is the part of weir doctor --json that is used here.
type verdict struct {
	Sentence string `json:"sentence"`
	Check    string `json:"check"`
	Severity string `json:"severity"`
}

// Run does the measurement.
func Run(ctx context.Context, o Options) (d *report.Document, err error) {
	started := time.Now()
	m, err := hostinfo.Describe()
	if err != nil {
		return nil, err
	}
	b := &bench{o: &o}
	b.testbed, err = testbed.Open(ctx, testbed.Options{Offloads: lab.OffloadsOff, Program: o.Program, LowestFirst: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.testbed.Close()) }()
	if why := paths.Missing(ctx, b.testbed, []string{o.Path})[o.Path]; why != "" {
		return nil, fmt.Errorf("path %s: %s", o.Path, why)
	}
	c := traffic.Case{Frame: 64, Flows: o.Flows, Family: 4, Protocol: traffic.UDP}
	if b.tester, err = tester.Start(ctx, b.testbed, o.Path, tester.Options{Entry: o.Entry, Case: c, First: true}); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.tester.Stop()) }()
	r, err := b.measure(ctx)
	if err != nil {
		return nil, err
	}
	return r.document(&o, started, m), nil
}

// report prints a line for whoever waits.
func (b *bench) report(format string, args ...any) {
	if b.o.Progress != nil {
		fmt.Fprintf(b.o.Progress, format+"\n", args...)
	}
}

// flood is a rate that no path of the stack carries, in frames per second.
const flood float64 = 3e6

func (b *bench) measure(ctx context.Context) (r result, err error) {
	if err := b.tester.Open(ctx); err != nil {
		return r, err
	}
	if r.capacity, err = b.fill(ctx); err != nil {
		return r, err
	}
	if err := b.under(ctx, r.capacity, 5, func() error { return b.weir(ctx, &r.verdict, "doctor", "--json", "--interval", "2s") }); err != nil {
		return r, err
	}
	b.report("doctor: %s", r.verdict.Sentence)
	return r, b.compare(ctx, &r)
}

// Settings of the router, which take turns.
const (
	before = iota
	again
	after
	settings
)

var settingNames = [settings]string{"before", "before, again", "after"}

// compare measures the settings in turn, one piece of a run at a time. So a disturbance
// of some seconds meets all three settings.
func (b *bench) compare(ctx context.Context, r *result) error {
	pieces := b.pieces()
	var run [settings]offer
	for round, which := range stats.Interleave(b.o.Runs*pieces, []int{before, again, after}) {
		one, err := b.piece(ctx, r, which)
		if err != nil {
			return err
		}
		run[which].add(one, pieces)
		if round%pieces < pieces-1 {
			continue
		}
		r.runs[which].add(run[which])
		b.report("run %d, %s: %s", round/pieces+1, settingNames[which], run[which])
		run[which] = offer{}
	}
	return nil
}

// piece offers the load for one piece of a run.
func (b *bench) piece(ctx context.Context, r *result, which int) (o offer, err error) {
	if which == after {
		defer func() { err = errors.Join(err, b.revert(ctx)) }()
		if err := b.mend(ctx, r); err != nil {
			return o, err
		}
	}
	return b.send(ctx, r.capacity*b.o.Times, b.o.Seconds/float64(b.pieces()))
}

// fill finds the capacity of one core. It counts what arrives of a flood, which disturbs
// the receiver. Then it offers a multiple of what arrived, until no more arrives.
func (b *bench) fill(ctx context.Context) (capacity float64, err error) {
	const enough = 1.03
	for rate := flood; ; rate = capacity * b.o.Times {
		var o offer
		for range b.pieces() {
			one, err := b.send(ctx, rate, b.o.Seconds/float64(b.pieces()))
			if err != nil {
				return 0, err
			}
			o.add(one, b.pieces())
		}
		b.report("what one core carries: %s", o)
		grown := o.arrived > enough*capacity
		capacity = o.arrived
		if !grown {
			return capacity, nil
		}
	}
}

// mend lets weir affinity auto see the load and make its changes.
func (b *bench) mend(ctx context.Context, r *result) error {
	var said string
	err := b.under(ctx, r.capacity, 2, func() error { return b.weir(ctx, &said, "affinity", "auto", "--interval", "500ms") })
	if r.changes == "" {
		r.changes = said
	}
	return err
}

// revert undoes all changes, even if the benchmark was interrupted.
func (b *bench) revert(ctx context.Context) error {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), revertTime)
	defer stop()
	return b.weir(ctx, nil, "affinity", "revert")
}

// revertTime limits the time for that.
const revertTime = 20 * time.Second

// beforeRouter is a priority above the router's.
const beforeRouter = lab.First + 2

// longestPiece is the longest time, in seconds, that a rate is held without a break.
const longestPiece = 0.8

// pieces returns the number of pieces in a run.
func (b *bench) pieces() int { return int(math.Ceil(b.o.Seconds / longestPiece)) }

// send offers a rate for some seconds, at most [longestPiece].
func (b *bench) send(ctx context.Context, rate, seconds float64) (offer, error) {
	o, err := b.tester.Send(ctx, tester.Load{Rate: rate, Frames: uint32(rate * seconds), Hold: true})
	if err != nil {
		return offer{}, err
	}
	return offer{offered: o.Offered, arrived: o.Offered * (1 - o.Loss()), late: o.Late, busy: o.Busy, foreign: o.Foreign}, nil
}

// under calls do while the router has its load. The load consists of pieces of that many
// seconds with short gaps between them.
func (b *bench) under(ctx context.Context, capacity, seconds float64, do func() error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var load errgroup.Group
	load.Go(func() error {
		for ctx.Err() == nil {
			if _, err := b.tester.Send(ctx, tester.Load{Rate: capacity * b.o.Times, Frames: uint32(capacity * b.o.Times * seconds), Hold: true}); err != nil && !errors.Is(err, context.Canceled) {
				return err
			}
		}
		return nil
	})
	time.Sleep(time.Second / 2) // until the generator's program is loaded
	err := do()
	stop()
	return errors.Join(err, load.Wait())
}

// weir runs a weir command in the router's namespace. into is a pointer to a string, or a
// value to decode JSON into, or nil.
func (b *bench) weir(ctx context.Context, into any, args ...string) error {
	out, said, err := b.run(ctx, args)
	for range busyTries {
		if err == nil || !strings.Contains(said, "another weir affinity is at work") {
			break
		}
		time.Sleep(time.Second / 2)
		out, said, err = b.run(ctx, args)
	}
	if ctx.Err() != nil {
		return ctx.Err() // ctx has ended the command
	}
	var status *exec.ExitError
	if errors.As(err, &status) && args[0] == "doctor" && status.ExitCode() != 2 {
		err = nil // exit status of a verdict
	}
	if err != nil {
		return fmt.Errorf("weir %s: %s: %w", strings.Join(args, " "), strings.TrimSpace(said), err)
	}
	switch into := into.(type) {
	case nil:
	case *string:
		*into = strings.TrimSpace(string(out))
	default:
		all := struct{ Verdict any }{into}
		if err := json.Unmarshal(out, &all); err != nil {
			return fmt.Errorf("weir %s: %w", strings.Join(args, " "), err)
		}
	}
	return nil
}

// busyTries is how often a command is tried while something else on the machine changes
// affinities.
const busyTries = 10

func (b *bench) run(ctx context.Context, args []string) (out []byte, said string, err error) {
	program := cmp.Or(b.o.Program, "/proc/self/exe")
	cmd := exec.CommandContext(ctx, program, append([]string{"--netns", b.testbed.Lab.Namespace(lab.FW)}, args...)...)
	var heard bytes.Buffer
	cmd.Stderr = &heard
	out, err = output(cmd)
	return out, heard.String(), err
}

// output runs a command with priority over all programs of the machine, the generator
// included.
func output(cmd *exec.Cmd) (out []byte, err error) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		runtime.LockOSThread() // the thread ends with its goroutine
		lab.GoFirst(0, beforeRouter)
		out, err = cmd.Output()
	}()
	<-ended
	return out, err
}
