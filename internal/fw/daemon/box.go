package daemon

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"weir/internal/fw/dataplane"
	"weir/internal/fw/gateway"
	"weir/internal/fw/ruleset"
	"weir/internal/fw/rundir"
	"weir/internal/host/hostdb"
	"weir/internal/host/netif"
	"weir/pf/resolve"
)

// box is the state that the daemon maintains: the ruleset in force, the interfaces that
// it is enforced on, and what the dataplane knows of them. Any task may call its methods.
// Each method makes all of its change or none of it.
type box struct {
	cfg         *Config
	dir         string // folder of the pins
	found       *Found
	first       bool // nothing was loaded before this daemon started
	rollingBack bool // the start rolls back an unconfirmed load
	mayLose     bool // the administrator allows the start to lose connections
	pulse       pulse
	loaded      atomic.Pointer[rundir.Loaded] // the rules in force, for whoever asks
	frugal      frugal

	mu          sync.Mutex
	dp          *dataplane.Dataplane
	source      Source
	substitute  bool          // source is not the file that the start was asked to load
	retrying    bool          // that file is loaded as soon as it can be
	changed     chan struct{} // the machine has changed; that file may load now
	again       chan struct{} // the follower is to look at the machine again
	disabled    time.Time     // since when no programs are attached, because of pfctl -d; zero: they are
	unconfirmed bool          // source is being loaded or waits, and may be rolled back
	waiting     *waiting      // the unconfirmed load of source; nil: confirmed, or needs no confirmation
	waits       chan struct{} // signals that waiting has changed
	rules       *compiled
	host        *resolve.Host
	links       []netif.Link
	above       []netif.Link                   // those of which some carry the frames of others (meetsFrames)
	hooks       map[int]hooked                 // interfaces that have programs, by index
	tables      map[string]*rundir.TableRecord // of tables that were changed at run time
	stored      map[string]*rundir.TableRecord // of those that outlive a boot

	held    map[int]*held   // interfaces at which the kernel holds packets, by index
	engines []rundir.Engine // of the trees of queues
	cores   map[string]int  // that go on with what the kernel holds, by the name of the tree

	spreads     spreading // frames that other cores take
	routeMTUs   routeMTUs
	former      former
	formerTimer *time.Timer // when one that is gone may count as replaced

	manyAddresses  string // the last warning about too many addresses
	prefetchGain   gain
	prefetchFailed error  // why prefetching could not be switched on; already logged
	prefetchWhy    string // packets are not prefetched, as recorded
	noted          bool   // that is recorded

	gateways *gateway.Watcher
	policies *policies // nil in tests without any

	lines         lines
	touched       atomic.Bool // links, addresses or default routes have changed since the dialler looked
	pppoeRecords  sync.Mutex  // of dialler.records
	prefixRecords sync.Mutex  // of the file of prefix records
}

// hooked is an interface that has programs.
type hooked struct {
	Choice
	known   dataplane.Interface // what the dataplane was last told about it
	foreign uint32              // id of an XDP program that sees packets before weir; 0: none
	parent  parentHook          // for a VLAN device
}

// machine is a snapshot of the network.
type machine struct {
	links []netif.Link
	host  *resolve.Host
	down  map[ruleset.Hop]bool // gateways that do not answer
}

// readMachine reads the state of the machine. A database of names that cannot be read is only a
// warning: the box must be filtered, or blocked, all the same.
func readMachine(log *slog.Logger) (*machine, error) { return readMachineIn(os.DirFS("/"), log) }

func readMachineIn(root fs.FS, log *slog.Logger) (*machine, error) {
	links, err := netif.Links()
	if err != nil {
		return nil, err
	}
	host, err := hostdb.Host(links)
	if host == nil {
		return nil, err
	}
	if err := errors.Join(err, hostdb.Fill(host, root)); err != nil {
		log.Warn("cannot read all databases of names", "error", err)
	}
	host.Secret = secret()
	return &machine{links: links, host: host}, nil
}

// machine reads the state of the machine, with the gateways that are down.
func (b *box) machine() (*machine, error) {
	m, err := readMachine(b.cfg.Log)
	if err == nil {
		err = b.lines.describe(m.links)
	}
	if err == nil && b.gateways != nil {
		m.down = b.gateways.Down()
	}
	return m, err
}

// secret is for keys of source-hash that a file leaves to weir. It lasts as long as the
// daemon, so that a pool keeps its key.
var secret = sync.OnceValue(func() []byte {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // never fails
	return key
})

