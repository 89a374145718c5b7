package vpn

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"time"

	"weir/internal/bench/cpu"
	"weir/internal/bench/iperf"
	"weir/internal/bench/paths"
	"weir/internal/bench/probe"
	"weir/internal/bench/progress"
	"weir/internal/bench/report"
	"weir/internal/bench/testbed"
	"weir/internal/host/hostinfo"
	"weir/internal/lab"
	"weir/internal/stats"
	"weir/internal/units"
)

// UDP datagrams, and how many of them are offered: more than any engine here carries on two cores.
const (
	datagram = 1372
	offered  = 120e3 // a second
)

// Of round trips beside a load: where they are answered, and in how many intervals load is added. 16 have all connections carry some.
const (
	responsePort      = 5601
	responseIntervals = 20
)

// task is what every round does once.
type task struct {
	of      string // the case
	engine  string
	flows   int
	ports   int  // of the link; 0: one
	rules   bool // weir's rules are loaded, too
	control bool
	stand   *stand // one end alone, instead of a tunnel

	silent int // runs of CaseRPM in which nothing was answered

	rate stats.Sample // Gbit/s; of UDP: thousand packets a second; of CaseRPM: round trips a minute
	cost stats.Sample // CPU seconds of both ends, or of the workers, for a gigabit
}

func (t *task) estimate(o *Options) time.Duration {
	if t.stand != nil {
		return 2 * standTime
	}
	return time.Duration(o.Seconds)*time.Second + start
}

func (t *task) String() string {
	switch {
	case t.stand != nil:
		return t.stand.String()
	case t.of == CaseUDP, t.of == CaseRPM:
		return fmt.Sprintf("%s, %s", t.of, t.engine)
	case t.of == CaseWide:
		return fmt.Sprintf("%s, %s, %s", t.of, units.Plural(max(t.ports, 1), "port"), units.Plural(t.flows, "connection"))
	case t.rules:
		return fmt.Sprintf("%s, %s, with rules", t.of, t.engine)
	}
	return fmt.Sprintf("%s, %s, %s", t.of, t.engine, units.Plural(t.flows, "connection"))
}

// tasks returns what every round does. The first is measured twice, as a control.
func (o *Options) tasks() (all []*task) {
	for _, name := range []string{CaseGSO, CaseNIC} {
		if o.has(name) {
			for _, engine := range []string{Weir, Released} {
				all = append(all, &task{of: name, engine: engine, flows: o.Flows})
				if o.Flows > 1 {
					all = append(all, &task{of: name, engine: engine, flows: 1})
				}
			}
		}
	}
	if o.has(CaseUDP) {
		all = append(all, &task{of: CaseUDP, engine: Weir, flows: 1}, &task{of: CaseUDP, engine: Released, flows: 1})
	}
	if o.has(CaseTCX) {
		all = append(all, &task{of: CaseTCX, engine: Weir, flows: o.Flows}, &task{of: CaseTCX, engine: Weir, flows: o.Flows, rules: true})
	}
	if o.has(CaseWide) {
		for _, ports := range []int{0, widePorts()} {
			all = append(all, &task{of: CaseWide, engine: Weir, flows: o.Flows, ports: ports})
			if o.Flows > 1 {
				all = append(all, &task{of: CaseWide, engine: Weir, flows: 1, ports: ports})
			}
		}
	}
	if o.has(CaseRPM) {
		all = append(all, &task{of: CaseRPM, engine: Weir, flows: 1}, &task{of: CaseRPM, engine: Released, flows: 1})
	}
	if o.has(CaseAlone) {
		for i := range stands {
			all = append(all, &task{of: CaseAlone, engine: Weir, stand: &stands[i]})
		}
	}
	again := *all[0]
	again.control = true
	return append(all, &again)
}

// widePorts is how many ports a wide link has: one for each core, and several.
func widePorts() int { return min(max(runtime.NumCPU(), 2), 16) }

// bench is one run of the benchmark.
type bench struct {
	options  *Options
	bed      *testbed.Testbed
	tool     *iperf.Tool
	sink     *os.File
	frames   bool // the wires carry frames as those of a network card
	progress *progress.Progress
	tasks    []*task
	crypto   crypto
}

