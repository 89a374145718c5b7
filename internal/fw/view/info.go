package view

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"strconv"
	"time"

	"weir/internal/fw/dataplane"
	"weir/internal/fw/limits"
	"weir/internal/fw/reason"
	"weir/internal/fw/rundir"
	"weir/internal/fw/state"
	"weir/internal/textout"
)

// Info is weir's status in one network namespace.
type Info struct {
	Enabled     bool              `json:"enabled"`            // packets are filtered here
	Starting    bool              `json:"starting,omitempty"` // the box does not forward yet
	Since       time.Time         `json:"since,omitzero"`
	Loaded      *rundir.Loaded    `json:"loaded,omitempty"`
	Rollback    *RollbackInfo     `json:"rollback,omitempty"`
	Daemon      DaemonInfo        `json:"daemon"`
	States      StatesInfo        `json:"states"`
	Sources     SourcesInfo       `json:"sources"`
	Limiters    []Limiter         `json:"limiters,omitempty"`
	Capturing   bool              `json:"capturing"`                 // weir capture runs
	Prefetching bool              `json:"prefetching"`               // packets that come in at XDP are prefetched
	PrefetchOff string            `json:"prefetching_off,omitempty"` // why not
	Policies    *rundir.Policies  `json:"policies,omitempty"`        // of IPsec, that are followed
	Paths       uint32            `json:"paths"`                     // sets of matched rules that are counted apart
	PathsFull   Counter           `json:"paths_full"`                // counted under no rule, as no path was free
	Rejects     Rejects           `json:"answers"`
	MaxFrags    uint32            `json:"max_frags"` // fragmented packets at once
	NextHops    uint32            `json:"nexthops"`
	Lost        LostInfo          `json:"lost_records"`
	Timeouts    map[string]string `json:"timeouts"`
	Adaptive    Adaptive          `json:"adaptive"`
	Interfaces  []InterfaceInfo   `json:"interfaces"`
}

// Ready reports whether rules of the user are in force and the box forwards by them.
func (i *Info) Ready() bool {
	return i.Enabled && !i.Loaded.Unloaded && !i.Starting
}

// RollbackInfo describes a load that waits for confirmation.
type RollbackInfo struct {
	Until  time.Time `json:"until"`
	Before string    `json:"before"`           // file of the rules that come back
	Failed string    `json:"failed,omitempty"` // why they have not, though the time is up
}

// Adaptive says from how many states on timeouts shrink, and at how many they would be 0. Both 0:
// they do not.
type Adaptive struct {
	Start uint32 `json:"start"`
	End   uint32 `json:"end"`
}

// Rejects counts blocked packets whose senders were told, because the rules
// that say return.
type Rejects struct {
	Resets   uint64 `json:"resets"`    // TCP
	Errors   uint64 `json:"errors"`    // ICMP "unreachable"
	KeptBack uint64 `json:"kept_back"` // not told: there were too many at once
	Failed   uint64 `json:"failed"`    // not told: the answer could not be made
}

// DaemonInfo says whether the daemon lives: its heartbeat is recent and its socket is
// open. The socket shows its death at once.
type DaemonInfo struct {
	Alive     bool          `json:"alive"`
	PID       int           `json:"pid,omitempty"` // of the last one
	Heartbeat time.Duration `json:"heartbeat_ns"`  // since its last
}

// StatesInfo describes the state table.
type StatesInfo struct {
	Current  uint32 `json:"current"`
	Limit    uint32 `json:"limit"`
	Inserts  uint32 `json:"inserts"` // modulo 2³²
	Removals uint32 `json:"removals"`
}

// SourcesInfo describes the table of sources.
type SourcesInfo struct {
	Current uint32 `json:"current"`
	Limit   uint32 `json:"limit"`
}

// LostInfo is how many records have found no room in their ring so far.
type LostInfo struct {
	Log     uint64 `json:"log"`     // of rules that log
	Capture uint64 `json:"capture"` // of captured packets
}

// InterfaceInfo counts what happened to packets at one interface.
type InterfaceInfo struct {
	Name    string        `json:"name"`
	Passed  Counter       `json:"passed"`
	Blocked Counter       `json:"blocked"`
	Reasons []ReasonCount `json:"reasons"` // those that were met
}

// ReasonCount is the count of one reason.
type ReasonCount struct {
	Reason reason.Reason `json:"reason"`
	Counter
}

// Counter counts packets, and bytes of whole IP packets.
type Counter struct {
	Packets uint64 `json:"packets"`
	Bytes   uint64 `json:"bytes"`
}

