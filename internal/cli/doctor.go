package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/fw/daemon"
	"weir/internal/fw/view"
	"weir/internal/host/doctor"
	"weir/internal/host/doctor/collect"
)

// doctorFlags holds the flags of `weir doctor`.
type doctorFlags struct {
	asJSON, verbose, watch, list, redact bool
	from, collect, explain               string
	skip                                 []string
	interval                             time.Duration
}

// leastInterval and longestInterval bound the time between two samples: the
// cores' times have a resolution of 10 ms.
const (
	leastInterval   = 200 * time.Millisecond
	longestInterval = time.Hour
)

// newDoctorCommand makes `weir doctor`.
func newDoctorCommand(env *Env) *cobra.Command {
	f := doctorFlags{interval: 2 * time.Second}
	c := &cobra.Command{
		Use:   "doctor",
		Short: "say what limits this router now, with the evidence and the remedy",
		Long: `doctor reads the counters of this machine twice, some seconds apart, and says what
limits the router now. The first sentence is the verdict. The findings follow: their
evidence, what to do (> ), and what that changes (= ). doctor changes nothing. It
names what it cannot read and does not take it for fine. Run it as root and under
load: an idle router has no limit.

Exit status: 0 nothing hurts, 1 something hurts or will when the load rises, 3
something limits the router or loses packets now, 2 wrong usage, or a file or this
machine could not be read, or a file could not be written. An interrupt ends --watch
with the status of the last verdict.

--collect writes what was read to a file (docs/doctor-bundle.md). --from reads it, on
any machine. A file may hold addresses; --redact replaces them. --from also reads the
output of sysctl -a (Linux, FreeBSD), pfctl -si, FreeBSD's top -P, vmstat -i and
netstat -m, Check Point's fw ctl affinity -l and cpmq get -v, and a kernel's log
(dmesg). It guesses nothing about other files.`,
		Example: `  weir doctor
  weir doctor --explain RSS-1
  weir doctor --collect box.bundle --redact
  weir doctor --from box.bundle --json`,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := f.check(c); err != nil {
				return &UsageError{fmt.Errorf("doctor: %w", err)}
			}
			err := f.run(c.Context(), env)
			if err != nil && !isVerdict(err) {
				err = &UsageError{err} // status 1 would mean a warning
			}
			return err
		},
	}
	s := c.Flags()
	s.BoolVarP(&f.verbose, "verbose", "v", false, "show evidence and remedy for notices too")
	s.DurationVar(&f.interval, "interval", f.interval, "`time` between the two samples")
	s.BoolVar(&f.watch, "watch", false, "repeat until interrupted")
	s.StringSliceVar(&f.skip, "skip", nil, "`ID`s of checks to leave out")
	s.StringVar(&f.from, "from", "", "check a `file` instead of this machine; -: standard input")
	s.StringVar(&f.collect, "collect", "", "write what was read to a `file` instead of checking it; -: standard output")
	s.BoolVar(&f.redact, "redact", false, "with --collect: replace each address with a stand-in")
	s.StringVar(&f.explain, "explain", "", "explain the check with this `ID`")
	s.BoolVar(&f.list, "list", false, "list the checks and what they read")
	jsonFlag(c, &f.asJSON)
	return c
}

// check refuses flags that contradict each other.
func (f *doctorFlags) check(c *cobra.Command) error {
	ways := 0
	for _, name := range []string{"from", "collect", "explain", "list", "watch"} {
		if c.Flags().Changed(name) {
			ways++
		}
	}
	switch {
	case ways > 1:
		return errors.New("use only one of --from, --collect, --explain, --list and --watch")
	case f.redact && f.collect == "":
		return errors.New("--redact needs --collect")
	case f.interval < leastInterval || f.interval > longestInterval:
		return fmt.Errorf("--interval %s: want %s to %s", f.interval, leastInterval, longestInterval)
	}
	return nil
}

