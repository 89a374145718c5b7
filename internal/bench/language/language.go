package language

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/bench/option"
	"weir/internal/bench/report"
	"weir/internal/host/hostinfo"
	"weir/internal/stats"
	"weir/internal/units"
	"weir/pf/lint"
	"weir/pf/resolve"
	"weir/pf/source"
)

// Limits of the cost of reading rules: how much longer ten times as many may take, and
// how many bytes each may use.
const (
	mostGrowth = 13
	mostMemory = 3000
)

// sizes are the compared numbers of rules.
var sizes = [...]int{6_000, 60_000}

// tableSize is the number of addresses in the table.
const tableSize = 1_000_000

// Options choose how often it measures.
type Options struct {
	Runs     int    // rounds, each of which reads all files
	Command  string // command that repeats this
	Progress io.Writer
}

// Defaults are the options of weir bench language without flags.
func Defaults() Options { return Options{Runs: 5} }

// Check returns the first error in the options.
func (o *Options) Check() error { return option.Runs(o.Runs) }

// Report is the cost of reading rules.
type Report struct {
	Command string
	Started time.Time
	Machine hostinfo.Machine
	Rules   []Cost
	Table   TableCost
	Control stats.Control
}

// Cost is the cost of one kind of file.
type Cost struct {
	Kind      string
	Optimized bool           // as with weir check -o basic
	Seconds   []stats.Sample // CPU time to read one file, for each of sizes
	Bytes     int            // bytes in use for each rule after reading

	file func(rules int) []byte
}

// Name returns "all different, -o basic".
func (c *Cost) Name() string { return c.Kind + ", -o " + c.level() }

func (c *Cost) level() string {
	if c.Optimized {
		return "basic"
	}
	return "none"
}

// growth returns how much longer the largest file takes than the smallest.
func (c *Cost) growth() float64 {
	return c.Seconds[len(c.Seconds)-1].Median() / c.Seconds[0].Median()
}

// TableCost is the cost of a file with a table's addresses.
type TableCost struct {
	Seconds stats.Sample // CPU time
	Bytes   int          // bytes in use for each of the tableSize addresses
}

// OK reports whether all costs are within their limits.
func (r *Report) OK() bool {
	return !slices.ContainsFunc(r.Rules, func(c Cost) bool { return c.growth() > mostGrowth || c.Bytes > mostMemory })
}

// file is one of the files that are measured in turn.
type file struct {
	name string
	read func() error
}

// Run measures the cost of reading, resolving and checking rules. Each round reads the
// files of every size as often as gives the same number of rules. So a short measurement
// has the same share of garbage collection as a long one. The first kind is measured
// twice in its turn, as if it were two.
func Run(ctx context.Context, o Options) (*Report, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	m, err := hostinfo.Describe()
	if err != nil {
		return nil, err
	}
	r := &Report{Command: o.Command, Started: time.Now().UTC().Truncate(time.Second), Machine: m, Control: stats.NewControl()}
	for _, kind := range kinds {
		for _, optimized := range []bool{false, true} {
			r.Rules = append(r.Rules, newCost(kind, optimized))
		}
	}
	again := newCost(kinds[0], false)
	files := []file{{"a table's file", r.Table.read}, {r.Rules[0].Name(), func() error { return readAll(&r.Rules[0], &again) }}}
	for i := range r.Rules[1:] {
		c := &r.Rules[1+i]
		files = append(files, file{c.Name(), func() error { return readAll(c) }})
	}
	for round, f := range stats.Interleave(o.Runs, files) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if o.Progress != nil {
			fmt.Fprintf(o.Progress, "round %d of %d: %s\n", round+1, o.Runs, f.name)
		}
		if err := f.read(); err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
	}
	for i, n := range sizes {
		r.Control.Add(fmt.Sprintf("%s, %s rules", again.Name(), units.Thousands(n)), r.Rules[0].Seconds[i], again.Seconds[i])
	}
	return r, nil
}

func newCost(kind kind, optimized bool) Cost {
	return Cost{Kind: kind.name, Optimized: optimized, Seconds: make([]stats.Sample, len(sizes)), file: kind.file}
}