func (c *Counter) add(packets, bytes uint64) {
	c.Packets += packets
	c.Bytes += bytes
}

// daemonDead is the age of a heartbeat from which the daemon counts as dead.
const daemonDead = limits.DaemonDead * (time.Second / limits.TicksPerSecond)

// Disabled returns the status of a namespace in which weir does not run.
func Disabled() *Info {
	return &Info{Timeouts: map[string]string{}, Interfaces: []InterfaceInfo{}}
}

// Info collects weir's status.
func (v *View) Info() (*Info, error) {
	var info *Info
	err := v.read(func(r *reading) (err error) {
		info, err = r.condition()
		return err
	})
	return info, err
}

func (r *reading) condition() (*Info, error) {
	i, loaded := r.info, r.loaded
	info := &Info{
		Enabled: loaded.Disabled.IsZero(), Starting: r.starting, Since: loaded.Started, Loaded: &loaded,
		Daemon:    DaemonInfo{Alive: i.Heartbeat < daemonDead && r.folder.IsServed(), PID: loaded.PID, Heartbeat: i.Heartbeat},
		States:    StatesInfo{Current: i.States, Limit: i.MaxStates, Inserts: i.Made, Removals: i.Made - i.States},
		Sources:   SourcesInfo{Current: i.Sources, Limit: i.MaxSources},
		Limiters:  limitersOf(r.pins.Limiters()),
		Capturing: i.Capturing, Prefetching: i.Prefetching,
		Paths:    i.Paths,
		NextHops: i.NextHops,
		MaxFrags: i.MaxFrags,
		Timeouts: map[string]string{timeoutFrag: lasts(i.Frag)},
		Adaptive: Adaptive{i.AdaptiveStart, i.AdaptiveEnd},
	}
	for phase, ticks := range i.Timeouts {
		info.Timeouts[state.Phase(phase).String()] = lasts(ticks)
	}
	if !info.Prefetching && info.Daemon.Alive {
		var p rundir.Prefetch
		if err := rundir.ReadJSON(r.folder.Prefetch(), &p); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		info.PrefetchOff = p.Why
	}
	var policies rundir.Policies
	if err := rundir.ReadJSON(r.folder.Policies(), &policies); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if policies != (rundir.Policies{}) {
		info.Policies = &policies
	}
	waits, err := r.folder.ReadRollback()
	if err != nil {
		return nil, err
	}
	if waits != nil {
		info.Rollback = &RollbackInfo{waits.Until, waits.Before.Path, waits.Failed}
	}
	if err := r.count(info); err != nil {
		return nil, err
	}
	info.Interfaces, err = r.interfaces()
	return info, err
}

// timeoutFrag is the name of the timeout of fragments.
const timeoutFrag = "frag"

// lasts returns a number of ticks as a time.
func lasts(ticks uint32) string {
	return (time.Duration(ticks) * (time.Second / state.TicksPerSecond)).String()
}

// count fills in the counters that do not belong to an interface.
func (r *reading) count(info *Info) error {
	paths, err := r.pins.Paths()
	if err != nil {
		return fmt.Errorf("read the counters of the paths: %w", err)
	}
	for n := range paths {
		if paths[n].Full {
			counted := paths[n].Counter()
			info.PathsFull.add(counted.Packets, counted.Bytes)
		}
	}
	rejects, err := r.pins.Rejects()
	if err != nil {
		return fmt.Errorf("read the counters of rejects: %w", err)
	}
	info.Rejects = Rejects{
		Resets: rejects.RST.Packets, Errors: rejects.ICMP.Packets,
		KeptBack: rejects.Limited.Packets, Failed: rejects.Failed.Packets,
	}
	for name, count := range map[dataplane.RingName]*uint64{
		dataplane.LogRing: &info.Lost.Log, dataplane.CaptureRing: &info.Lost.Capture,
	} {
		if *count, err = r.pins.RecordsLost(name); err != nil {
			return err
		}
	}
	return nil
}

func (r *reading) interfaces() ([]InterfaceInfo, error) {
	counters, err := r.pins.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("read the counters of the interfaces: %w", err)
	}
	all := make([]InterfaceInfo, 0, len(counters))
	for n := range counters {
		c := &counters[n]
		one := InterfaceInfo{Name: r.interfaceName(c.Ifindex), Reasons: []ReasonCount{}}
		for _, why := range reason.All() {
			packets, bytes := c.Reasons[why].Packets, c.Reasons[why].Bytes
			if packets == 0 {
				continue
			}
			one.Reasons = append(one.Reasons, ReasonCount{why, Counter{packets, bytes}})
			if why.IsPass() {
				one.Passed.add(packets, bytes)
			} else {
				one.Blocked.add(packets, bytes)
			}
		}
		all = append(all, one)
	}
	return all, nil
}

