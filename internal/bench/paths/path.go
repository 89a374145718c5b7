package paths

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"weir/internal/bench/testbed"
	"weir/internal/bench/traffic"
	"weir/internal/fw/bpfload"
	"weir/internal/host/netif"
	"weir/internal/lab"
)

// A Path is one way through the firewall's namespace.
type Path struct {
	Name string
	Hook string // where it sees a packet: xdp, tcx, or the kernel's stack
	traffic.Effect
	Entries []Entry
	// Counts reads what its queues have counted. nil: it has none.
	Counts func(context.Context, *testbed.Testbed) (QueueCounts, error)
}

// An Entry is one way for frames to enter a path. If there are several, the faster one
// counts.
type Entry struct {
	Name  string
	Start func(context.Context, *traffic.Setup) (stop func() error, err error)
}

// Names of paths, in the order in which reports show them.
const (
	Generator = "generator"
	Redirect  = "redirect"
	Kernel    = "kernel"
	Nft       = "nft"
	NftNAT    = "nft-nat"
	Weir      = "weir"
	WeirNAT   = "weir-nat"

	KernelHTB  = "kernel-htb"   // kernel, with HTB and an IFB for the line to the internet
	WeirQoS    = "weir-qos"     // weir, with queues for that line in both directions
	WeirNATQoS = "weir-nat-qos" // weir-nat, likewise
	WeirHeld   = "weir-held"    // weir, and the kernel holds what leaves on both sides

	WeirVLAN    = "weir-vlan" // weir, with a VLAN tag on both wires
	WeirNATVLAN = "weir-nat-vlan"

	WeirPPPoE    = "weir-pppoe" // weir, with a PPPoE session on the far wire
	WeirNATPPPoE = "weir-nat-pppoe"

	RedirectPPPoE = "redirect-pppoe" // redirect, with a session on the far wire

	WeirAfTo = "weir-af-to" // from IPv6 to IPv4

	WeirScrub   = "weir-scrub"    // weir-nat, and packets are normalised and get a priority
	WeirRouteTo = "weir-route-to" // weir-nat, and a rule chooses the gateway
	WeirLimits  = "weir-limits"   // weir-nat, and the states of each source are limited

	WeirStateless = "weir-stateless" // weir without states: every packet meets the rules
	WeirOnce      = "weir-once"      // weir, and no packet takes two passes
)

// All are the names of all paths except those for special questions.
var All = []string{Generator, Redirect, Kernel, Nft, NftNAT, Weir, WeirNAT}

// VLAN are the paths of tagged frames. They work without the kernel's VLAN devices.
var VLAN = []string{WeirVLAN, WeirNATVLAN}

// PPPoE are weir's paths with a session.
var PPPoE = []string{WeirPPPoE, WeirNATPPPoE}

// Queued are the paths with queues.
var Queued = []string{KernelHTB, WeirQoS, WeirNATQoS, WeirHeld}

// Known are the names of all paths.
var Known = slices.Concat(All, Queued, VLAN, PPPoE, []string{RedirectPPPoE, WeirAfTo, WeirScrub, WeirRouteTo, WeirLimits, WeirStateless, WeirOnce})

// Prefetches reports whether weir runs on a path and may look at packets twice.
func Prefetches(name string) bool { return strings.HasPrefix(name, Weir) && name != WeirOnce }

// furtherRules are what weir's rules have more on some paths: before the first filter rule.
var furtherRules = map[string]string{
	WeirStateless: "pass quick on $lan no state\npass quick on $wan no state\n",
	WeirAfTo:      "pass in quick on $lan inet6 to 64:ff9b::/96 af-to inet from ($wan)\n",
	WeirScrub:     "match scrub (no-df, max-mss 1460) set prio 3\n",
	WeirRouteTo:   "pass in quick on $lan inet route-to 203.0.113.1\npass in quick on $lan inet6 route-to 2001:db8:113::1\n",
	WeirLimits: "set limit src-nodes 1000000\n" +
		"pass in quick on $lan keep state (max 16000000, source-track rule, max-src-states 4000000, max-src-nodes 1000000)\n",
}

// hookStack is the hook of paths that go through the kernel's own stack.
const hookStack = "stack"

// WeirOptions choose how weir runs on its paths.
type WeirOptions struct {
	Hook     string // xdp or tcx
	Prefetch string // as for weir run --prefetch; "": its default
	// LineRate is what queues give the line to the internet, in bits per second, also
	// those of the kernel. 0: so much that nothing is dropped.
	LineRate uint64

	// Spread is what set spread says of both wires: auto, off or cores N. "": nothing.
	Spread string

	further string // rules of the path
}

