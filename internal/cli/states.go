package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/fw/state"
	"weir/internal/fw/view"
)

// stateFilterUsage is the argument of commands that select states.
const stateFilterUsage = "[host|from|to ADDRESS] [proto NAME] [port NUMBER] [phase NAME] [rule NUMBER] [label TEXT] [on INTERFACE] [id ID] [gateway ADDRESS] [nat ADDRESS]"

// stateFilterHelp explains it.
const stateFilterHelp = `All conditions must hold. host is either end, also as translated; host twice names both
ends. from is the end that opened the connection, to the other one. An address may be a
network. port is that of either end. rule and label are of the rule that decided, on
either crossing. on is an interface that packets are forwarded to; for connections of
the box itself it matches only link-local addresses. id is a number that -vv prints.
gateway is a next hop that packets are sent to, nat an address that one end was
translated to.`

// statesTask is what weir states is asked for.
type statesTask struct {
	filter  state.Filter
	verbose int
	json    bool
	sort    string
	top     int
	follow  bool
	ofPf    bool // weir pfctl asks
}

// followPause is the time between two prints of states --follow. A rate is measured over
// it.
const followPause = time.Second

// followTop is how many states --follow prints unless --top says otherwise.
const followTop = 20

func newStatesCommand(env *Env) *cobra.Command {
	t := &statesTask{}
	c := &cobra.Command{
		Use:   "states " + stateFilterUsage,
		Args:  cobra.ArbitraryArgs,
		Short: "print the known connections; -v adds TCP windows, ages and counters",
		Long: `states prints the known connections, in the form of "pfctl -s states". A connection
that is forwarded has one line, not two.

` + stateFilterHelp + `

-v also says what a connection's packets have lost in their queues since these were loaded: packets
and bytes on the line, those of the first end first.

--sort prints the largest first, with the value after the line: rate is measured for a
second. -f prints again every second until it is interrupted, the 20 largest. With
--json too, each second is a line with one array.`,
		RunE: func(c *cobra.Command, words []string) (err error) {
			if t.filter, err = state.ParseFilter(words); err != nil {
				return &UsageError{err}
			}
			if !slices.Contains([]string{"", "rate", "bytes", "packets", "age"}, t.sort) {
				return &UsageError{fmt.Errorf("--sort takes rate, bytes, packets or age, not %q", t.sort)}
			}
			if t.top < 0 {
				return &UsageError{errors.New("--top takes a number of states")}
			}
			return env.states(c.Context(), t)
		},
	}
	c.Flags().CountVarP(&t.verbose, "verbose", "v", "print TCP windows, age, packets, bytes and rules too; twice: also ids and labels")
	c.Flags().StringVar(&t.sort, "sort", "", "print the largest first, by `what`: rate, bytes, packets or age")
	c.Flags().IntVar(&t.top, "top", 0, "print only so many")
	c.Flags().BoolVarP(&t.follow, "follow", "f", false, "print again every second until interrupted")
	jsonFlag(c, &t.json)
	return c
}

// states prints states once, or with --follow again and again.
func (e *Env) states(ctx context.Context, t *statesTask) error {
	r, err := e.reader()
	if err != nil {
		return err
	}
	defer r.Close()
	if t.follow && t.top == 0 {
		t.top = followTop
	}
	if t.sort == "" && t.top == 0 && !t.json {
		return e.printEachState(r, t)
	}
	m := &stateMeter{}
	if t.sort == "rate" {
		if _, err := m.read(r, t); err != nil {
			return err
		}
		if !pause(ctx, followPause) {
			return nil
		}
	}
	for {
		lines, err := m.read(r, t)
		if err != nil {
			return err
		}
		if t.follow && !t.json && isTerminal(e.Stdout) {
			fmt.Fprint(e.Stdout, "\x1b[H\x1b[2J")
		}
		if err := e.printStateLines(t, lines); err != nil || !t.follow {
			return err
		}
		if !pause(ctx, followPause) {
			return nil
		}
		if !t.json {
			fmt.Fprintln(e.Stdout)
		}
	}
}

