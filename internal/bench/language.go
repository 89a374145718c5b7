package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/machine"
	"weir/internal/stats"
	"weir/pf/lint"
	"weir/pf/resolve"
	"weir/pf/source"
)

// What reading rules may cost: how much longer ten times as many take, and bytes
// that are in use for each.
const (
	languageGrowth = 13
	languageMemory = 3000
)

// languageSizes are the numbers of rules that are compared.
var languageSizes = [...]int{10_000, 100_000}

// tableSize is the number of addresses of the table that is read.
const tableSize = 1_000_000

// LanguageReport is what reading rules costs.
type LanguageReport struct {
	Machine machine.Machine `json:"machine"`
	Rules   []LanguageCost  `json:"rules"`
	Table   TableCost       `json:"table"`
}

// LanguageCost is what files of one kind cost.
type LanguageCost struct {
	Kind      string    `json:"kind"`
	Optimized bool      `json:"optimized"` // as with weir check -o basic
	Seconds   []float64 `json:"seconds"`   // of all cores, for each of languageSizes, once
	Growth    float64   `json:"growth"`    // of the time, from the first to the last
	Bytes     int       `json:"bytes"`     // in use for each rule when all are read
}

// TableCost is what a file with the addresses of a table costs.
type TableCost struct {
	Addresses int     `json:"addresses"`
	Seconds   float64 `json:"seconds"` // of all cores
	Bytes     int     `json:"bytes"`   // in use for each address
}

// OK reports whether all is within bounds.
func (r *LanguageReport) OK() bool {
	return !slices.ContainsFunc(r.Rules, func(c LanguageCost) bool { return c.Growth > languageGrowth || c.Bytes > languageMemory })
}

// Language measures what it costs to read, resolve and check rules: medians of
// this many rounds. In each the files of every size are read as often as gives
// the same number of rules, so that a short measurement has the share of
// collecting garbage that a long one has.
func Language(rounds int, progress io.Writer) (*LanguageReport, error) {
	machine, err := machine.Describe()
	if err != nil {
		return nil, err
	}
	report := &LanguageReport{Machine: machine}
	for _, kind := range languageKinds {
		for _, optimized := range []bool{false, true} {
			fmt.Fprintf(progress, "%s, optimized: %t\n", kind.name, optimized)
			cost, err := languageCost(kind, optimized, rounds)
			if err != nil {
				return nil, err
			}
			report.Rules = append(report.Rules, cost)
		}
	}
	fmt.Fprintf(progress, "a table's file of %d addresses\n", tableSize)
	report.Table, err = tableCost(rounds)
	return report, err
}

func languageCost(kind languageKind, optimized bool, rounds int) (LanguageCost, error) {
	cost := LanguageCost{Kind: kind.name, Optimized: optimized}
	most := languageSizes[len(languageSizes)-1]
	samples := make([]stats.Sample, len(languageSizes))
	for range rounds {
		for i, n := range languageSizes {
			text, times, total := kind.file(n), most/n, time.Duration(0)
			for range times {
				took, used, err := reading(text, resolve.Settings{Optimize: optimized})
				if err != nil {
					return cost, fmt.Errorf("%s, %d rules: %w", kind.name, n, err)
				}
				total += took
				cost.Bytes = used / n
			}
			samples[i] = append(samples[i], total.Seconds()/float64(times))
		}
	}
	for _, sample := range samples {
		cost.Seconds = append(cost.Seconds, sample.Median())
	}
	cost.Growth = cost.Seconds[len(cost.Seconds)-1] / cost.Seconds[0]
	return cost, nil
}

// reading reads a configuration and says how much time of the cores that took,
// that of collecting garbage with it, and what is in use then.
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
	runtime.GC() // what it has begun would else be counted for large files only
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

// coresTime gives the time that the cores have spent in this process: other than
// a clock's it does not depend on what else the machine does.
func coresTime() (time.Duration, error) {
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		return 0, fmt.Errorf("ask for the time used: %w", err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()), nil
}

// tableCost reads a file of a table's addresses.
func tableCost(rounds int) (TableCost, error) {
	var b strings.Builder
	for i := range tableSize {
		fmt.Fprintf(&b, "10.%d.%d.%d\n", i>>16, i>>8&255, i&255)
	}
	text := []byte("table <t> file \"t\"\npass from <t>\n")
	settings := resolve.Settings{Files: source.Files{"t": {Text: b.String()}}}
	cost := TableCost{Addresses: tableSize}
	var sample stats.Sample
	for range rounds {
		took, used, err := reading(text, settings)
		if err != nil {
			return cost, fmt.Errorf("a table's file of %d addresses: %w", tableSize, err)
		}
		sample = append(sample, took.Seconds())
		cost.Bytes = used / tableSize
	}
	cost.Seconds = sample.Median()
	return cost, nil
}

// inUse gives the bytes in use when all garbage is collected.
func inUse() int64 {
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// WriteText prints the report as a table.
func (r *LanguageReport) WriteText(w io.Writer) error {
	if _, err := fmt.Fprintf(w, "%s\n\n", r.Machine); err != nil {
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "rules\t-o\t%d\t%d\ttimes\tbytes a rule\n", languageSizes[0], languageSizes[1])
	for _, c := range r.Rules {
		o := "none"
		if c.Optimized {
			o = "basic"
		}
		fmt.Fprintf(t, "%s\t%s\t%.3f s\t%.3f s\t%.1f\t%d\n", c.Kind, o, c.Seconds[0], c.Seconds[1], c.Growth, c.Bytes)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\na table's file of %d addresses: %.3f s, %d bytes an address\n", r.Table.Addresses, r.Table.Seconds, r.Table.Bytes)
	return err
}

// WriteJSON prints the report as JSON.
func (r *LanguageReport) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// languageKind is a kind of file that is measured.
type languageKind struct {
	name string
	file func(rules int) []byte
}

var languageKinds = []languageKind{
	{"all different", differentRules},
	{"of lists", listedRules},
	{"one block", blockRules},
}

// differentRules is a file of rules of many kinds, in no order.
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

// listedRules is a file of statements that expand to a thousand rules each.
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

// blockRules is a file of rules that the optimizer has to compare all.
func blockRules(n int) []byte {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "pass in quick on em%d proto %s from 10.%d.%d.%d to any port %d\n",
			i%4, []string{"tcp", "udp"}[i&1], i>>16, i>>8&255, i&255, 1+i%5000)
	}
	return []byte(b.String())
}
