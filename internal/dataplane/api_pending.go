package dataplane

import (
	"errors"
	"iter"
	"net/netip"
	"time"

	"weir/internal/reason"
	"weir/internal/state"
)

var errPending = errors.ErrUnsupported

// Folder returns the namespace's folder in weir's own bpffs, /run/weir/bpf/COOKIE,
// and mounts that bpffs if it is not there: in the mount namespace of process 1,
// where it outlives the caller. The folder itself is made by Commit. netns is
// as in Config.
func Folder(netns string) (string, error) { return "", errPending }

// Folders returns the folders of all namespaces that weir has run in.
func Folders() ([]string, error) { return nil, errPending }

// Leftover reports whether the folder's network namespace is gone: every link
// pinned there has lost its interface. Such a folder is given to Remove.
func Leftover(dir string) (bool, error) { return false, errPending }

// Remove detaches every program pinned in the folder and removes the folder
// with all that is in it, states included. It is no error if there is none.
func Remove(dir string) error { return errPending }

// NextRuleBase returns the first global rule id that no ruleset in dir has had;
// 0 if nothing is pinned there. Ids are not used again while states may hold them.
func NextRuleBase(dir string) (uint32, error) { return 0, errPending }

// A Dataplane is one generation of programs, loaded by this process.
type Dataplane struct{}

// ErrNotLoaded is returned (wrapped) by Open where nothing is pinned.
var ErrNotLoaded = errors.New("nothing is loaded")

// ErrBusy is returned (wrapped) by Build while another process is replacing
// the same folder's dataplane.
var ErrBusy = errors.New("the dataplane is being replaced by another process")

// Build loads a new generation beside the running one, over the states, next
// hops and counters that it finds pinned in cfg.Dir, or over new ones. Nothing
// is attached or pinned yet, and nothing running is changed. Where the limit of
// states or their layout differs, new tables are made; Commit copies into them.
// The caller closes the Dataplane, whether committed or not.
func Build(cfg Config) (*Dataplane, error) { return nil, errPending }

// A Report is what a Commit has done.
type Report struct {
	Generation uint32
	Copied     int // states copied into new tables; 0 if the tables were kept
	Lost       int // states that did not fit into them, or whose layout is unknown
}

// Commit makes the generation live on exactly these interfaces: one update for
// each link that is there, new links for new interfaces, the others detached.
// Where an error is returned everything is as before. SetInterface, SetAddresses
// and the rest may be called before, and should be where nothing was loaded yet.
func (d *Dataplane) Commit(attachments []Attachment) (Report, error) { return Report{}, errPending }

// Close releases what the process holds. What is pinned goes on.
func (d *Dataplane) Close() error { return errPending }

// Attach adds an interface that appeared after Commit.
func (d *Dataplane) Attach(a Attachment) error { return errPending }

// Detach removes an interface's programs. It is no error if it is gone.
func (d *Dataplane) Detach(ifindex int) error { return errPending }

// SetInterface tells the programs of an interface, and gives it counters of its
// own at the first call.
func (d *Dataplane) SetInterface(ifindex int, i Interface) error { return errPending }

// RemoveInterface forgets an interface that is gone, and its counters.
func (d *Dataplane) RemoveInterface(ifindex int) error { return errPending }

// SetAddresses replaces the addresses of the box (each with the index of its
// interface): no frame may come in with one of them as its source.
func (d *Dataplane) SetAddresses(addresses map[netip.Addr]int) error { return errPending }

// BumpRoutes has every state look up its next hops again, at its next packet.
func (d *Dataplane) BumpRoutes() {}

// Heartbeat says that the daemon lives and probes neighbours. After three
// seconds without one the programs do so by handing up packets.
func (d *Dataplane) Heartbeat() {}

// View reads what this generation has; it shares the Dataplane's maps and ends
// with it.
func (d *Dataplane) View() *View { return nil }

// A View reads a dataplane from its pins, with or without a daemon.
type View struct{}

// Open returns a view of what is pinned in dir. The error wraps ErrNotLoaded if
// there is nothing. The caller closes it.
func Open(dir string) (*View, error) { return nil, errPending }

// Close releases the view. States must not be in use.
func (v *View) Close() error { return errPending }

// Info is a dataplane's condition.
type Info struct {
	Generation uint32 // counts up with every Commit
	Loaded     time.Time
	Unloaded   bool   // the built-in set blocks all but management
	RuleBase   uint32 // global id of rule 0
	Rules      uint32
	States     uint32 // in use
	MaxStates  uint32
	Made       uint32 // states made since the start, modulo 2³²
	Paths      uint32 // sets of matched rules that are counted apart
	PathsFull  uint32 // states that found none free: only their deciding rules count
	NextHops   uint32
	Now        state.Tick
	Heartbeat  time.Duration  // since the daemon's last
	Daemon     bool           // that is recent
	Timeouts   state.Timeouts // in force, adaptive scaling applied
	Configured state.Timeouts
	Frag       uint32 // ticks
}

// Info returns the dataplane's condition.
func (v *View) Info() Info { return Info{} }

// States returns the live states, in the order of their index. Each is valid
// until the next; the dataplane goes on while they are read.
func (v *View) States() iter.Seq[*state.State] { return nil }

// KillStates marks dead the states for which match is true and returns how
// many; their next packet is judged as a new connection's.
func (v *View) KillStates(match func(*state.State) bool) (int, error) { return 0, errPending }

// A Counter counts packets and bytes of IP packets.
type Counter struct {
	Packets uint64
	Bytes   uint64
}

// An InterfaceCounters is how many packets met each end at one interface.
type InterfaceCounters struct {
	Ifindex int // 0: all interfaces that have no counters of their own
	Reasons [reason.Count]Counter
}

// Interfaces returns the counters of all interfaces, by index.
func (v *View) Interfaces() ([]InterfaceCounters, error) { return nil, errPending }

// A Path is a set of rules that packets matched together, and their number.
type Path struct {
	Rules []uint32 // global ids in order; empty: packets that no rule matched
	Counter
}

// Paths returns all paths.
func (v *View) Paths() ([]Path, error) { return nil, errPending }

// A RuleCounter is what new connections have done to one rule.
type RuleCounter struct {
	Evaluations uint64 // new connections that reached the rule
	States      uint64 // states that it made as the deciding rule
	Counter            // packets of states that found no path
}

// Rules returns the counters of the rules of this generation, by number.
func (v *View) Rules() ([]RuleCounter, error) { return nil, errPending }

// A Neighbour is a next hop in use, for the daemon to probe.
type Neighbour struct {
	Ifindex int
	Address netip.Addr
	Used    state.Tick // of the last packet
}

// Neighbours returns the next hops that packets went to in the last span of ticks.
func (v *View) Neighbours(span uint32) []Neighbour { return nil }
