package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"weir/internal/fw/bpfload"
	"weir/internal/host/netif"
	"weir/internal/lab"
)

// A path is one way through the firewall's namespace.
type path struct {
	name       string
	hook       string // where it meets a packet: xdp, tcx, or the kernel's stack
	about      string
	toDoor     bool // frames end at the firewall's door
	routes     bool // it decrements the TTL
	translates bool // it gives sources the firewall's address
	connects   bool // it remembers connections
	hasEgress  bool // what it sends passes the egress hook
	flavours   []flavour
}

// A flavour is one way to build a path; where there are several, the faster
// counts.
type flavour struct {
	name  string
	start func(context.Context, *setting, *way) (stop func() error, err error)
}

// Names of paths, in the order in which reports show them.
const (
	PathGenerator = "generator"
	PathRedirect  = "redirect"
	PathKernel    = "kernel"
	PathNft       = "nft"
	PathNftNAT    = "nft-nat"
	PathWeir      = "weir"
	PathWeirNAT   = "weir-nat"
)

// Paths are the names of all paths.
var Paths = []string{PathGenerator, PathRedirect, PathKernel, PathNft, PathNftNAT, PathWeir, PathWeirNAT}

// hookStack is the hook of paths that go through the kernel's own stack.
const hookStack = "stack"

// newPath describes a path; weir is measured at the hook that is given.
func newPath(name, weirHook string) (*path, error) {
	switch name {
	case PathGenerator:
		return &path{name: name, hook: "xdp", about: "frames end at the firewall's door: what the measuring itself costs",
			toDoor: true, flavours: []flavour{{"", startNothing}}}, nil
	case PathRedirect:
		return &path{name: name, hook: "xdp", about: "a bare XDP redirect with new MAC addresses: the limit of this machine",
			flavours: []flavour{{"bpf_redirect", startRedirect("redirect")}, {"bpf_redirect_map", startRedirect("redirect_map")}}}, nil
	case PathKernel:
		return &path{name: name, hook: hookStack, about: "the kernel's routing, no rules",
			routes: true, hasEgress: true, flavours: stackFlavours(nil)}, nil
	case PathNft:
		return &path{name: name, hook: hookStack, about: "examples/gateway.nft, untranslated traffic",
			routes: true, connects: true, hasEgress: true, flavours: stackFlavours(startNft)}, nil
	case PathNftNAT:
		return &path{name: name, hook: hookStack, about: "examples/gateway.nft, translated traffic",
			routes: true, connects: true, translates: true, hasEgress: true, flavours: stackFlavours(startNft)}, nil
	case PathWeir:
		return &path{name: name, hook: weirHook, about: "examples/gateway.conf, untranslated traffic",
			routes: true, connects: true, hasEgress: weirHook == "tcx", flavours: []flavour{{"", startWeir}}}, nil
	case PathWeirNAT:
		return &path{name: name, hook: weirHook, about: "examples/gateway.conf, translated traffic",
			routes: true, connects: true, translates: true, hasEgress: weirHook == "tcx", flavours: []flavour{{"", startWeir}}}, nil
	}
	return nil, fmt.Errorf("no path %q; there are %s", name, strings.Join(Paths, ", "))
}

func startNothing(context.Context, *setting, *way) (func() error, error) {
	return func() error { return nil }, nil
}

// startRedirect attaches the bare redirect to both of the firewall's doors.
func startRedirect(program string) func(context.Context, *setting, *way) (func() error, error) {
	return func(_ context.Context, _ *setting, w *way) (func() error, error) {
		var undo undoList
		for _, back := range []bool{false, true} {
			if err := undo.redirect(w, back, program); err != nil {
				return nil, errors.Join(err, undo.run())
			}
		}
		return undo.run, nil
	}
}

func (u *undoList) redirect(w *way, back bool, program string) error {
	source, target, err := w.net.macs(w.exit(back), w.end(back))
	if err != nil {
		return err
	}
	addresses := words(append(slices.Clone(target), source...))
	leaveBy := uint32(w.net.indexes[w.exit(back)])
	objects, err := loadCountObjectsFor(w, map[string]any{
		"leave_by": leaveBy, "addresses_low": addresses[0], "addresses_high": uint32(addresses[1]),
	})
	if err != nil {
		return err
	}
	u.add(objects.Close)
	// A device map holds devices of the namespace that they are put in from.
	err = w.net.lab.Do(lab.FW, func() error { return bpfload.PutDevice(objects.Maps["devices"], 0, leaveBy) })
	if err != nil {
		return err
	}
	link, err := w.net.attach(w.door(back), bpfload.XDP, objects.Programs[program])
	if err != nil {
		return err
	}
	u.add(func() error { return detach(link) })
	return nil
}

// stackFlavours are the two ways in which frames can enter the kernel's stack
// from a veth's ring: by GRO, or past an XDP program. more starts what the path
// has besides forwarding.
func stackFlavours(more func(context.Context, *setting, *way, *undoList) error) []flavour {
	start := func(enter func(*way, *undoList) error) func(context.Context, *setting, *way) (func() error, error) {
		return func(ctx context.Context, s *setting, w *way) (func() error, error) {
			var undo undoList
			err := errors.Join(enter(w, &undo), forward(w, &undo))
			if err == nil && more != nil {
				err = more(ctx, s, w, &undo)
			}
			if err != nil {
				return nil, errors.Join(err, undo.run())
			}
			return undo.run, nil
		}
	}
	return []flavour{{"gro", start(enterGRO)}, {"xdp-pass", start(enterPass)}}
}

func enterGRO(w *way, undo *undoList) error {
	for _, door := range []place{nearDoor, farDoor} {
		if err := w.net.lab.SetGRO(door.host, door.device, true); err != nil {
			return err
		}
		undo.add(func() error { return w.net.lab.SetGRO(door.host, door.device, false) })
	}
	return nil
}

func enterPass(w *way, undo *undoList) error {
	objects, err := loadCountObjectsFor(w, nil)
	if err != nil {
		return err
	}
	undo.add(objects.Close)
	for _, door := range []place{nearDoor, farDoor} {
		link, err := w.net.attach(door, bpfload.XDP, objects.Programs["pass"])
		if err != nil {
			return err
		}
		undo.add(func() error { return detach(link) })
	}
	return nil
}

// forward turns the kernel's forwarding on.
func forward(w *way, undo *undoList) error {
	set := func(value string) error {
		return w.net.lab.Do(lab.FW, func() error {
			return errors.Join(netif.SetSysctl("net/ipv4/conf/all/forwarding", value),
				netif.SetSysctl("net/ipv6/conf/all/forwarding", value))
		})
	}
	undo.add(func() error { return set("0") })
	return set("1")
}

// undoList takes back what was done, the last first.
type undoList struct{ steps []func() error }

func (u *undoList) add(step func() error) { u.steps = append(u.steps, step) }

func (u *undoList) run() error {
	var errs []error
	for _, step := range slices.Backward(u.steps) {
		errs = append(errs, step())
	}
	u.steps = nil
	return errors.Join(errs...)
}