func (r *reading) interfaceName(index int) string {
	if index == 0 {
		return "(others)"
	}
	if name := r.names[index]; name != "" {
		return name
	}
	return "interface " + strconv.Itoa(index)
}

// policiesText says what IPsec policies do to the ways of packets.
func policiesText(p *rundir.Policies) string {
	if p.All != "" {
		return "IPsec policies: everything that is forwarded goes up to the stack: " + p.All
	}
	text := fmt.Sprintf("IPsec policies: %d followed", p.Followed)
	if p.Held > 0 {
		text += fmt.Sprintf(", of which %d held since they have gone", p.Held)
	}
	if p.Blocks {
		text += "; what none selects is blocked by default"
	}
	return text + "; what they select goes up to the stack, other packets are looked up, and none are prefetched"
}

// Print writes the status in the form of pfctl -si, with reasons under each interface.
func (i *Info) Print(w io.Writer) error {
	p := &textout.Lines{W: w}
	if i.Loaded == nil {
		p.Line("Status: Disabled")
		return p.Err
	}
	now := time.Now()
	status := "Status: Enabled for " + span(now.Sub(i.Since))
	if !i.Enabled {
		status = "Status: Disabled for " + span(now.Sub(i.Loaded.Disabled))
	}
	p.Line("%-49sDaemon: %s", status, i.Daemon.String())
	if !i.Enabled {
		p.Line("Everything passes, and nothing is translated: weir pfctl -e or weir load enables the rules")
	}
	if i.Starting {
		p.Line("Starting: the rules are in force, but the box does not forward yet")
	}
	p.Line("Ruleset: %s", i.Loaded.String())
	if i.Rollback != nil {
		p.Line("Rollback: %s", i.Rollback.text(i.Daemon.Alive, now))
	}
	if i.Capturing {
		p.Line("Packets are being captured")
	}
	if i.Prefetching {
		p.Line("Packets that come in at XDP are prefetched")
	} else if i.PrefetchOff != "" {
		p.Line("Packets are not prefetched: %s", i.PrefetchOff)
	}
	if i.Policies != nil {
		p.Line("%s", policiesText(i.Policies))
	}
	p.Line("")
	seconds := now.Sub(i.Since).Seconds()
	p.Line("State Table                          Total             Rate")
	p.Line("  %-25s %14d %14s", "current entries", i.States.Current, "")
	p.Line("  %-25s %14d %14.1f/s", "inserts", i.States.Inserts, rate(i.States.Inserts, seconds))
	p.Line("  %-25s %14d %14.1f/s", "removals", i.States.Removals, rate(i.States.Removals, seconds))
	if i.Sources.Current > 0 {
		p.Line("Source Tracking Table")
		p.Line("  %-25s %14d", "current entries", i.Sources.Current)
	}
	p.Line("Limits")
	p.Line("  %-13s hard limit %8d", "states", i.States.Limit)
	p.Line("  %-13s hard limit %8d", "src-nodes", i.Sources.Limit)
	for n := range i.Limiters {
		i.Limiters[n].print(p)
	}
	i.printLimits(p)
	i.Lost.print(p)
	i.Rejects.print(p, seconds)
	for n := range i.Interfaces {
		i.Interfaces[n].print(p)
	}
	return p.Err
}

// PrintTimeouts writes the timeouts in force as pfctl -st does, in seconds.
func (i *Info) PrintTimeouts(w io.Writer) error {
	p := &textout.Lines{W: w}
	var names []string
	for phase := range state.PhaseCount {
		names = append(names, phase.String())
	}
	for _, name := range append(names, timeoutFrag) {
		span, err := time.ParseDuration(i.Timeouts[name])
		if err != nil {
			return fmt.Errorf("read the timeout %s: %w", name, err)
		}
		p.Line("%-20s %10ds", name, int(span.Seconds()))
	}
	p.Line("%-20s %10d states", "adaptive.start", i.Adaptive.Start)
	p.Line("%-20s %10d states", "adaptive.end", i.Adaptive.End)
	p.Line("%-20s %10ds", "src.track", i.Loaded.SrcTrack)
	return p.Err
}