// readAll does one round, in which costs of the same kind take turns at each size. So a
// disturbance of some seconds meets sizes and costs alike.
func readAll(costs ...*Cost) error {
	for size := range sizes {
		for _, c := range costs {
			if err := c.read(size); err != nil {
				return fmt.Errorf("%d rules: %w", sizes[size], err)
			}
		}
	}
	return nil
}

// read reads the file of a size, and smaller ones more than once.
func (c *Cost) read(size int) error {
	n := sizes[size]
	text, times, total := c.file(n), sizes[len(sizes)-1]/n, time.Duration(0)
	for range times {
		took, used, err := reading(text, resolve.Settings{Optimize: c.Optimized})
		if err != nil {
			return err
		}
		total += took
		c.Bytes = used / n
	}
	c.Seconds[size] = append(c.Seconds[size], total.Seconds()/float64(times))
	return nil
}

// reading reads a configuration. It returns the CPU time, garbage collection included,
// and the bytes in use afterwards.
func reading(text []byte, settings resolve.Settings) (took time.Duration, used int, err error) {
	before := inUse()
	start, err := coresTime()
	if err != nil {
		return 0, 0, err
	}
	rules, list := resolve.LoadWith("bench.conf", text, nil, settings)
	if rules != nil {
		lint.Warn(rules, &list)
	}
	runtime.GC() // a collection already running would count for large files only
	end, err := coresTime()
	if err != nil {
		return 0, 0, err
	}
	if err := list.Err(); err != nil {
		return 0, 0, err
	}
	used = int(inUse() - before)
	runtime.KeepAlive(rules)
	return end - start, used, nil
}

// coresTime returns the CPU time of this process. Unlike a clock it does not depend on
// other work on the machine.
func coresTime() (time.Duration, error) {
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		return 0, fmt.Errorf("ask for the time used: %w", err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()), nil
}

// read reads a file with a table's addresses.
func (c *TableCost) read() error {
	var b strings.Builder
	for i := range tableSize {
		fmt.Fprintf(&b, "10.%d.%d.%d\n", i>>16, i>>8&255, i&255)
	}
	text := []byte("table <t> file \"t\"\npass from <t>\n")
	took, used, err := reading(text, resolve.Settings{Files: source.Files{"t": {Text: b.String()}}})
	if err != nil {
		return err
	}
	c.Seconds = append(c.Seconds, took.Seconds())
	c.Bytes = used / tableSize
	return nil
}