// pause waits. It returns false if ctx ends first.
func pause(ctx context.Context, span time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(span):
		return true
	}
}

// printEachState prints the states in the order in which they are found, without keeping
// them.
func (e *Env) printEachState(r *view.View, t *statesTask) error {
	var failed error
	err := r.States(&t.filter, func(s *state.View) bool {
		_, failed = fmt.Fprintln(e.Stdout, t.text(s))
		return failed == nil
	})
	return errors.Join(err, failed)
}

func (t *statesTask) text(s *state.View) string {
	if t.ofPf {
		s = s.OfPf()
	}
	switch t.verbose {
	case 0:
		return s.String()
	case 1:
		return s.Verbose()
	}
	return s.VeryVerbose()
}

// A stateLine is a state and what it has done since the last look.
type stateLine struct {
	*state.View
	BytesPerSecond   float64 `json:"bytes_per_second,omitempty"`
	PacketsPerSecond float64 `json:"packets_per_second,omitempty"`
}

// A stateMeter remembers the counters of the last look.
type stateMeter struct {
	at   time.Time
	seen map[state.Handle][2]uint64 // packets, bytes
}

// read returns the states to print, sorted.
func (m *stateMeter) read(r *view.View, t *statesTask) ([]stateLine, error) {
	now, seen := time.Now(), make(map[state.Handle][2]uint64)
	lines := []stateLine{}
	seconds := now.Sub(m.at).Seconds()
	err := r.States(&t.filter, func(s *state.View) bool {
		one := stateLine{View: s}
		packets, bytes := s.Src.Packets+s.Dst.Packets, s.Src.Bytes+s.Dst.Bytes
		if t.sort == "rate" {
			seen[s.Handle] = [2]uint64{packets, bytes}
			before, known := m.seen[s.Handle]
			if m.seen != nil && (known || s.Age <= followPause) {
				one.PacketsPerSecond = float64(packets-before[0]) / seconds
				one.BytesPerSecond = float64(bytes-before[1]) / seconds
			}
		}
		lines = append(lines, one)
		return true
	})
	m.at, m.seen = now, seen
	t.order(lines)
	if t.top > 0 && len(lines) > t.top {
		lines = lines[:t.top]
	}
	return lines, err
}

// order sorts by what --sort names, the largest first.
func (t *statesTask) order(lines []stateLine) {
	if t.sort == "" {
		return
	}
	key := map[string]func(*stateLine) float64{
		"rate":    func(l *stateLine) float64 { return l.BytesPerSecond },
		"bytes":   func(l *stateLine) float64 { return float64(l.Src.Bytes + l.Dst.Bytes) },
		"packets": func(l *stateLine) float64 { return float64(l.Src.Packets + l.Dst.Packets) },
		"age":     func(l *stateLine) float64 { return float64(l.Age) },
	}[t.sort]
	slices.SortStableFunc(lines, func(a, b stateLine) int { return cmp.Compare(key(&b), key(&a)) })
}

func (e *Env) printStateLines(t *statesTask, lines []stateLine) error {
	if t.json {
		return e.printFollowed(lines, t.follow)
	}
	for i := range lines {
		if _, err := fmt.Fprintln(e.Stdout, t.text(lines[i].View)+t.value(&lines[i])); err != nil {
			return err
		}
	}
	return nil
}

// value returns what --sort sorts by.
func (t *statesTask) value(l *stateLine) string {
	switch t.sort {
	case "rate":
		return fmt.Sprintf("   %.3f Mbit/s, %.0f packets/s", l.BytesPerSecond*8/1e6, l.PacketsPerSecond)
	case "bytes":
		return fmt.Sprintf("   %d bytes", l.Src.Bytes+l.Dst.Bytes)
	case "packets":
		return fmt.Sprintf("   %d packets", l.Src.Packets+l.Dst.Packets)
	case "age":
		return fmt.Sprintf("   %v", l.Age.Truncate(time.Second))
	}
	return ""
}
