package view

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	"weir/internal/fw/dataplane"
	"weir/internal/fw/rundir"
	"weir/internal/fw/state"
	"weir/internal/host/netif"
)

// A View reads what weir does in the process's network namespace, from the run folder
// and the pinned maps. It needs no daemon. It may be held for long: it follows loads, new
// tables and new daemons. Several goroutines may read it at once. None waits for another,
// however long it takes.
type View struct {
	folder rundir.Folder
	dir    string // of the pins

	mu   sync.Mutex // held only to open and to count
	pins *held      // those in force at the last read; nil if there were none
}

// held are pins that are closed when their last user has released them.
type held struct {
	*dataplane.View
	users int // those that read, and the View. View.mu guards it
}

// A reading is the state of the pins that one read uses.
type reading struct {
	folder rundir.Folder
	pins   *held
	info   dataplane.Info
	loaded rundir.Loaded
	// starting says that the first start has put its rules in force, but not yet let the
	// box forward.
	starting bool
	ids      []uint32          // global ids of the rules in force, by number
	texts    []rundir.RuleText // likewise
	number   map[uint32]int    // of each id
	names    map[int]string    // of interfaces, by index
}

// swapTries is how often a read starts again because the rules were replaced meanwhile.
const swapTries = 100

// Open opens a View. If weir does not run, the error of Open and of the View's methods
// wraps dataplane.ErrNotLoaded. The caller closes the view.
func Open(f rundir.Folder) (*View, error) {
	dir, err := dataplane.Folder("")
	if err != nil {
		return nil, err
	}
	v := &View{folder: f, dir: dir}
	if err := v.read(func(*reading) error { return nil }); err != nil {
		return nil, errors.Join(err, v.Close())
	}
	return v, nil
}

// Close releases the maps. Those that a read still uses are released at its end.
func (v *View) Close() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.drop()
}

// drop releases the View's own hold on its pins. The caller holds mu.
func (v *View) drop() error {
	pins := v.pins
	v.pins = nil
	return pins.release()
}

// release ends one use. The caller holds the View's mu.
func (h *held) release() error {
	if h == nil {
		return nil
	}
	if h.users--; h.users > 0 {
		return nil
	}
	return h.Close()
}

// hold returns the pins in force. It opens them if they are not open.
func (v *View) hold() (*held, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.pins == nil || !v.pins.InForce() {
		if err := v.drop(); err != nil {
			return nil, err
		}
		pins, err := dataplane.Open(v.dir)
		if err != nil {
			return nil, err
		}
		v.pins = &held{View: pins, users: 1}
	}
	v.pins.users++
	return v.pins, nil
}

func (v *View) release(h *held) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return h.release()
}

// read calls do with what is in force. If it is replaced meanwhile, do is called again,
// so do must not keep earlier results.
func (v *View) read(do func(*reading) error) error {
	return v.consistent(do, func(*reading) error { return nil })
}

// consistent is like read. Then it calls last once, with what do was called with last.
func (v *View) consistent(do, last func(*reading) error) error {
	for range swapTries {
		pins, err := v.hold()
		if err != nil {
			return err
		}
		r := &reading{folder: v.folder, pins: pins}
		if err = r.begin(); err == nil {
			err = do(r)
		}
		stays := pins.InForce() && !r.replaced()
		if stays && err == nil {
			err = last(r)
		}
		err = errors.Join(err, v.release(pins))
		if stays {
			return err
		}
	}
	return fmt.Errorf("read what is loaded: the rules were replaced %d times meanwhile", swapTries)
}

// begin reads what belongs to the pins.
func (r *reading) begin() (err error) {
	// The programs know which ruleset is in force. The record may be a moment late.
	if r.info, err = r.pins.Info(); err != nil {
		return err
	}
	if err := r.readLoaded(); err != nil {
		return err
	}
	if err := r.readRules(); err != nil {
		return err
	}
	links, err := netif.Links()
	if err != nil {
		return err
	}
	r.names = make(map[int]string, len(links))
	for _, l := range links {
		r.names[l.Index] = l.Name
	}
	return nil
}

