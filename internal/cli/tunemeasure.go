package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"weir/internal/bench/forward"
	"weir/internal/bench/option"
	"weir/internal/bench/paths"
	"weir/internal/bench/testbed"
	"weir/internal/host/doctor"
	"weir/internal/host/netif"
	"weir/internal/host/tune"
	"weir/internal/host/tune/db"
	"weir/internal/lab"
)

// labMeasurer runs a short `weir bench` to measure what a lab on this machine can show:
// settings of the kernel's stack, for the whole host or for a namespace.
type labMeasurer struct {
	path    string
	rooms   map[string]bool
	testbed *testbed.Testbed // nil: not built yet
	entry   string           // the faster way into the path
	seconds time.Duration
}

func newLabMeasurer(path string) *labMeasurer {
	m := &labMeasurer{path: path, rooms: map[string]bool{}, seconds: 300 * time.Millisecond}
	for _, key := range []string{
		"net.netfilter.nf_conntrack_max", "net.netfilter.nf_conntrack_buckets", "net.ipv4.neigh.default.gc_thresh1",
		"net.ipv4.neigh.default.gc_thresh2", "net.ipv4.neigh.default.gc_thresh3",
	} {
		m.rooms[key] = true
	}
	return m
}

// Blind says what a lab cannot show.
func (m *labMeasurer) Blind(c *tune.Change) string {
	switch {
	case c.Scope == "":
		return "a lab has no card, and its cores are the machine's"
	case c.Role == db.Endpoint:
		return "it affects connections that end on the host, over a path with delay: a lab within one machine has none"
	case c.Role == db.Hardening:
		return "it protects and does not affect speed"
	case m.rooms[c.Key]:
		return "it makes room, and has no effect on speed until the room is used up"
	}
	return ""
}

// About says what is measured.
func (m *labMeasurer) About() string {
	return "packets/s of one core, 64 bytes, weir bench's path " + m.path
}

// Measure forwards through a lab for a moment. Settings of a namespace are made in the
// lab's router. Settings of the host hold there too.
func (m *labMeasurer) Measure(ctx context.Context, c *tune.Change, value string) (tune.Measured, error) {
	if err := m.open(ctx); err != nil {
		return tune.Measured{}, err
	}
	o := forward.RateOptions{Hook: "xdp", Entry: m.entry, Flows: 1000, Seconds: m.seconds}
	if c.Scope == "namespace" {
		o.Prepare = func() error { return netif.SetSysctl(strings.ReplaceAll(c.Key, ".", "/"), value) }
	}
	rate, _, err := forward.Rate(ctx, m.testbed, m.path, o)
	return tune.Measured{Rate: rate}, err
}

// open builds the lab and chooses how frames enter the path, as `weir bench forward`
// does.
func (m *labMeasurer) open(ctx context.Context) error {
	if m.testbed != nil {
		return nil
	}
	var err error
	if m.testbed, err = testbed.Open(ctx, testbed.Options{Offloads: lab.OffloadsOff}); err != nil {
		return err
	}
	entries, err := paths.EntryNames(m.path, "xdp")
	if err != nil || len(entries) < 2 {
		return err
	}
	best := 0.0
	for _, entry := range entries {
		rate, _, err := forward.Rate(ctx, m.testbed, m.path, forward.RateOptions{Hook: "xdp", Entry: entry, Flows: 1000, Seconds: m.seconds})
		if err != nil {
			return err
		}
		if rate > best {
			best, m.entry = rate, entry
		}
	}
	return nil
}

// close removes the lab.
func (m *labMeasurer) close() error {
	if m.testbed == nil {
		return nil
	}
	return m.testbed.Close()
}

// liveMeasurer uses the counters that `weir doctor` reads, under the host's present load:
// packets per core time spent on them, and losses.
type liveMeasurer struct {
	read     func(ctx context.Context, interval time.Duration) (*doctor.Snapshot, error)
	interval time.Duration
}

// Blind says that it measures only cards and cores.
func (m *liveMeasurer) Blind(c *tune.Change) string {
	if c.Scope != "" {
		return "the counters of cards and cores cannot show its effect"
	}
	return ""
}

// About says what is measured.
func (m *liveMeasurer) About() string {
	return "packets per second of a core's time, by the host's own counters under its load"
}

// leastLoad is the least number of packets per second. With fewer, the counters do not
// show what a packet costs.
const leastLoad = 5000

// Measure reads the counters twice.
func (m *liveMeasurer) Measure(ctx context.Context, c *tune.Change, _ string) (tune.Measured, error) {
	s, err := m.read(ctx, m.interval)
	if err != nil {
		return tune.Measured{}, err
	}
	return liveRate(s, c.Card)
}