// PrintLimits writes the limits in force as pfctl -sm does. Where there is none it has the largest
// number: programs compare it (OPNsense's bogons.sh), so pfctl's "unlimited" would stop them.
func (i *Info) PrintLimits(w io.Writer) error {
	p := &textout.Lines{W: w}
	for _, l := range []struct {
		name  string
		limit uint32
	}{
		{"states", i.States.Limit},
		{"src-nodes", i.Sources.Limit},
		{"frags", i.MaxFrags},
		{"tables", cmp.Or(i.Loaded.MaxTables, math.MaxUint32)},
		{"table-entries", cmp.Or(i.Loaded.MaxTableEntries, math.MaxUint32)},
	} {
		p.Line("%-13s hard limit %8d", l.name, l.limit)
	}
	return p.Err
}

// printLimits names the tables that are full, except the state table: packets dropped
// because it is full have a reason of their own.
func (i *Info) printLimits(p *textout.Lines) {
	if i.NextHops >= dataplane.MaxNextHops {
		p.Line("  %-13s hard limit %8d, reached: packets to other next hops go through the stack (up-nexthop)", "next hops", dataplane.MaxNextHops)
	}
	if i.Paths >= dataplane.MaxPaths {
		p.Line("  %-13s hard limit %8d, reached: packets of new paths count under their deciding rules alone", "paths", dataplane.MaxPaths)
	}
	if i.PathsFull.Packets > 0 {
		p.Line("  %-13s %d packets count under no rule: no path was free", "", i.PathsFull.Packets)
	}
}

// print writes nothing if no packet was rejected.
func (a *Rejects) print(p *textout.Lines, seconds float64) {
	if *a == (Rejects{}) {
		return
	}
	p.Line("Rejects of blocked packets           Total             Rate")
	for _, c := range []struct {
		name  string
		count uint64
	}{{"TCP resets", a.Resets}, {"ICMP errors", a.Errors}, {"held back by the limit", a.KeptBack}, {"failed", a.Failed}} {
		p.Line("  %-25s %14d %14.1f/s", c.name, c.count, float64(c.count)/max(seconds, 1))
	}
}

func (l *LostInfo) print(p *textout.Lines) {
	for _, ring := range []struct {
		name string
		lost uint64
	}{{"log", l.Log}, {"capture", l.Capture}} {
		if ring.lost > 0 {
			p.Line("  %-13s %d records lost: the ring was full", ring.name, ring.lost)
		}
	}
}

func (n *InterfaceInfo) print(p *textout.Lines) {
	p.Line("")
	p.Line("%-27s %14s %16s", "Interface Stats for "+n.Name, "Packets", "Bytes")
	p.Line("  %-25s %14d %16d", "Passed", n.Passed.Packets, n.Passed.Bytes)
	for _, c := range n.Reasons {
		if c.Reason.IsPass() {
			p.Line("    %-23s %14d %16d", c.Reason, c.Packets, c.Bytes)
		}
	}
	p.Line("  %-25s %14d %16d", "Blocked", n.Blocked.Packets, n.Blocked.Bytes)
	for _, c := range n.Reasons {
		if !c.Reason.IsPass() {
			p.Line("    %-23s %14d %16d", c.Reason, c.Packets, c.Bytes)
		}
	}
}

// text says which rules come back, and when.
func (r *RollbackInfo) text(alive bool, now time.Time) string {
	if r.Failed != "" && alive {
		return "failing, retried every second: " + r.Failed
	}
	when := "when the daemon starts"
	if alive {
		when = fmt.Sprintf("in %v", max(0, r.Until.Sub(now)).Round(time.Second))
	}
	return fmt.Sprintf("to %s %s, unless weir confirm keeps these rules", r.Before, when)
}

// String says whether the daemon lives.
func (d *DaemonInfo) String() string {
	if d.Alive {
		return fmt.Sprintf("process %d", d.PID)
	}
	return fmt.Sprintf("dead for %s", span(d.Heartbeat))
}

func rate(count uint32, seconds float64) float64 {
	if seconds < 1 {
		return 0
	}
	return float64(count) / seconds
}

// span formats a time as pfctl does: days, then hours, minutes and seconds. It is none if the clock has been set back.
func span(d time.Duration) string {
	s := int(max(d, 0) / time.Second)
	return fmt.Sprintf("%d days %02d:%02d:%02d", s/86400, s/3600%24, s/60%60, s%60)
}