// inUse returns the bytes in use after garbage collection.
func inUse() int64 {
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Document returns the report as a document.
func (r *Report) Document() *report.Document {
	least, most := units.Thousands(sizes[0]), units.Thousands(sizes[len(sizes)-1])
	table := report.Table{Columns: []report.Column{{Name: "rules", Words: true}, {Name: "-o", Words: true}, {Name: least + " rules", Unit: "s"},
		{Name: most + " rules", Unit: "s"}, {Name: "times as long"}, {Name: "in use for a rule", Unit: "bytes"}}}
	curves := &report.Curves{X: report.Axis{Label: "rules", Log: true}, Y: report.Axis{Label: "time of the cores", Unit: "s", Log: true}}
	d := &report.Document{Kind: "language", Title: "What it costs to read rules", Command: r.Command, Started: r.Started,
		Machine: r.Machine, Control: &r.Control, Method: []string{
			fmt.Sprintf("Files of %s and of %s rules are read, resolved and checked for warnings, with and without weir check -o basic. Each round reads the smaller files more often, so that the number of rules is the same. A table's file has %s addresses.",
				least, most, units.Thousands(tableSize)),
			"Time is the CPU time of this process on all cores, garbage collection included. Bytes in use are counted after garbage collection.",
			"The kinds take turns in random order. In its turn the first is measured twice, as if it were two."}}
	for i := range r.Rules {
		c := &r.Rules[i]
		row, line := []string{c.Kind, c.level()}, report.Series{Name: c.Name(), Ours: true}
		for k, n := range sizes {
			row = append(row, report.Figure(c.Seconds[k].Median()))
			line.Points = append(line.Points, report.Point{X: float64(n), Runs: c.Seconds[k]})
			d.Measure(report.Lower, "s", c.Seconds[k], fmt.Sprintf("language: %s, %d rules", c.Name(), n))
		}
		table.Rows = append(table.Rows, append(row, fmt.Sprintf("%.1f", c.growth()), units.Thousands(c.Bytes)))
		curves.Series = append(curves.Series, line)
	}
	d.Measure(report.Lower, "s", r.Table.Seconds, fmt.Sprintf("language: a table of %d addresses", tableSize))
	d.Verdicts = r.verdicts()
	d.Sections = []report.Section{{Title: "Time and memory",
		Text: []string{fmt.Sprintf("A table's file of %s addresses: %s s, %d bytes in use for an address.",
			units.Thousands(tableSize), report.Figure(r.Table.Seconds.Median()), r.Table.Bytes)},
		Tables: []report.Table{table}, Charts: []report.Chart{{Title: "Time to read a file", Curves: curves}}}}
	return d
}

// verdicts compares the measurements with the limits.
func (r *Report) verdicts() []string {
	slowest := slices.MaxFunc(r.Rules, func(a, b Cost) int { return cmp.Compare(a.growth(), b.growth()) })
	largest := slices.MaxFunc(r.Rules, func(a, b Cost) int { return cmp.Compare(a.Bytes, b.Bytes) })
	over := func(is bool) string {
		if is {
			return "over"
		}
		return "within"
	}
	return []string{
		fmt.Sprintf("Ten times as many rules take at most %.1f times as long (%s), %s the bound of %d.",
			slowest.growth(), slowest.Name(), over(slowest.growth() > mostGrowth), mostGrowth),
		fmt.Sprintf("A rule takes at most %s bytes (%s), %s the bound of %s.",
			units.Thousands(largest.Bytes), largest.Name(), over(largest.Bytes > mostMemory), units.Thousands(mostMemory)),
	}
}

// kind is a kind of file.
type kind struct {
	name string
	file func(rules int) []byte
}

var kinds = []kind{
	{"all different", differentRules},
	{"of lists", listedRules},
	{"one block", blockRules},
}

// differentRules returns a file of rules of many kinds, in no order.
func differentRules(n int) []byte {
	forms := [...]string{
		"pass in on em%[1]d proto tcp from 10.%[2]d.%[3]d.%[4]d to 192.0.2.%[4]d port %[5]d label \"r$nr\"\n",
		"block in quick on em0 inet from 172.16.%[3]d.%[4]d to any\n",
		"match out on em1 inet from 10.%[2]d.%[3]d.0/24 to any nat-to 198.51.100.%[4]d\n",
		"pass out proto udp to any port %[5]d keep state (max %[5]d)\n",
		"block return in log inet6 from 2001:db8:%[5]x::/48 to any\n",
		"pass in proto tcp from any to any port %[5]d flags any\n",
	}
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, forms[i%len(forms)], i%3, i>>16, i>>8&255, i&255, 1+i%65000)
	}
	return []byte(b.String())
}

// listedRules returns a file of statements that expand to a thousand rules each.
func listedRules(n int) []byte {
	var b strings.Builder
	for i := range n / 1000 {
		fmt.Fprintf(&b, "pass in quick on em0 proto tcp from { ")
		for k := range 100 {
			fmt.Fprintf(&b, "10.%d.%d.0/24 ", i, k)
		}
		fmt.Fprintf(&b, "} to 192.0.2.%d port { 21 22 25 53 80 110 143 443 993 995 }\n", i)
	}
	return []byte(b.String())
}

// blockRules returns a file of rules that the optimizer has to compare with each other.
func blockRules(n int) []byte {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "pass in quick on em%d proto %s from 10.%d.%d.%d to any port %d\n",
			i%4, []string{"tcp", "udp"}[i&1], i>>16, i>>8&255, i&255, 1+i%5000)
	}
	return []byte(b.String())
}