func (f *doctorFlags) run(ctx context.Context, env *Env) error {
	switch {
	case f.list:
		return env.listChecks(f.asJSON)
	case f.explain != "":
		c, err := doctor.ExplainedCheck(f.explain)
		if err != nil {
			return &UsageError{err}
		}
		if f.asJSON {
			return env.printJSON(c)
		}
		_, err = io.WriteString(env.Stdout, c.Page)
		return err
	case f.from != "":
		r, err := interruptible(ctx, func() (*doctor.Report, error) {
			s, err := env.readSnapshot(f.from)
			if err != nil {
				return nil, err
			}
			return f.examine(s)
		})
		if err != nil {
			return err
		}
		return f.print(env, r)
	case f.collect != "":
		return f.write(ctx, env)
	}
	if f.watch {
		return f.again(ctx, env)
	}
	s, err := env.collect(ctx, collect.Options{Interval: f.interval, Watch: true})
	if err != nil {
		return err
	}
	return f.examineAndPrint(env, s)
}

// again examines the machine until it is interrupted. It ends with the status of the last
// verdict, or 0 if there was none yet.
func (f *doctorFlags) again(ctx context.Context, env *Env) (last error) {
	for first := true; ; first = false {
		s, err := env.collect(ctx, collect.Options{Interval: f.interval, Watch: true})
		if errors.Is(err, context.Canceled) {
			return last
		}
		if err != nil {
			return err
		}
		if !first {
			fmt.Fprintln(env.Stdout)
		}
		if last = f.examineAndPrint(env, s); last != nil && !isVerdict(last) {
			return last
		}
	}
}

// isVerdict reports whether an error only carries a report's exit status.
func isVerdict(err error) bool {
	var status *StatusError
	return errors.As(err, &status)
}

// snapshot reads this machine. It tells users other than root that they see less.
func (e *Env) snapshot(ctx context.Context, interval time.Duration) (*doctor.Snapshot, error) {
	return e.collect(ctx, collect.Options{Interval: interval})
}

func (e *Env) collect(ctx context.Context, o collect.Options) (*doctor.Snapshot, error) {
	o.Program, o.GuardTable = "weir "+version(), daemon.GuardTable
	o.Hooks, o.NATPorts, o.MarkMask = e.hooksInForce, e.natPortsInForce, e.markMaskInForce
	o.Sessions = func() ([]doctor.WeirSession, error) { return e.sessionsInForce(ctx) }
	o.Queues = e.queuesInForce
	o.VPN = func() ([]doctor.VPNCount, error) { return e.tunnelWork(ctx) }
	s, err := collect.Collect(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("read this machine: %w", err)
	}
	return s, nil
}

// hooksInForce returns the hooks that the daemon recorded.
func (e *Env) hooksInForce() ([]doctor.WeirInterface, error) {
	folder, err := e.folder()
	if err != nil {
		return nil, err
	}
	all, err := view.ReadInterfaces(folder, chooseHook)
	if err != nil {
		return nil, err
	}
	hooks := []doctor.WeirInterface{}
	for i := range all.Interfaces {
		n := &all.Interfaces[i]
		hooks = append(hooks, doctor.WeirInterface{Name: n.Name, Hook: n.Hook, Mode: n.Mode, Why: n.Why})
	}
	return hooks, nil
}

// natPortsInForce returns the port ranges that the rules in force choose from.
func (e *Env) natPortsInForce() ([]doctor.PortRange, error) {
	ports, err := inForce(e, (*view.View).NATPorts)
	if err != nil {
		return nil, err
	}
	found := []doctor.PortRange{}
	for _, p := range ports {
		found = append(found, doctor.PortRange(p))
	}
	return found, nil
}

// markMaskInForce returns the bits of the mark that weir uses.
func (e *Env) markMaskInForce() (uint32, error) { return inForce(e, (*view.View).MarkMask) }

// sessionsInForce returns how far the PPPoE sessions are.
func (e *Env) sessionsInForce(ctx context.Context) ([]doctor.WeirSession, error) {
	all, err := e.sessions(ctx, nil)
	if err != nil {
		return nil, err
	}
	found := []doctor.WeirSession{}
	for i := range all {
		p := &all[i]
		s := doctor.WeirSession{Name: p.Interface, On: p.On, State: string(p.State), Step: p.Step, Why: p.Why, Quirks: p.Quirks}
		if !p.Since.IsZero() {
			s.Seconds = time.Since(p.Since).Seconds()
		}
		found = append(found, s)
	}
	return found, nil
}

