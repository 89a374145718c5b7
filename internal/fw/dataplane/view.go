package dataplane

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"weir/internal/fw/bpfload"
	"weir/internal/fw/state"
)

// ErrNotLoaded is returned (wrapped) by Open if nothing is pinned.
var ErrNotLoaded = errors.New("nothing is loaded")

// A View reads a dataplane from its pins, with or without a daemon. Several goroutines may
// read it at once.
type View struct {
	dir    string
	tables *tables
	rules  *pinnedRules
	ledger *bpfload.Map  // nil: the one in force
	pins   []fs.FileInfo // the folders of the tables and of the generation
}

// openTries is how often Open starts again because pins were renamed meanwhile.
const openTries = 100

// openFailures is how often in a row Open must fail with the same pins. Once may be
// chance: they were renamed meanwhile, and back.
const openFailures = 3

// Open returns a view of what is pinned in dir. The error wraps ErrNotLoaded if there is
// nothing. The caller closes it. A view does not follow a Commit. InForce reports whether
// there was one.
func Open(dir string) (*View, error) {
	v, err := bpfload.From(bpfload.At(""), func() (*View, error) { return openView(dir) })
	if isMissing(err) {
		err = fmt.Errorf("%s: %w", dir, ErrNotLoaded)
	}
	return v, err
}

// openView opens the pins again until none was renamed meanwhile. A Commit renames several,
// one after the other. What is opened between two renames may not belong together.
func openView(dir string) (*View, error) {
	failed := 0
	for range openTries {
		before, complete := listPins(dir)
		v := &View{dir: dir}
		err := v.open()
		after, _ := listPins(dir)
		same := complete && slices.EqualFunc(before, after, samePin)
		if same && err == nil {
			return v, nil
		}
		err = errors.Join(err, v.Close())
		if !same {
			failed = 0
			continue
		}
		if failed++; failed == openFailures {
			return nil, err
		}
	}
	return nil, fmt.Errorf("open %s: its pins were replaced %d times meanwhile", dir, openTries)
}

func (v *View) open() (err error) {
	if v.ledger, err = openLedger(v.dir); err != nil {
		return err
	}
	if v.tables, err = v.openLive(); err != nil {
		return err
	}
	if v.rules, err = openRules(v.dir); err != nil {
		return err
	}
	v.pins, err = statPins(v.dir)
	return err
}

// listPins identifies everything in the folder. The list is not complete if something was
// renamed meanwhile.
func listPins(dir string) (pins []fs.FileInfo, complete bool) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, isMissing(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return nil, false
		}
		pins = append(pins, info)
	}
	return pins, true
}

func samePin(a, b fs.FileInfo) bool { return a.Name() == b.Name() && os.SameFile(a, b) }

// statPins identifies the folders of the tables and of the generation in force. A Commit
// replaces both, or only the latter.
func statPins(dir string) ([]fs.FileInfo, error) {
	tables, err := os.Stat(liveTables(dir))
	if err != nil {
		return nil, fmt.Errorf("look for the tables: %w", err)
	}
	generation, err := os.Stat(liveGeneration(dir))
	if err != nil {
		return nil, fmt.Errorf("look for the generation: %w", err)
	}
	return []fs.FileInfo{tables, generation}, nil
}

// InForce reports whether the view still reads what is in force: there was no Commit and
// no Remove since Open.
func (v *View) InForce() bool {
	now, err := bpfload.From(bpfload.At(""), func() ([]fs.FileInfo, error) { return statPins(v.dir) })
	return err == nil && slices.EqualFunc(v.pins, now, os.SameFile)
}

// openLive opens the tables in use if they have this version's layout.
func (v *View) openLive() (*tables, error) {
	where := liveTables(v.dir)
	l, err := v.readLedger()
	if err != nil {
		return nil, err
	}
	if l.Layout != stateLayout && where != filepath.Join(v.dir, newerTablesDir) {
		return nil, fmt.Errorf("%w (its states have layout %d, this version's %d): use its commands, or start this version with weir run", ErrLayout, l.Layout, stateLayout)
	}
	return openTables(where)
}

// readLedger reads the ledger of the generation that the view reads.
func (v *View) readLedger() (ledger, error) {
	if v.ledger != nil {
		return readLedgerMap(v.ledger)
	}
	return bpfload.From(bpfload.At(""), func() (ledger, error) { return readLedger(v.dir) })
}