// liveRate returns the packets that the cards took, divided by the time that the cores
// spent in the kernel, and the share that was lost.
func liveRate(s *doctor.Snapshot, card string) (tune.Measured, error) {
	packets, lost, err := taken(s, card)
	if err != nil {
		return tune.Measured{}, err
	}
	var spent, all float64
	cores := 0
	for core, b := range s.After.CPUs {
		a, known := s.Before.CPUs[core]
		if !known {
			continue // this core has just come online
		}
		cores++
		work := grown(b.IRQ, a.IRQ) + grown(b.Softirq, a.Softirq) + grown(b.System, a.System)
		spent += work
		all += work + grown(b.User, a.User) + grown(b.Nice, a.Nice) + grown(b.Idle, a.Idle) + grown(b.IOWait, a.IOWait) + grown(b.Steal, a.Steal)
	}
	if spent == 0 {
		return tune.Measured{}, errors.New("the cores spent no time on the packets that the kernel counts; measure under more load")
	}
	seconds := spent / all * s.Seconds * float64(cores)
	return tune.Measured{Rate: packets / seconds, Loss: lost / (packets + lost)}, nil
}

// grown is [doctor.Grown]. The kernel sometimes corrects idle time backwards.
func grown(now, then uint64) float64 { return float64(doctor.Grown(now, then)) }

// taken returns how many packets the cards took and lost. The card under test counts,
// whatever kind it is. Too few packets are an error, because they do not show what one
// costs.
func taken(s *doctor.Snapshot, card string) (packets, lost float64, err error) {
	if s.Before == nil || s.After == nil || s.Seconds <= 0 {
		return 0, 0, errors.New("the counters could not be read twice")
	}
	for i := range s.Interfaces {
		n := &s.Interfaces[i]
		if n.Kind != string(netif.Physical) && n.Name != card {
			continue
		}
		a, known := s.Before.Links[n.Name]
		if b := s.After.Links[n.Name]; known {
			packets += grown(b.RxPackets, a.RxPackets)
			lost += grown(b.RxMissed, a.RxMissed) + grown(b.RxFIFO, a.RxFIFO)
		}
	}
	for core, b := range s.After.Softnet {
		if a, known := s.Before.Softnet[core]; known {
			lost += grown(b.Dropped, a.Dropped)
		}
	}
	if packets/s.Seconds < leastLoad {
		return 0, 0, fmt.Errorf("the cards receive %.0f packets per second: the cost of one shows only from %d on; measure under load", packets/s.Seconds, leastLoad)
	}
	return packets, lost, nil
}

// measureFlags holds the flags of apply --measure.
type measureFlags struct {
	on       bool
	rounds   int
	path     string
	interval time.Duration
}

func (m *measureFlags) add(c *cobra.Command) {
	flags := c.Flags()
	flags.BoolVar(&m.on, "measure", false, "measure each change and keep it only if it is proven to help")
	flags.IntVar(&m.rounds, "rounds", 5, "with --measure: `rounds` of each")
	flags.StringVar(&m.path, "path", paths.Kernel, "with --measure: `path` of the lab: kernel, nft, nft-nat, weir or weir-nat")
	flags.DurationVar(&m.interval, "interval", 3*time.Second, "with --measure: `time` to watch the host's counters")
}

const maxRounds = 100

// check refuses flags that contradict each other.
func (m *measureFlags) check(c *cobra.Command, root string) error {
	var err error
	switch {
	case !m.on:
	case c.Flags().Changed("confirm"):
		err = errors.New("--measure takes no --confirm: it undoes what does not help")
	case root != "":
		err = errors.New("--measure takes no --root: it measures this host")
	case m.rounds < tune.LeastRounds || m.rounds > maxRounds:
		err = fmt.Errorf("--rounds %d: want %d to %d", m.rounds, tune.LeastRounds, maxRounds)
	case m.interval < leastInterval || m.interval > longestInterval:
		err = fmt.Errorf("--interval %s: want %s to %s", m.interval, leastInterval, longestInterval)
	default:
		err = option.Words("--path", []string{m.path}, paths.Kernel, paths.Nft, paths.NftNAT, paths.Weir, paths.WeirNAT)
	}
	if err != nil {
		return &UsageError{fmt.Errorf("tune apply: %w", err)}
	}
	return nil
}

// measure makes a plan's changes one by one, keeps those that prove to help, and prints
// the results.
func (e *Env) measure(ctx context.Context, host *tune.Host, plan *tune.Plan, f *measureFlags, named, asJSON bool) (err error) {
	ctx, stop := signal.NotifyContext(ctx, unix.SIGINT, unix.SIGTERM, unix.SIGHUP)
	defer stop()
	defer outlivePipe()()
	inLab, byTime := newLabMeasurer(f.path), &liveMeasurer{e.snapshot, f.interval}
	defer func() { err = errors.Join(err, inLab.close()) }()
	findings, err := host.Measure(ctx, plan, tune.MeasureOptions{
		Measurers: []tune.Measurer{inLab, &cycleMeasurer{byTime, countCycles}, byTime}, Rounds: f.rounds, Named: named,
		Progress: func(text string) { fmt.Fprintf(e.Stderr, "weir: tune: %s\n", text) },
	})
	if err != nil {
		return fmt.Errorf("tune: %w", err)
	}
	return e.print(asJSON, findings, func(w io.Writer) error { return tune.WriteFindings(w, findings) })
}
