package relief

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"time"

	"weir/internal/bench"
	"weir/internal/bench/report"
	"weir/internal/lab"
	"weir/internal/machine"
	"weir/internal/stats"
)

// bed is the lab with the path in place: the router receives in threads that are
// bound to one core, from a generator on another.
type bed struct {
	o     *Options
	stage *bench.Stage
	route *bench.Route
}

// result is what was measured, in frames per second.
type result struct {
	capacity             float64      // of one core
	held                 stats.Sample // what was offered before, which nothing slows
	before, again, after stats.Sample
	verdict              verdict // doctor's, before
	changes              string  // weir affinity auto's
}

// verdict is what matters here of weir doctor --json.
type verdict struct {
	Sentence string `json:"sentence"`
	Check    string `json:"check"`
	Severity string `json:"severity"`
}

// Run measures.
func Run(ctx context.Context, o Options) (d *report.Document, err error) {
	started := time.Now()
	m, err := machine.Describe()
	if err != nil {
		return nil, err
	}
	b := &bed{o: &o}
	b.stage, err = bench.OpenStage(ctx, bench.StageOptions{Offloads: lab.OffloadsOff, Program: o.Program, Progress: o.Progress, LowestFirst: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.stage.Close()) }()
	if why := b.stage.Missing(o.Path); why != "" {
		return nil, fmt.Errorf("path %s: %s", o.Path, why)
	}
	c := bench.Case{Frame: 64, Flows: o.Flows, Family: 4, Protocol: bench.UDP}
	if b.route, err = b.stage.StartRoute(ctx, o.Path, bench.RouteOptions{Entry: o.Entry, Case: c}); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.route.Stop()) }()
	r, err := b.measure(ctx)
	if err != nil {
		return nil, err
	}
	return r.document(&o, started, m), nil
}

func (b *bed) say(format string, args ...any) {
	if b.o.Progress != nil {
		fmt.Fprintf(b.o.Progress, format+"\n", args...)
	}
}

// flood is more than any path of the stack carries, in frames per second.
const flood = 3e6

func (b *bed) measure(ctx context.Context) (r result, err error) {
	if err := b.route.Open(ctx); err != nil {
		return r, err
	}
	if r.capacity, _, err = b.send(ctx, flood, b.o.Seconds); err != nil {
		return r, err
	}
	b.say("one core carries %.0f frames/s", r.capacity)
	if err := b.under(ctx, r.capacity, 5, func() error { return b.weir(ctx, &r.verdict, "doctor", "--json", "--interval", "2s") }); err != nil {
		return r, err
	}
	b.say("doctor: %s", r.verdict.Sentence)
	const before, again, after = 0, 1, 2
	order := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	for round, which := range stats.Interleave(order, b.o.Runs, []int{before, again, after}) {
		sample := []*stats.Sample{&r.before, &r.again, &r.after}[which]
		if which == after {
			if err := b.mend(ctx, &r); err != nil {
				return r, err
			}
		}
		arrived, offered, err := b.send(ctx, r.capacity*b.o.Times, b.o.Seconds)
		if which == after {
			err = errors.Join(err, b.weir(ctx, nil, "affinity", "revert"))
		}
		if err != nil {
			return r, err
		}
		*sample = append(*sample, arrived)
		if which != after {
			r.held = append(r.held, offered)
		}
		b.say("round %d, %s: %.0f of %.0f frames/s", round+1, []string{"before", "before, again", "after"}[which], arrived, offered)
	}
	return r, nil
}

// mend has weir affinity auto look at the load, and change what it will.
func (b *bed) mend(ctx context.Context, r *result) error {
	var said string
	err := b.under(ctx, r.capacity, 2, func() error { return b.weir(ctx, &said, "affinity", "auto", "--interval", "500ms") })
	if r.changes == "" {
		r.changes = said
	}
	return err
}

// send offers a rate for the time of a run; it returns what arrived and what was
// offered.
func (b *bed) send(ctx context.Context, rate, seconds float64) (arrived, offered float64, err error) {
	o, err := b.route.Send(ctx, bench.Load{Rate: rate, Frames: uint32(rate * seconds)})
	if err != nil {
		return 0, 0, err
	}
	return o.Offered * (1 - o.Loss()), o.Offered, nil
}

// under does something while the router has its load, which comes in runs of so many
// seconds with short gaps between.
func (b *bed) under(ctx context.Context, capacity, seconds float64, do func() error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() {
		for ctx.Err() == nil {
			if _, _, err := b.send(ctx, capacity*b.o.Times, seconds); err != nil && !errors.Is(err, context.Canceled) {
				ended <- err
				return
			}
		}
		ended <- nil
	}()
	time.Sleep(time.Second / 2) // until the generator's program is loaded
	err := do()
	stop()
	return errors.Join(err, <-ended)
}

// weir runs a command of it in the router's namespace. into is a string, or what
// JSON is read into; nil: neither.
func (b *bed) weir(ctx context.Context, into any, args ...string) error {
	program := cmp.Or(b.o.Program, "/proc/self/exe")
	cmd := exec.CommandContext(ctx, program, append([]string{"--netns", b.stage.Lab().Namespace(lab.FW)}, args...)...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	var status *exec.ExitError
	if errors.As(err, &status) && args[0] == "doctor" && status.ExitCode() != 2 {
		err = nil // a verdict's
	}
	if err != nil {
		return fmt.Errorf("weir %s: %s: %w", strings.Join(args, " "), strings.TrimSpace(said.String()), err)
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
