package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"weir/internal/bench/report"
	"weir/internal/bench/testbed"
)

// benchmark is what a subcommand of "weir bench" does between the command line
// and its report. All else is the same for all, and is done by [benchmark.do].
type benchmark struct {
	name     string               // of the subcommand
	check    func() error         // what is wrong with its options
	estimate func() time.Duration // about how long it takes; nil: that is not said
	rootless bool                 // it can do without root
	// locks keeps other benchmarks of this machine away while it runs, where it is
	// root. Those with a lab do so themselves.
	locks bool
	// run measures. A document beside an error has what was measured until then.
	run func(context.Context) (*report.Document, ownForms, error)
}

// do checks what was asked for and this machine, measures, and writes the
// report. A benchmark that is interrupted or fails has cleaned up, says so, and
// writes what it has measured by then: a long run is not lost by its end.
func (b benchmark) do(ctx context.Context, env *Env, out *reportFlags) error {
	if err := b.check(); err != nil {
		return &UsageError{b.named(err)}
	}
	if err := out.check(); err != nil {
		return err
	}
	if !b.rootless {
		if err := needBPF(); err != nil {
			return err
		}
	}
	// Ctrl-C ends the reader of a pipe first. What is said to nobody then must not
	// end this process before it has cleaned up.
	ctx, stop := outlive(ctx)
	defer stop()
	if b.estimate != nil {
		fmt.Fprintf(env.Stderr, "this takes about %s\n", b.estimate().Round(time.Second))
	}
	d, forms, err := b.alone(ctx)
	if err != nil {
		err = b.named(err)
	}
	if d == nil {
		return err
	}
	if err != nil {
		d.EndEarly(reason(ctx, err))
	}
	d.Withhold()
	if d.Version == "" {
		d.Version = benchVersion()
	}
	if failed := out.write(env, d, forms); err == nil || !errors.Is(failed, ErrSilent) {
		err = errors.Join(err, failed)
	}
	return err
}

// reason is why a run ended, in a few words.
func reason(ctx context.Context, err error) string {
	if ctx.Err() != nil || errors.Is(err, context.Canceled) {
		return "it was interrupted"
	}
	return err.Error()
}

func (b benchmark) alone(ctx context.Context) (d *report.Document, forms ownForms, err error) {
	root := os.Geteuid() == 0
	if b.locks && root {
		unlock, locked := testbed.Lock()
		if locked != nil {
			return nil, forms, locked
		}
		defer func() { err = errors.Join(err, unlock()) }()
	}
	d, forms, err = b.run(ctx)
	if d != nil && b.locks && !root {
		d.Notes = append(d.Notes, "Without root nothing kept other benchmarks of this machine away.")
	}
	return d, forms, err
}

func (b benchmark) named(err error) error { return benchError(b.name, err) }

// benchError says which benchmark an error is of, and tells an interruption from
// what went wrong.
func benchError(name string, err error) error {
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("bench %s: interrupted (%w)", name, err)
	}
	return fmt.Errorf("bench %s: %w", name, err)
}

// benchCommand repeats this benchmark.
func benchCommand() string { return "weir " + strings.Join(os.Args[1:], " ") }

// benchVersion is that of this weir, for reports.
func benchVersion() string { return strings.TrimPrefix(version(), "weir ") }
