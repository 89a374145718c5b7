package pppoe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"time"

	"weir/internal/bench/cpu"
	"weir/internal/bench/iperf"
	"weir/internal/bench/option"
	"weir/internal/bench/paths"
	"weir/internal/bench/progress"
	"weir/internal/bench/report"
	"weir/internal/bench/testbed"
	"weir/internal/fw/bpfload"
	"weir/internal/host/hostinfo"
	"weir/internal/lab"
	"weir/internal/stats"
	"weir/internal/units"
)

const (
	// oneFloor is what one connection has to carry of what many do.
	oneFloor = 0.95
	// mostCPU is what a gigabit may take of the cores with a session, as a part of what it takes without.
	mostCPU = 1.05
	// mostSpread is how many times the smallest CPU time of a path's runs the largest may be for a verdict.
	mostSpread = 1.5
	// reached is the share of the offered rate that has to arrive for a run's CPU time to count.
	reached = 0.95
	// leastSeconds is the shortest run of iperf3.
	leastSeconds = time.Second
	// startPath is about how long weir and a session take to start, and startLoad iperf3.
	startPath, startLoad = 4 * time.Second, 300 * time.Millisecond
)

// tcpServers are the far host's addresses on each path.
var tcpServers = map[string]string{paths.WeirNAT: paths.DetourServer().String(), paths.WeirNATPPPoE: paths.SessionServer().String()}

// A crowd is a number of connections in one direction on a path.
type crowd struct {
	path        string
	connections int
	down        bool // to the LAN
	control     bool

	rate    stats.Sample // Gbit/s that arrived
	cpu     stats.Sample // core seconds of a gigabit
	drowned int          // runs that other work hid
	short   int          // runs that did not reach the rate
}

func (c *crowd) way() string {
	if c.down {
		return "to the LAN"
	}
	return "from the LAN"
}

func (c *crowd) String() string {
	return fmt.Sprintf("%s, %s, %s", c.path, units.Plural(c.connections, "connection"), c.way())
}

// A stretch is a path with what is measured while it stands.
type stretch struct {
	path   string
	crowds []*crowd
}

// stretches are what each round measures. The control is a start of its own.
func (o *Options) stretches() (all []*stretch) {
	for _, path := range []string{paths.WeirNAT, paths.WeirNATPPPoE} {
		s := &stretch{path: path}
		for _, n := range o.Connections {
			for _, down := range []bool{false, true} {
				s.crowds = append(s.crowds, &crowd{path: path, connections: n, down: down})
			}
		}
		all = append(all, s)
	}
	again := &stretch{path: paths.WeirNAT, crowds: []*crowd{{path: paths.WeirNAT, connections: o.Connections[0], control: true}}}
	return append(all, again)
}

// CheckTCP returns the first error in the options of TCP.
func (o *Options) CheckTCP() error {
	return cmp.Or(
		option.Runs(o.Runs),
		option.Within("--seconds", leastSeconds.Seconds(), 600, o.Seconds.Seconds()),
		option.Within("--connections", 1, 10_000, o.Connections...),
		option.Each("--connections", []int{len(o.Connections)}, func(n int) bool { return n > 0 }, "one number or more"),
		option.Within("--rate", 0.001, 400, o.Rate/1e9),
	)
}

// TCPEstimate returns about how long TCP takes.
func (o *Options) TCPEstimate() (total time.Duration) {
	for _, s := range o.stretches() {
		total += startPath + time.Duration(len(s.crowds))*(o.Seconds.Truncate(time.Second)+startLoad+2*cpu.Rest)
	}
	return time.Duration(o.Runs) * total
}

// TCP measures what real connections carry at an offered rate, with a session and without.
func TCP(ctx context.Context, o Options) (d *report.Document, err error) {
	if err := o.CheckTCP(); err != nil {
		return nil, err
	}
	m, err := hostinfo.Describe()
	if err != nil {
		return nil, err
	}
	started := time.Now()
	tool, err := iperf.Find(ctx)
	if err != nil {
		return nil, err
	}
	b, err := testbed.Open(ctx, testbed.Options{Name: o.name, Program: o.Program, Offloads: lab.OffloadsOff})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	undo, err := joinNone(b)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, undo()) }()
	all := o.stretches()
	n := 0
	for _, s := range all {
		n += len(s.crowds)
	}
	p := progress.New(o.Progress, o.Runs*n, o.TCPEstimate())
	defer p.End()
	for round, s := range stats.Interleave(o.Runs, all) {
		p.Step("start %s, round %d of %d", s.path, round+1, o.Runs)
		if err := s.measure(ctx, b, &o, tool, p); err != nil {
			return nil, fmt.Errorf("%s: %w", s.path, err)
		}
	}
	return tcpDocument(&o, all, tool, m, started), nil
}

// joinNone has the far host join no frames (GRO), as the kernel joins none of a session: it does the same work with one and
// without. A program takes the place of GRO, without which veth drops what XDP sends it.
func joinNone(b *testbed.Testbed) (undo func() error, err error) {
	end := testbed.FarEnd
	if err := b.Lab.SetGRO(end.Host, end.Device, false); err != nil {
		return nil, err
	}
	var l *bpfload.Link
	err = b.Lab.Do(end.Host, func() error {
		device, err := net.InterfaceByName(end.Device)
		if err != nil {
			return fmt.Errorf("find %s: %w", end.Device, err)
		}
		p, err := bpfload.NewPass()
		if err != nil {
			return err
		}
		defer p.Close()
		l, err = bpfload.Attach(p, bpfload.XDP, device.Index)
		return err
	})
	if err != nil {
		return nil, err
	}
	return func() error { return b.Lab.Do(end.Host, l.Close) }, nil
}

// measure does all of a stretch once.
func (s *stretch) measure(ctx context.Context, b *testbed.Testbed, o *Options, tool *iperf.Tool, p *progress.Progress) (err error) {
	stop, err := paths.StartForSockets(ctx, b, s.path, paths.SocketOptions{Hook: "xdp", Detour: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	for _, c := range s.crowds {
		p.Step("%s", c)
		if err := c.measure(ctx, b, o, tool); err != nil {
			return fmt.Errorf("%s: %w", c, err)
		}
		p.Done(1)
	}
	return nil
}

// measure measures once.
func (c *crowd) measure(ctx context.Context, b *testbed.Testbed, o *Options, tool *iperf.Tool) error {
	load := iperf.Load{
		Streams: c.connections, Time: o.Seconds.Truncate(time.Second), Rate: o.Rate, Reverse: c.down, Congestion: "cubic",
		Pair: iperf.Pair{
			Address: tcpServers[c.path],
			Client:  func(p *exec.Cmd) error { return b.Lab.Start(lab.LAN, p) },
			Server:  func(p *exec.Cmd) error { return b.Lab.Start(testbed.FarEnd.Host, p) },
			Await: func(ctx context.Context, port uint16) error {
				return b.Lab.AwaitListener(ctx, testbed.FarEnd.Host, port)
			},
		},
	}
	rate := 0.0
	charge, err := cpu.Measure(ctx, func() (programs, gigabits float64, err error) {
		found, err := tool.Run(ctx, load)
		if err != nil {
			return 0, 0, err
		}
		rate = found[0].Rate
		return found[0].CPU(), found[0].Received * 8 / 1e9, nil
	})
	if err != nil {
		return err
	}
	c.rate = append(c.rate, rate/1e9)
	switch {
	case rate < reached*o.Rate:
		c.short++
	case charge.Drowned():
		c.drowned++
	default:
		c.cpu = append(c.cpu, charge.PerGigabit())
	}
	return nil
}