func (m *machine) names() map[int]string {
	names := make(map[int]string, len(m.links))
	for _, l := range m.links {
		names[l.Index] = l.Name
	}
	return names
}

// hooked returns the links that have programs.
func (m *machine) hooked(hooks map[int]hooked) []netif.Link {
	return slices.DeleteFunc(slices.Clone(m.links), func(l netif.Link) bool {
		_, ok := hooks[l.Index]
		return !ok
	})
}

// build compiles a source for a machine and loads it beside the running dataplane. It
// changes nothing that runs. It writes only the record of the new rules, under numbers
// that no other ruleset has had. The error wraps dataplane.ErrBusy if another process is
// replacing the dataplane.
func (b *box) build(source Source, m *machine) (*dataplane.Dataplane, *compiled, error) {
	rules, err := source.compile(m)
	if err != nil {
		return nil, nil, err
	}
	dp, err := b.buildRules(source, rules, m)
	return dp, rules, err
}

// buildRules is build for rules that have been compiled.
func (b *box) buildRules(source Source, rules *compiled, m *machine) (_ *dataplane.Dataplane, err error) {
	defer b.frugal.build(source.bytes())()
	if err := b.mayHold(rules, m); err != nil {
		return nil, err
	}
	if err := b.keepTables(source, rules); err != nil {
		return nil, err
	}
	if rules.base, err = b.base(rules); err != nil {
		return nil, err
	}
	dp, err := dataplane.Build(dataplane.Config{
		Dir:      b.dir,
		Program:  rules.program,
		Options:  ruleset.OptionsOf(&rules.options),
		RuleBase: rules.base,
		Unloaded: source.Builtin,
		XDP:      b.wantsXDP(m),
		Spread:   len(rules.options.Spreads) > 0,
		Flows:    len(rules.options.Collectors) > 0,
	})
	if err != nil {
		return nil, fmt.Errorf("build the dataplane: %w", err)
	}
	if err := b.record(rules); err != nil {
		dp.Close() //nolint:errcheck // it was never live
		return nil, err
	}
	return dp, nil
}

// record writes the rules' record. No other process changes rule numbers now, but one may
// have changed them before this process owned the dataplane.
func (b *box) record(rules *compiled) error {
	base, err := b.base(rules)
	if err != nil {
		return err
	}
	if base != rules.base {
		return fmt.Errorf("number the rules: %w", dataplane.ErrBusy)
	}
	return writeRules(b.cfg.Folder, rules)
}

// base returns the global number of rule 0. If the rules are the same as those in force,
// it is their number, so that the counters go on. Otherwise it is one past all others.
func (b *box) base(rules *compiled) (uint32, error) {
	texts, base, err := b.inForce()
	if err != nil {
		return 0, err
	}
	if texts != nil && slices.EqualFunc(rules.texts, texts, rundir.RuleText.Equal) {
		return base, nil
	}
	return dataplane.NextRuleBase(b.dir)
}

// inForce returns the record of the ruleset in force, which an earlier daemon may have
// loaded, and the global number of its rule 0. It returns nil if there is none.
func (b *box) inForce() ([]rundir.RuleText, uint32, error) {
	if b.rules != nil {
		return b.rules.recorded, b.rules.base, nil
	}
	base, err := dataplane.RuleBase(b.dir)
	if errors.Is(err, dataplane.ErrNotLoaded) || errors.Is(err, dataplane.ErrLayout) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, fmt.Errorf("look at the running dataplane: %w", err)
	}
	var texts []rundir.RuleText
	err = rundir.ReadJSON(b.cfg.Folder.RulesOf(base), &texts)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, 0, err
	}
	return texts, base, nil
}

// replace puts a source in force on the interfaces that have programs. After an error the
// old source is in force.
//
// If only rules in anchors differ, they are replaced in place. Otherwise the programs are
// loaded again.
func (b *box) replace(source Source, m *machine) error {
	ruleset, rules, err := source.parse(m)
	if err != nil {
		return err
	}
	done, err := b.replaceInPlace(source, ruleset, rules, m)
	if done || err != nil {
		return err
	}
	if err := rules.compile(ruleset, m); err != nil {
		return err
	}
	dp, err := b.buildRules(source, rules, m)
	if err != nil {
		return err
	}
	err = b.swap(dp, source, rules, m)
	if b.dp != dp {
		dp.Close() //nolint:errcheck // it was never live
	}
	return err
}