// New returns a path by its name.
func New(name string, o WeirOptions) (*Path, error) {
	o.further = furtherRules[name]
	o.LineRate = cmp.Or(o.LineRate, AmpleRate)
	switch name {
	case Generator:
		return &Path{Name: name, Hook: "xdp", Effect: traffic.Effect{ToDoor: true}, Entries: []Entry{{"", startNothing}}}, nil
	case Redirect:
		return &Path{Name: name, Hook: "xdp", Entries: []Entry{{"bpf_redirect", startRedirect("redirect")}, {"bpf_redirect_map", startRedirect("redirect_map")}}}, nil
	case RedirectPPPoE:
		return &Path{Name: name, Hook: "xdp", Effect: traffic.Effect{InSession: true}, Entries: []Entry{
			{"bpf_redirect", startRedirectSession("redirect_session")}, {"bpf_redirect_map", startRedirectSession("redirect_map_session")}}}, nil
	case Kernel:
		return &Path{Name: name, Hook: hookStack, Effect: traffic.Effect{Routes: true, HasEgress: true}, Entries: stackEntries(nil)}, nil
	case Nft:
		return &Path{Name: name, Hook: hookStack, Effect: traffic.Effect{Routes: true, Connects: true, HasEgress: true}, Entries: stackEntries(startNft)}, nil
	case NftNAT:
		return &Path{Name: name, Hook: hookStack, Effect: traffic.Effect{Routes: true, Connects: true, Translates: true, HasEgress: true}, Entries: stackEntries(startNft)}, nil
	case Weir, WeirOnce:
		if name == WeirOnce {
			o.Prefetch = "off"
		}
		return &Path{Name: name, Hook: o.Hook, Effect: traffic.Effect{Routes: true, Connects: true, HasEgress: o.Hook == "tcx"}, Entries: []Entry{{"", startWeir(o)}}}, nil
	case KernelHTB:
		return &Path{Name: name, Hook: hookStack, Effect: traffic.Effect{Routes: true, HasEgress: true}, Entries: stackEntries(startHTB(o.LineRate)), Counts: countHTB}, nil
	case WeirQoS, WeirNATQoS:
		o.further = queuesConf(QueuesConf, o.LineRate)
		return &Path{Name: name, Hook: o.Hook, Effect: traffic.Effect{Routes: true, Connects: true, Translates: name == WeirNATQoS, HasEgress: o.Hook == "tcx"}, Entries: []Entry{{"", startWeir(o)}}, Counts: countWeir}, nil
	case WeirHeld:
		o.further = queuesConf(HeldConf, o.LineRate)
		return &Path{Name: name, Hook: hookStack, Effect: traffic.Effect{Routes: true, Connects: true, HasEgress: true}, Entries: []Entry{{"", startWeir(o)}}, Counts: countWeir}, nil
	case WeirNAT, WeirScrub, WeirRouteTo, WeirLimits:
		return &Path{Name: name, Hook: o.Hook, Effect: traffic.Effect{Routes: true, Connects: true, Translates: true, Normalises: name == WeirScrub, HasEgress: o.Hook == "tcx"}, Entries: []Entry{{"", startWeir(o)}}}, nil
	case WeirStateless:
		return &Path{Name: name, Hook: o.Hook, Effect: traffic.Effect{Routes: true, HasEgress: o.Hook == "tcx"}, Entries: []Entry{{"", startWeir(o)}}}, nil
	case WeirAfTo:
		return &Path{Name: name, Hook: o.Hook, Effect: traffic.Effect{Routes: true, Connects: true, Translates: true, FromIPv6: true, HasEgress: o.Hook == "tcx"}, Entries: []Entry{{"", startWeir(o)}}}, nil
	case WeirVLAN:
		return &Path{Name: name, Hook: o.Hook, Effect: traffic.Effect{Routes: true, Connects: true, Tagged: true}, Entries: []Entry{{"", startTagged(o)}}}, nil
	case WeirPPPoE, WeirNATPPPoE:
		return &Path{Name: name, Hook: o.Hook, Effect: traffic.Effect{Routes: true, Connects: true, Translates: name == WeirNATPPPoE, InSession: true}, Entries: []Entry{{"", startSession(o)}}}, nil
	case WeirNATVLAN:
		return &Path{Name: name, Hook: o.Hook, Effect: traffic.Effect{Routes: true, Connects: true, Translates: true, Tagged: true}, Entries: []Entry{{"", startTagged(o)}}}, nil
	}
	return nil, fmt.Errorf("no path %q; there are %s", name, strings.Join(Known, ", "))
}