// Run measures. With an error it also returns what was measured until then.
func Run(ctx context.Context, o Options) (d *report.Document, err error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	b := &bench{options: &o}
	started := time.Now().UTC().Truncate(time.Second)
	about, err := hostinfo.Describe()
	if err != nil {
		return nil, err
	}
	if b.tool, err = iperf.Find(ctx); err != nil {
		return nil, err
	}
	err = b.measure(ctx)
	if !slices.ContainsFunc(b.tasks, func(t *task) bool { return len(t.rate) > 0 }) {
		return nil, err
	}
	d = b.document()
	d.Started, d.Machine = started, about
	return d, err
}

func (b *bench) measure(ctx context.Context) (err error) {
	b.bed, err = testbed.Open(ctx, testbed.Options{Name: b.options.name, Topology: topology(), Offloads: lab.OffloadsOn, Program: b.options.Program})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.bed.Close()) }()
	b.tasks = b.options.tasks()
	b.progress = progress.New(b.options.Progress, len(b.tasks)*b.options.Runs, b.options.Estimate())
	defer b.progress.End()
	if b.sink, err = b.openSink(); err != nil {
		return err
	}
	defer b.sink.Close()
	for round, t := range stats.Interleave(b.options.Runs, b.tasks) {
		b.progress.Step("%s, round %d", t, round+1)
		if t == b.tasks[0] {
			if err := b.crypto.measure(ctx); err != nil {
				return err
			}
		}
		if err := b.on(ctx, t); err != nil {
			return fmt.Errorf("%s: %w", t, err)
		}
		b.progress.Done(1)
	}
	return nil
}

// on does a task once.
func (b *bench) on(ctx context.Context, t *task) (err error) {
	if t.stand != nil {
		return b.alone(t)
	}
	if err := b.setFrames(t.of == CaseNIC || t.of == CaseWide || t.of == CaseRPM); err != nil {
		return err
	}
	ends, stop, err := b.startTunnel(ctx, t.engine, t.ports)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if t.rules {
		end, err := paths.StartWeir(ctx, b.bed, "pass\n", paths.WeirOptions{Hook: "tcx"})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, end()) }()
	}
	if t.of == CaseRPM {
		return b.respond(ctx, t)
	}
	return b.load(ctx, t, ends)
}

// respond measures round trips a minute beside a load that the host of the LAN sends.
func (b *bench) respond(ctx context.Context, t *task) error {
	in := func(host string) probe.Place { return func(f func() error) error { return b.bed.Lab.Do(host, f) } }
	most := time.Duration(b.options.Seconds) * time.Second
	r := probe.Responsiveness{Client: in(lab.LAN), Server: in(testbed.WAN2), Address: netip.AddrPortFrom(farHost, responsePort), Up: true,
		Interval: most / responseIntervals, Most: most}
	found, err := r.Run(ctx)
	if errors.Is(err, probe.ErrUnanswered) { // the report says how often
		t.silent++
		return nil
	}
	if err != nil {
		return err
	}
	t.rate = append(t.rate, found.Value)
	return nil
}

// load sends through the tunnel.
func (b *bench) load(ctx context.Context, t *task, ends []*process) error {
	used := func() (sum float64, err error) {
		for _, p := range ends {
			s, err := cpu.ProcessTime(p.cmd.Process.Pid)
			if err != nil {
				return 0, err
			}
			sum += s
		}
		return sum, nil
	}
	var before float64
	var failed error
	l := iperf.Load{Pair: b.pair(), Streams: t.flows, Time: time.Duration(b.options.Seconds) * time.Second, Begun: func() { before, failed = used() }}
	if t.of == CaseUDP {
		l.UDP, l.Length, l.Rate = true, datagram, offered*datagram*8
	}
	all, err := b.tool.Run(ctx, l)
	if err != nil {
		return err
	}
	after, err := used()
	if err := errors.Join(failed, err); err != nil {
		return err
	}
	r := all[0]
	t.cost = append(t.cost, (after-before)/(r.Received*8e-9))
	if t.of == CaseUDP {
		t.rate = append(t.rate, float64(r.Packets-r.Lost)/r.Seconds/1e3)
		return nil
	}
	t.rate = append(t.rate, r.Rate/1e9)
	return nil
}