// Close releases the view. No States iteration may be in progress.
func (v *View) Close() error {
	var errs []error
	if v.tables != nil {
		errs = append(errs, v.tables.close())
	}
	if v.rules != nil {
		errs = append(errs, v.rules.close())
	}
	errs = append(errs, v.ledger.Close())
	v.tables, v.rules, v.ledger = nil, nil, nil
	return errors.Join(errs...)
}

// Info describes the condition of a dataplane.
type Info struct {
	Generation  uint32 // increases with every Commit
	Loaded      time.Time
	Unloaded    bool   // the built-in ruleset blocks everything but management
	RuleBase    uint32 // global id of rule 0
	Rules       uint32
	States      uint32 // in use
	MaxStates   uint32
	Sources     uint32 // in use
	MaxSources  uint32
	Made        uint32 // states made since the start, modulo 2³²
	Paths       uint32 // sets of matched rules with their own counters
	NextHops    uint32
	Capturing   bool // the capture ring has a reader
	Prefetching bool // packets that come in at XDP are prefetched
	Now         state.Tick
	Heartbeat   time.Duration  // time since the daemon's last one
	Timeouts    state.Timeouts // in force, with adaptive scaling applied
	Configured  state.Timeouts
	Frag        uint32 // timeout of fragments in force, in ticks
	MaxFrags    uint32 // fragmented packets at once

	AdaptiveStart, AdaptiveEnd uint32 // states; both 0: timeouts do not adapt
}

// Info returns the dataplane's condition.
func (v *View) Info() (Info, error) {
	l, err := v.readLedger()
	if err != nil {
		return Info{}, err
	}
	s := v.tables.shared
	now := atomic.LoadUint32(&s.Now)
	return Info{
		Generation:  l.Generation,
		Loaded:      l.loaded(),
		Unloaded:    l.Unloaded != 0,
		RuleBase:    l.RuleBase,
		Rules:       l.Rules,
		States:      v.InUse(),
		MaxStates:   v.tables.limit(),
		Sources:     atomic.LoadUint32(&s.Sources),
		MaxSources:  s.SourceLimit,
		Made:        atomic.LoadUint32(&s.StatesMade),
		Paths:       s.PathsHigh + s.PathsReserved,
		NextHops:    s.NexthopsHigh - s.NexthopsUnused,
		Capturing:   atomic.LoadUint32(&s.Recording)&(1<<CaptureRing) != 0,
		Prefetching: v.tables.prefetching(),
		Now:         state.Tick(now),
		Heartbeat:   time.Duration(now-atomic.LoadUint32(&s.Heartbeat)) * (time.Second / state.TicksPerSecond),
		Timeouts:    s.Timeout,
		Configured:  s.TimeoutSet,
		Frag:        s.TimeoutFrag,
		MaxFrags:    v.tables.maps[mapFragments].MaxEntries(),

		AdaptiveStart: atomic.LoadUint32(&s.AdaptiveStart), AdaptiveEnd: atomic.LoadUint32(&s.AdaptiveEnd),
	}, nil
}

// A Neighbour is a next hop in use, for the daemon to probe.
type Neighbour struct {
	Ifindex int
	Address netip.Addr
	Used    state.Tick // at the last packet
}

// Neighbours returns the next hops that packets went to in the last span ticks. Devices
// without an Ethernet header have none.
func (v *View) Neighbours(span uint32) []Neighbour {
	var found []Neighbour
	now := atomic.LoadUint32(&v.tables.shared.Now)
	for i := range v.tables.shared.Nexthops {
		n := &v.tables.shared.Nexthops[i]
		near := n.Flags&nexthopChosen == 0 || n.Flags&nexthopNear != 0 // else another neighbour leads to the gateway
		inSession := v.tables.shared.Interfaces[n.Ifindex%MaxIfindex].Line != 0
		if n.Ifindex == 0 || n.Flags&nexthopL3 != 0 || inSession || !near || now-n.Used > span {
			continue
		}
		found = append(found, Neighbour{int(n.Ifindex), (*xdpAddr)(&n.Gateway).addr(), state.Tick(n.Used)})
	}
	return found
}

// InUse returns the number of states in use.
func (v *View) InUse() uint32 {
	s := v.tables.shared
	return atomic.LoadUint32(&s.StatesMade) - atomic.LoadUint32(&s.StatesReleased)
}
