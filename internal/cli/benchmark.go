package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/bench/report"
	"weir/internal/bench/testbed"
)

// benchmark is the part of a `weir bench` subcommand between the command line and its
// report. [benchmark.do] does what all subcommands share.
type benchmark struct {
	name     string               // of the subcommand
	check    func() error         // returns what is wrong with its options
	estimate func() time.Duration // about how long it takes; nil: unknown
	rootless bool                 // it runs without root
	// locks says that no other benchmark may run on this machine meanwhile, if it
	// runs as root. Benchmarks with a lab take the lock themselves.
	locks bool
	// run measures. If it returns a document with an error, the document has what was
	// measured until then.
	run func(context.Context) (*report.Document, error)
	// exceeded says that a limit of its own does not hold: exit status 1. run sets it.
	exceeded bool
	// own are the forms of its report that are not the document's. run may set them.
	own ownForms
}

// documented is a report that is not a document itself.
type documented interface{ Document() *report.Document }

func documentOf(r documented, err error) (*report.Document, error) {
	if err != nil {
		return nil, err
	}
	return r.Document(), nil
}

// do checks the options and this machine, measures, and writes the report. If a benchmark
// fails or is interrupted, it cleans up, says so, and still writes what it has measured.
// So an interrupted long run is not lost.
func (b *benchmark) do(ctx context.Context, env *Env, out *reportFlags) error {
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
	// Ctrl-C ends the reader of a pipe first. Writing to the closed pipe must not end
	// this process before it has cleaned up.
	ctx, stop := outlive(ctx)
	defer stop()
	if b.estimate != nil {
		fmt.Fprintf(env.Stderr, "this takes about %s\n", b.estimate().Round(time.Second))
	}
	d, err := b.alone(ctx)
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
	if failed := out.write(env, d, b.own); err == nil || !errors.Is(failed, ErrSilent) {
		err = errors.Join(err, failed)
	}
	if err == nil && b.exceeded {
		return ErrSilent
	}
	return err
}

// reason returns in a few words why a run ended.
func reason(ctx context.Context, err error) string {
	if ctx.Err() != nil || errors.Is(err, context.Canceled) {
		return "it was interrupted"
	}
	return err.Error()
}

func (b *benchmark) alone(ctx context.Context) (d *report.Document, err error) {
	root := os.Geteuid() == 0
	if b.locks && root {
		unlock, locked := testbed.Lock()
		if locked != nil {
			return nil, locked
		}
		defer func() { err = errors.Join(err, unlock()) }()
	}
	d, err = b.run(ctx)
	if d != nil && b.locks && !root {
		d.Notes = append(d.Notes, "Without root, other benchmarks on this machine could not be locked out.")
	}
	return d, err
}

// benchmarking makes a command run the benchmark that begin returns, and write its report.
func benchmarking(env *Env, c *cobra.Command, begin func() *benchmark) *cobra.Command {
	var out reportFlags
	out.add(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		b := begin()
		b.name = c.Name()
		return b.do(c.Context(), env, &out)
	}
	return c
}

func (b *benchmark) named(err error) error { return benchError(b.name, err) }

// benchError names the benchmark in an error, and distinguishes interruptions from
// failures.
func benchError(name string, err error) error {
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("bench %s: interrupted (%w)", name, err)
	}
	return fmt.Errorf("bench %s: %w", name, err)
}

// benchCommand returns the command line that repeats this benchmark.
func benchCommand() string { return "weir " + strings.Join(os.Args[1:], " ") }

// benchVersion returns this weir's version, for reports.
func benchVersion() string { return strings.TrimPrefix(version(), "weir ") }