// swap makes a built dataplane live and closes the old one.
func (b *box) swap(dp *dataplane.Dataplane, source Source, rules *compiled, m *machine) error {
	if err := b.divertOn(rules); err != nil {
		return err
	}
	if err := b.endSpreading(rules); err != nil {
		b.cfg.Log.Warn("frames on their way to other cores may be overtaken", "error", err)
	}
	report, err := b.commitGuarded(dp, source, rules, m)
	if err != nil {
		b.divertOff()
		return fmt.Errorf("replace the dataplane: %w", err)
	}
	old := b.dp
	b.policies.leave(old)
	b.dp, b.source, b.rules, b.host = dp, source, rules, m.host
	b.pulse.follow(dp)
	if old != nil {
		old.Close() //nolint:errcheck // the new one owns its pins now
	}
	b.noteStates(report)
	b.divertOff()
	b.noteLoaded(false)
	err = dp.Alone(func() error { return errors.Join(b.pruneRules(), b.pruneSources(dp.Generation()), b.pruneTables()) })
	if err != nil && !errors.Is(err, dataplane.ErrBusy) { // then the next load does it
		b.cfg.Log.Warn("remove the records of old rules", "error", err)
	}
	b.updateLater(b.updateInterfaces(m))
	return nil
}

// updateLater leaves to the follower what failed after rules were put in force.
func (b *box) updateLater(err error) {
	if err != nil {
		b.cfg.Log.Error("the rules are in force, but the interfaces are not up to date; trying again", "error", err)
		signal(b.again)
	}
}

// commitGuarded commits. If the new rules use another mark mask, the guard accepts both
// masks from before the first program is replaced until after the last.
func (b *box) commitGuarded(dp *dataplane.Dataplane, source Source, rules *compiled, m *machine) (report dataplane.Report, err error) {
	was, is := b.rules.options.MarkMask, rules.options.MarkMask
	if was == is {
		return b.commit(dp, source, rules, m)
	}
	if err := widenGuard(is); err != nil && !errors.Is(err, errNoNft) {
		return report, fmt.Errorf("widen the guard: %w", err)
	}
	if report, err = b.commit(dp, source, rules, m); err != nil {
		return report, errors.Join(err, narrowGuard(was))
	}
	if err := narrowGuard(is); err != nil {
		b.cfg.Log.Warn("the guard accepts bits of the mark that are no longer weir's", "error", err)
	}
	return report, nil
}

// wantsXDP reports whether any interface is to get XDP.
func (b *box) wantsXDP(m *machine) bool {
	for i := range m.links {
		if Choose(&m.links[i], b.cfg.Mode).Hook == XDP {
			return true
		}
	}
	return false
}

// attachments returns the interfaces that have programs, in the form that the dataplane
// takes.
func (b *box) attachments(m *machine) []dataplane.Attachment {
	var all []dataplane.Attachment
	for _, l := range m.hooked(b.hooks) {
		all = append(all, dataplane.Attachment{Ifindex: l.Index, Name: l.Name, XDP: b.hooks[l.Index].Hook == XDP})
	}
	return all
}

// noteLoaded records the ruleset in force for readers of the run folder. first says that
// nothing was enforced before.
func (b *box) noteLoaded(first bool) {
	var before rundir.Loaded
	started := time.Now()
	if err := rundir.ReadJSON(b.cfg.Folder.Loaded(), &before); err == nil && !first {
		started = before.Started
	}
	now := rundir.Loaded{
		File: b.source.Path, Unloaded: b.source.Builtin, Time: time.Now(),
		Base: b.rules.base, Rules: rundir.CountShown(b.rules.texts), Limit: b.rules.options.MaxStates, MarkMask: b.rules.options.MarkMask,
		MaxTables: b.rules.options.MaxTables, MaxTableEntries: b.rules.options.MaxTableEntries, SrcTrack: b.rules.options.Timeouts.SrcTrack,
		Queues: b.rules.program.Queues, Shapers: b.rules.program.Shapers,
		Anchors: b.rules.anchors, Without: b.source.Without, PID: os.Getpid(), Mode: string(b.cfg.Mode), Started: started,
		MayOpen: b.rules.options.PfctlMayOpen, Disabled: b.disabled, Flushed: b.source.flushed.parts,
	}
	b.loaded.Store(&now)
	if err := rundir.WriteJSON(b.cfg.Folder.Loaded(), now); err != nil {
		b.cfg.Log.Error("record what is loaded", "error", err)
	}
}