// queuesInForce returns what the queues that take packets have counted.
func (e *Env) queuesInForce() ([]doctor.WeirQueue, error) {
	return inForce(e, func(v *view.View) (found []doctor.WeirQueue, err error) {
		all, err := v.Queues()
		if err != nil {
			return nil, err
		}
		for i := range all.Trees {
			t := &all.Trees[i]
			for k := range t.Queues {
				if q := &t.Queues[k]; !q.Inner && !t.Absent {
					found = append(found, doctor.WeirQueue{Interface: t.Interface, In: t.In, Name: q.Name, Engine: t.Engine,
						Bytes: q.Sent, Packets: q.Packets, Drops: q.Drops, Marked: q.Marked, Backlog: q.Backlog})
				}
			}
		}
		return found, nil
	})
}

// inForce reads one thing of what weir does now.
func inForce[T any](e *Env, read func(*view.View) (T, error)) (none T, err error) {
	folder, err := e.folder()
	if err != nil {
		return none, err
	}
	v, err := view.Open(folder)
	if err != nil {
		return none, err
	}
	defer v.Close()
	return read(v)
}

func (e *Env) readSnapshot(name string) (*doctor.Snapshot, error) {
	in := e.Stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, &UsageError{err}
		}
		defer f.Close()
		if info, err := f.Stat(); err == nil && info.IsDir() {
			return nil, &UsageError{fmt.Errorf("doctor: %s is a directory: name a file that weir doctor --collect wrote", name)}
		}
		in = f
	}
	s, err := doctor.Read(in)
	if err != nil {
		return nil, &UsageError{fmt.Errorf("%s: %w", name, err)}
	}
	return s, nil
}

// interruptible runs a function that takes no context. After an interrupt it does not wait for
// the function, because the process ends next.
func interruptible[T any](ctx context.Context, do func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := do()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, fmt.Errorf("interrupted (%w)", ctx.Err())
	}
}

func (f *doctorFlags) examineAndPrint(env *Env, s *doctor.Snapshot) error {
	r, err := f.examine(s)
	if err != nil {
		return err
	}
	return f.print(env, r)
}

func (f *doctorFlags) examine(s *doctor.Snapshot) (*doctor.Report, error) {
	r, err := doctor.Examine(s, f.skip)
	if err != nil {
		return nil, &UsageError{fmt.Errorf("doctor: %w", err)}
	}
	return r, nil
}

func (f *doctorFlags) print(env *Env, r *doctor.Report) (err error) {
	err = env.print(f.asJSON, r, func(w io.Writer) error { return r.Print(w, f.verbose) })
	if status := r.Status(); err == nil && status != exitDone {
		return &StatusError{status}
	}
	return err
}

// write writes a bundle, either completely or not at all.
func (f *doctorFlags) write(ctx context.Context, env *Env) (err error) {
	s, err := env.collect(ctx, collect.Options{Interval: f.interval, Watch: true})
	if err != nil {
		return err
	}
	if f.redact {
		doctor.Redact(s)
	}
	if f.collect == "-" {
		return doctor.WriteBundle(env.Stdout, s)
	}
	if err := writeBundle(f.collect, s); err != nil {
		return fmt.Errorf("doctor: %w", err)
	}
	fmt.Fprintf(env.Stdout, "%s: %d interfaces, %d cores, %d interrupts", f.collect, len(s.Interfaces), len(s.CPUs), len(s.IRQs))
	if f.redact {
		fmt.Fprint(env.Stdout, ", addresses replaced")
	}
	fmt.Fprintln(env.Stdout)
	return nil
}

// writeBundle writes the file either completely or not at all. Until it is complete it
// has a random name, because others may write to the folder.
func writeBundle(name string, s *doctor.Snapshot) error {
	out, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	err = errors.Join(doctor.WriteBundle(out, s), out.Close())
	if err == nil {
		err = os.Rename(out.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(out.Name()))
	}
	return nil
}

// listChecks prints the table of checks.
func (e *Env) listChecks(asJSON bool) error {
	if asJSON {
		return e.printJSON(doctor.Checks())
	}
	for _, c := range doctor.Checks() {
		if _, err := fmt.Fprintf(e.Stdout, "%-8s %s (%s)\n", c.ID, c.Title, strings.Join(c.Reads, ", ")); err != nil {
			return err
		}
	}
	return nil
}