// EntryNames returns the names of a path's entries. Which one is faster depends on the
// frames.
func EntryNames(path, hook string) ([]string, error) {
	p, err := New(path, WeirOptions{Hook: hook})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, f := range p.Entries {
		names = append(names, f.Name)
	}
	return names, nil
}

// Entry returns the entry with that name. "" means the first.
func (p *Path) Entry(name string) (Entry, error) {
	i := slices.IndexFunc(p.Entries, func(f Entry) bool { return f.Name == name || name == "" })
	if i < 0 {
		return Entry{}, fmt.Errorf("path %s has no entry %q", p.Name, name)
	}
	return p.Entries[i], nil
}

func startNothing(context.Context, *traffic.Setup) (func() error, error) {
	return func() error { return nil }, nil
}

// startRedirect attaches the bare redirect to both devices of the firewall.
func startRedirect(program string) func(context.Context, *traffic.Setup) (func() error, error) {
	return func(_ context.Context, w *traffic.Setup) (func() error, error) {
		var undo UndoList
		for _, back := range []bool{false, true} {
			if err := undo.redirect(w, back, program); err != nil {
				return nil, errors.Join(err, undo.Run())
			}
		}
		return undo.Run, nil
	}
}

func (u *UndoList) redirect(w *traffic.Setup, back bool, program string) error {
	objects, err := traffic.LoadRedirect(w, back)
	if err != nil {
		return err
	}
	u.Add(objects.Close)
	return u.attach(w.Testbed, w.Door(back), objects.Programs[program])
}

// attach attaches an XDP program to a device.
func (u *UndoList) attach(b *testbed.Testbed, p testbed.Place, program *bpfload.Program) error {
	link, err := b.Attach(p, bpfload.XDP, program)
	if err == nil {
		u.Add(func() error { return testbed.Detach(link) })
	}
	return err
}

// stackEntries returns the two entries from a veth's ring into the kernel's stack: by
// GRO, or through an XDP program that passes. more starts what the path has besides
// forwarding.
func stackEntries(more func(context.Context, *traffic.Setup, *UndoList) error) []Entry {
	start := func(enter func(*traffic.Setup, *UndoList) error) func(context.Context, *traffic.Setup) (func() error, error) {
		return func(ctx context.Context, w *traffic.Setup) (func() error, error) {
			var undo UndoList
			err := errors.Join(enter(w, &undo), turnOnForwarding(w, &undo))
			if err == nil && more != nil {
				err = more(ctx, w, &undo)
			}
			if err != nil {
				return nil, errors.Join(err, undo.Run())
			}
			return undo.Run, nil
		}
	}
	return []Entry{{"gro", start(enterGRO)}, {"xdp-pass", start(enterPass)}}
}

func enterGRO(w *traffic.Setup, undo *UndoList) error {
	for _, door := range []testbed.Place{testbed.NearDoor, testbed.FarDoor} {
		if err := w.Testbed.Lab.SetGRO(door.Host, door.Device, true); err != nil {
			return err
		}
		undo.Add(func() error { return w.Testbed.Lab.SetGRO(door.Host, door.Device, false) })
	}
	return nil
}

func enterPass(w *traffic.Setup, undo *UndoList) error {
	objects, err := traffic.LoadCountObjectsFor(w, false, nil)
	if err != nil {
		return err
	}
	undo.Add(objects.Close)
	for _, door := range []testbed.Place{testbed.NearDoor, testbed.FarDoor} {
		if err := undo.attach(w.Testbed, door, objects.Programs["pass"]); err != nil {
			return err
		}
	}
	return nil
}

// turnOnForwarding turns on the kernel's forwarding.
func turnOnForwarding(w *traffic.Setup, undo *UndoList) error {
	set := func(value string) error {
		return w.Testbed.Lab.Do(lab.FW, func() error {
			return errors.Join(netif.SetSysctl("net/ipv4/conf/all/forwarding", value),
				netif.SetSysctl("net/ipv6/conf/all/forwarding", value))
		})
	}
	undo.Add(func() error { return set("0") })
	return set("1")
}

// UndoList undoes steps, the last first.
type UndoList struct{ steps []func() error }

// Add adds a step.
func (u *UndoList) Add(step func() error) { u.steps = append(u.steps, step) }

// Run undoes all steps and clears the list.
func (u *UndoList) Run() error {
	var errs []error
	for _, step := range slices.Backward(u.steps) {
		errs = append(errs, step())
	}
	u.steps = nil
	return errors.Join(errs...)
}