// readLoaded reads the record of the ruleset in force. The daemon writes it after the
// programs are in force and the box forwards. If it died in between, the record is missing
// or tells of the rules before.
func (r *reading) readLoaded() error {
	err := rundir.ReadJSON(r.folder.Loaded(), &r.loaded)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read what is loaded: %w", err)
	}
	if err == nil && r.loaded.Base == r.info.RuleBase {
		return nil
	}
	r.starting = err != nil && !r.folder.IsServed()
	var source rundir.Source
	err = rundir.ReadJSON(r.folder.SourceOf(r.info.Generation), &source)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read where the rules come from: %w", err)
	}
	l := &r.loaded
	l.File, l.Unloaded, l.Time = source.Path, r.info.Unloaded, r.info.Loaded
	l.Base, l.Rules, l.Limit, l.MarkMask = r.info.RuleBase, int(r.info.Rules), r.info.MaxStates, 0
	if l.Started.IsZero() {
		l.Started = l.Time
	}
	return nil
}

// readRules reads which rules are in force. Rules that replace others in place are
// recorded before they are in force. So their texts are read last.
func (r *reading) readRules() (err error) {
	if r.ids, err = r.pins.RuleIDs(); err != nil {
		return err
	}
	var recorded []rundir.RuleText
	if err := rundir.ReadJSON(r.folder.RulesOf(r.info.RuleBase), &recorded); err != nil {
		return fmt.Errorf("read the texts of the rules: %w", err)
	}
	r.texts, r.number = make([]rundir.RuleText, len(r.ids)), make(map[uint32]int, len(r.ids))
	lists := 0 // rules before the filter rules
	for number, id := range r.ids {
		index := id - r.info.RuleBase
		switch {
		case index < uint32(len(recorded)):
			r.texts[number] = recorded[index]
		case r.pins.InForce(): // else others have been loaded meanwhile
			return fmt.Errorf("the record of the rules has no rule %d", index)
		}
		if t := &r.texts[number]; t.List != "" || t.Text == "" {
			lists++
		} else {
			t.Nr = number - lists
		}
		r.number[id] = number
	}
	return nil
}

// replaced reports whether rules have been replaced in place since they were read.
func (r *reading) replaced() bool {
	if r.texts == nil { // they were not read
		return false
	}
	ids, err := r.pins.RuleIDs()
	return err == nil && !slices.Equal(ids, r.ids)
}

// Rules returns the rules in force with their counters, and the PID of the daemon that
// loaded them. A rule, also a match rule, counts the packets and states of every path
// that contains it.
func (v *View) Rules() (rules []Rule, pid int, err error) {
	err = v.read(func(r *reading) error {
		pid = r.loaded.PID
		rules, err = r.rules()
		return err
	})
	return rules, pid, err
}

// Anchors returns the anchors with rules, by path, and the rules in force.
func (v *View) Anchors() (anchors []rundir.Anchor, rules []Rule, pid int, err error) {
	err = v.read(func(r *reading) error {
		anchors, pid = r.loaded.Anchors, r.loaded.PID
		rules, err = r.rules()
		return err
	})
	return anchors, rules, pid, err
}

func (r *reading) rules() ([]Rule, error) {
	counters, err := r.pins.Rules()
	if err != nil {
		return nil, fmt.Errorf("read the counters of the rules: %w", err)
	}
	paths, err := r.pins.Paths()
	if err != nil {
		return nil, fmt.Errorf("read the counters of the paths: %w", err)
	}
	rules := make([]Rule, len(r.texts))
	for i := range rules {
		rules[i].RuleText = r.texts[i]
		if i < len(counters) {
			c := &counters[i]
			rules[i].Evaluations, rules[i].StateCreations = c.Evaluations, c.States
		}
	}
	for global, nr := range r.number {
		rules[nr].id = global
	}
	for i := range paths {
		for _, global := range paths[i].Rules {
			if nr, ok := r.number[global]; ok {
				counted := paths[i].Counter()
				rules[nr].Packets += counted.Packets
				rules[nr].Bytes += counted.Bytes
				rules[nr].States += paths[i].States
			}
		}
		for crossing, matched := range paths[i].Crossing {
			for _, global := range matched {
				if nr, ok := r.number[global]; ok {
					rules[nr].crossings(&paths[i], crossing)
				}
			}
		}
	}
	return shown(rules), nil
}

// NATPorts returns the port ranges of the source translations in force, each once.
func (v *View) NATPorts() ([]rundir.PortRange, error) {
	var found []rundir.PortRange
	err := v.read(func(r *reading) error {
		found = []rundir.PortRange{}
		for i := range r.texts {
			if p := r.texts[i].NATPorts; p != (rundir.PortRange{}) && !slices.Contains(found, p) {
				found = append(found, p)
			}
		}
		return nil
	})
	return found, err
}

