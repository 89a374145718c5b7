package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"regexp"
	"runtime"
	"slices"

	"golang.org/x/sys/unix"

	"weir/internal/missing"
)

// DefaultName is the prefix of the namespaces of "weir lab".
const DefaultName = "weir"

// validName is the form of a lab's name: usable as a file name, short enough to read.
var validName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)

// ErrNotUp means that a lab does not exist or is incomplete.
var ErrNotUp = errors.New("lab is not up")

// Options say what lab to build. The zero value is the network of "weir lab up".
type Options struct {
	Name     string   // prefix of the namespaces' names; "" for [DefaultName]
	Topology Topology // zero for [Gateway]
	Queues   int      // per device and direction, 1 to 1024; 0 for one per core
	Offloads Offloads
	// Neighbours adds permanent neighbour entries for both ends of every wire, so
	// address resolution never runs.
	Neighbours bool
}

// Lab is a network that is up. Its methods may be called from any goroutine.
type Lab struct {
	name     string
	topology Topology
}

// Up builds the lab, or changes an existing lab of that name to what opts say. It may be
// called again, also after a failure. After an error, the parts built so far stay until
// [Remove].
func Up(ctx context.Context, opts Options) (*Lab, error) {
	if opts.Queues == 0 {
		opts.Queues = runtime.NumCPU()
	}
	l, err := newLab(opts.Name, opts.Topology)
	if err != nil {
		return nil, err
	}
	if unix.Geteuid() != 0 {
		return nil, missing.Errorf("a lab needs root: network namespaces are made for it")
	}
	for _, h := range l.topology.Hosts {
		if err := l.makeNamespace(h.Name); err != nil {
			return nil, err
		}
	}
	for _, w := range l.topology.Wires {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := l.makeWire(w, &opts); err != nil {
			return nil, err
		}
	}
	for _, h := range l.topology.Hosts {
		if err := l.setRoutes(h); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// Open finds a lab that [Up] built. The error is [ErrNotUp] if one of its namespaces is
// missing.
func Open(name string, topology Topology) (*Lab, error) {
	l, err := newLab(name, topology)
	if err != nil {
		return nil, err
	}
	for _, h := range l.topology.Hosts {
		ns, err := l.open(h.Name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w: no network namespace %s", ErrNotUp, l.Namespace(h.Name))
		}
		if err != nil {
			return nil, err
		}
		ns.Close()
	}
	return l, nil
}

// Remove removes a lab, complete or not, and reports whether anything was there.
// Processes that still run in it keep their namespace but lose its wires. If one host
// cannot be removed, the others are removed all the same.
func Remove(name string, topology Topology) (bool, error) {
	l, err := newLab(name, topology)
	if err != nil {
		return false, err
	}
	found := false
	var errs []error
	for _, h := range l.topology.Hosts {
		was, err := l.removeNamespace(h.Name)
		errs = append(errs, err)
		found = found || was
	}
	return found, errors.Join(errs...)
}

// Close removes the lab.
func (l *Lab) Close() error {
	_, err := Remove(l.name, l.topology)
	return err
}

// Namespace returns the name under which ip netns knows a host of the lab.
func (l *Lab) Namespace(host string) string { return l.name + "-" + host }

// Hosts returns the names of the lab's hosts, in the topology's order.
func (l *Lab) Hosts() []string {
	names := make([]string, len(l.topology.Hosts))
	for i, h := range l.topology.Hosts {
		names[i] = h.Name
	}
	return names
}

// Has reports whether the lab has a host of that name.
func (l *Lab) Has(host string) bool { return slices.Contains(l.Hosts(), host) }

// Addr returns the address of a family on a device of a host, or the zero Addr.
func (l *Lab) Addr(host, device string, ipv6 bool) netip.Addr {
	own, _ := l.topology.end(host, device)
	if own == nil {
		return netip.Addr{}
	}
	for _, a := range own.Addresses {
		if a.Addr().Is6() == ipv6 {
			return a.Addr()
		}
	}
	return netip.Addr{}
}

// MACs returns the hardware addresses of a device and of its peer, or "" if there is no
// such device.
func (l *Lab) MACs(host, device string) (own, peer string) {
	e, p := l.topology.end(host, device)
	if e == nil {
		return "", ""
	}
	return e.MAC, p.MAC
}

// CheckName checks the name of a lab.
func CheckName(name string) error {
	if !validName.MatchString(name) {
		return fmt.Errorf("lab name %q: small letters, digits and -, beginning with a letter, at most 32", name)
	}
	return nil
}

func newLab(name string, topology Topology) (*Lab, error) {
	if name == "" {
		name = DefaultName
	}
	if err := CheckName(name); err != nil {
		return nil, err
	}
	if len(topology.Hosts) == 0 {
		topology = Gateway()
	}
	return &Lab{name: name, topology: topology}, nil
}