// Redirects returns what rules in force send on where it comes in, but for the rules of an anchor.
func (v *View) Redirects(besides string) (found []rundir.Redirect, err error) {
	err = v.read(func(r *reading) error {
		found = nil
		for i := range r.texts {
			if t := &r.texts[i]; t.Redirect != (rundir.Redirect{}) && t.Scope != besides {
				found = append(found, t.Redirect)
			}
		}
		return nil
	})
	return found, err
}

// MarkMask returns the bits of the mark that weir uses; 0 if they are not recorded.
func (v *View) MarkMask() (mask uint32, err error) {
	err = v.read(func(r *reading) error {
		mask = r.loaded.MarkMask
		return nil
	})
	return mask, err
}

// States calls yield with each live state that a filter selects, until yield returns
// false. The states are those of one table: a table that is replaced meanwhile is read to
// its end.
func (v *View) States(f *state.Filter, yield func(*state.View) bool) error {
	ready := func(*reading) error { return nil }
	return v.consistent(ready, func(r *reading) error {
		losses, err := r.pins.QueueLosses()
		if err != nil {
			return err
		}
		defer losses.Close()
		context := r.context()
		context.Lost = losses.Of
		for s := range r.pins.States() {
			one := s.View(context)
			if f.Match(&one) && !yield(&one) {
				break
			}
		}
		return nil
	})
}

// Connection looks for the state of a connection, by its ends as its first packet had them. seen is
// the first end as the other one sees it.
func (v *View) Connection(proto uint8, from, to netip.AddrPort) (seen netip.AddrPort, expires time.Duration, ok bool, err error) {
	ready := func(*reading) error { return nil }
	err = v.consistent(ready, func(r *reading) error {
		context := r.context()
		for s := range r.pins.States() {
			t, back := &s.Tuple[0], &s.Tuple[1]
			if t.Proto == proto && netip.AddrPortFrom(t.Src, t.SPort) == from && netip.AddrPortFrom(t.Dst, t.DPort) == to {
				seen, expires, ok = netip.AddrPortFrom(back.Dst, back.DPort), s.View(context).Expires, true
				break
			}
		}
		return nil
	})
	return seen, expires, ok, err
}

// context resolves the numbers in a state.
func (r *reading) context() *state.Context {
	return &state.Context{
		Now: r.info.Now, Timeouts: r.info.Timeouts,
		Rule: func(global uint32) (state.RuleRef, bool) {
			number, inForce := r.number[global-1]
			if !inForce {
				return state.RuleRef{}, false
			}
			return state.RuleRef{Nr: r.texts[number].Nr, List: r.texts[number].List}, true
		},
		Labels:  r.labels(),
		Leaves:  r.leaves(),
		Gateway: remembered(r.pins.GatewayOf),
		Queue:   func(number uint16) string { return r.loaded.Queues[number] },
		Interface: func(index uint16) string {
			if name := r.names[int(index)]; name != "" {
				return name
			}
			return strconv.Itoa(int(index))
		},
	}
}

// labels returns a function that returns a rule's labels. The records of earlier rulesets
// are read when the first state of such a rule is met.
func (r *reading) labels() func(global uint32) []string {
	known := make(map[uint32][]string)
	var earlier *Names
	return func(global uint32) []string {
		if labels, ok := known[global]; ok {
			return labels
		}
		number, inForce := r.number[global-1]
		var text *rundir.RuleText
		if inForce {
			text = &r.texts[number]
		} else {
			if earlier == nil {
				if earlier, _ = NewNames(r.folder); earlier == nil { // without the records nobody knows
					earlier = &Names{}
				}
			}
			text = earlier.text(global - 1)
		}
		var labels []string
		if text != nil {
			labels = text.Labels()
		}
		known[global] = labels
		return labels
	}
}

// leaves returns a function that returns the interface of a next hop.
func (r *reading) leaves() func(nextHop uint16) string {
	return remembered(func(hop uint16) string { return r.names[r.pins.LeavesBy(hop)] })
}

// remembered returns a function that asks another one once for each next hop.
func remembered[T any](of func(nextHop uint16) T) func(nextHop uint16) T {
	known := make(map[uint16]T)
	return func(hop uint16) T {
		one, ok := known[hop]
		if !ok {
			one = of(hop)
			known[hop] = one
		}
		return one
	}
}
