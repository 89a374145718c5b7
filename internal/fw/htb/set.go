package htb

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// ErrUnsupported says that the kernel lacks what holds packets.
var ErrUnsupported = errors.New("this kernel has no tbf or no htb (CONFIG_NET_SCH_TBF, CONFIG_NET_SCH_HTB)")

// A ForeignError says that a device has a qdisc of somebody else.
type ForeignError struct {
	Device string
	Qdisc  string // as in tc's commands
	at     string // where, likewise; empty: at the root
}

func (e *ForeignError) Error() string {
	return fmt.Sprintf("%s has the qdisc %s, which is not weir's; remove it with `tc qdisc del dev %s %s`, or write `engine phantom`",
		e.Device, e.Qdisc, e.Device, cmp.Or(e.at, "root"))
}

// A Device is where a plan is set up.
type Device struct {
	Index int
	Name  string
}

// Machine is what the devices of a namespace have.
type Machine struct {
	qdiscs []found
}

// Read reads the qdiscs of the namespace.
func Read() (*Machine, error) {
	all, err := dump(unix.RTM_GETQDISC, 0)
	if err != nil {
		return nil, fmt.Errorf("read the qdiscs: %w", err)
	}
	return &Machine{all}, nil
}

// Own returns the indexes of the devices that have weir's qdiscs.
func (m *Machine) Own() []int {
	var all []int
	for i := range m.qdiscs {
		if m.qdiscs[i].isRoot() {
			all = append(all, m.qdiscs[i].ifindex)
		}
	}
	return all
}

// Whole reports whether a device has all the qdiscs of a plan: a class that is gone has taken its own
// with it. leaves are the kinds of those that hold the packets, by class. Rates may differ.
func (m *Machine) Whole(ifindex int, p *Plan, leaves []string) bool {
	if h := m.below(ifindex, rootHandle|1); !slices.Contains(m.Own(), ifindex) || h == nil || h.handle != classHandle {
		return false
	}
	if len(leaves) != len(p.Classes) {
		return false
	}
	kinds := make(map[uint32]string)
	for i := range m.qdiscs {
		if q := &m.qdiscs[i]; q.ifindex == ifindex {
			kinds[q.parent] = q.kind
		}
	}
	for i := range p.Classes {
		if p.Classes[i].Leaf != nil && kinds[classID(i)] != leaves[i] {
			return false
		}
	}
	return true
}

// isRoot reports whether a qdisc is weir's root. Somebody else's may have the same handle, but not the rate.
func (f *found) isRoot() bool {
	return f.kind == "tbf" && f.handle == rootHandle && f.parent == netlink.HANDLE_ROOT && f.wideOption(nl.TCA_TBF_RATE64) == tbfRate
}

// Foreign returns an error if somebody else has set a qdisc of a device. Those that the kernel sets
// by itself have no handle.
func (m *Machine) Foreign(d Device) error {
	for i := range m.qdiscs {
		q := &m.qdiscs[i]
		own := q.isRoot() || q.handle == classHandle && q.parent == rootHandle|1 || q.parent&0xffff_0000 == classHandle
		if q.ifindex == d.Index && q.handle&0xffff_0000 != 0 && !own && q.parent != netlink.HANDLE_INGRESS {
			return &ForeignError{Device: d.Name, Qdisc: fmt.Sprintf("%s %x:", q.kind, q.handle>>16)}
		}
	}
	return nil
}

// Set sets a plan up on a device, or changes what is there. It returns the kinds of the queues that
// hold the packets, by class; empty for one that has classes below it. After an error the device has
// none of weir's qdiscs, unless it is one about reading them.
func Set(d Device, p *Plan) (leaves []string, err error) {
	m, err := Read()
	if err != nil {
		return nil, err
	}
	if err := m.Foreign(d); err != nil {
		return nil, err
	}
	classes, err := dump(unix.RTM_GETTCLASS, d.Index)
	if err != nil {
		return nil, fmt.Errorf("read the classes of %s: %w", d.Name, err)
	}
	if m.fits(d.Index, classes, p) {
		leaves, err := m.change(d.Index, p)
		if err == nil {
			return leaves, nil
		}
		return nil, errors.Join(fmt.Errorf("change the queues of %s: %w", d.Name, err), Remove(d.Index))
	}
	if err := Remove(d.Index); err != nil {
		return nil, fmt.Errorf("remove the queues of %s: %w", d.Name, err)
	}
	if leaves, err = build(d.Index, p); err != nil {
		return nil, errors.Join(fmt.Errorf("set up queues on %s: %w", d.Name, err), Remove(d.Index))
	}
	return leaves, nil
}

// Names returns the kinds of queues that Set has returned, each once.
func Names(leaves []string) string {
	kinds := slices.Compact(slices.Sorted(slices.Values(leaves)))
	return strings.Join(slices.DeleteFunc(kinds, func(kind string) bool { return kind == "" }), ", ")
}

// OnlyFIFO reports whether the kinds that Names has returned know no connections.
func OnlyFIFO(names string) bool { return names == leafFIFO }

// fits reports whether the classes and queues of a device are those of a plan, so that their rates
// can be changed in place.
func (m *Machine) fits(ifindex int, classes []found, p *Plan) bool {
	parents := make(map[uint32]uint32)
	for i := range classes {
		if classes[i].kind == "htb" {
			parents[classes[i].handle] = classes[i].parent
		}
	}
	if len(parents) != len(p.Classes) {
		return false
	}
	for i := range p.Classes {
		parent := uint32(netlink.HANDLE_ROOT)
		if above := p.Classes[i].Parent; above >= 0 {
			parent = classID(above)
		}
		if is, there := parents[classID(i)]; !there || is != parent {
			return false
		}
		if p.Classes[i].Leaf == nil {
			continue
		}
		q := m.below(ifindex, classID(i))
		if q == nil || !q.holds(p.Classes[i].Leaf) {
			return false
		}
	}
	h := m.below(ifindex, rootHandle|1)
	return h != nil && h.kind == "htb" && h.falls(defaultMinor(p))
}

// below returns the qdisc with a parent; nil: there is none.
func (m *Machine) below(ifindex int, parent uint32) *found {
	for i := range m.qdiscs {
		if q := &m.qdiscs[i]; q.ifindex == ifindex && q.parent == parent {
			return q
		}
	}
	return nil
}

// holds reports whether a queue can become that of a plan.
func (f *found) holds(l *Leaf) bool {
	if f.kind == leafCodel {
		flows, ok := f.option(nl.TCA_FQ_CODEL_FLOWS)
		return ok && flows == orDefault(l.Flows, codelFlows)
	}
	return f.kind == leafCake || f.kind == leafFIFO
}

// falls reports whether packets that name no class of an HTB go to this one.
func (f *found) falls(minor uint32) bool {
	all, err := nl.ParseRouteAttrAsMap(f.options)
	if err != nil || len(all[nl.TCA_HTB_INIT].Value) < nl.SizeofTcHtbGlob {
		return false
	}
	return nl.DeserializeTcHtbGlob(all[nl.TCA_HTB_INIT].Value).Defcls == minor
}

// change changes rates and queues in place. Packets that wait stay, unless another kind of queue takes
// the place of theirs.
func (m *Machine) change(ifindex int, p *Plan) (leaves []string, err error) {
	if err := putSplitter(ifindex, p, unix.NLM_F_CREATE|unix.NLM_F_REPLACE); err != nil {
		return nil, err
	}
	return putClasses(ifindex, p, func(at int) *found { return m.below(ifindex, classID(at)) })
}

// build adds everything to a device that has the kernel's own qdisc.
func build(ifindex int, p *Plan) (leaves []string, err error) {
	err = putSplitter(ifindex, p, unix.NLM_F_CREATE|unix.NLM_F_EXCL)
	if err == nil {
		err = addHTB(ifindex, p)
	}
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EOPNOTSUPP) {
		return nil, ErrUnsupported
	}
	if err != nil {
		return nil, err
	}
	return putClasses(ifindex, p, func(int) *found { return nil })
}

// putClasses adds or changes all classes with their queues. before returns the queue that a class has.
func putClasses(ifindex int, p *Plan, before func(at int) *found) (leaves []string, err error) {
	leaves = make([]string, len(p.Classes))
	for i := range p.Classes { // parents before their children
		if err := putClass(ifindex, p, i); err != nil {
			return nil, fmt.Errorf("class %d: %w", i+1, err)
		}
		if p.Classes[i].Leaf == nil {
			continue
		}
		if leaves[i], err = bestLeaf(ifindex, i, p.Classes[i].Leaf, before(i)); err != nil {
			return nil, fmt.Errorf("queue of class %d: %w", i+1, err)
		}
	}
	return leaves, nil
}

// missing are the kinds of queues that the kernel did not have when it was asked last. To ask it makes it look
// for a module.
var missing struct {
	sync.Mutex
	until map[string]time.Time
}

// missingFor is how long a kind that is missing is not asked for again.
const missingFor = time.Minute

func isMissing(kind string) bool {
	missing.Lock()
	defer missing.Unlock()
	return time.Now().Before(missing.until[kind])
}

func noteMissing(kind string) {
	missing.Lock()
	defer missing.Unlock()
	if missing.until == nil {
		missing.until = make(map[string]time.Time)
	}
	missing.until[kind] = time.Now().Add(missingFor)
}

// bestLeaf adds the best queue that the kernel has, or changes that which is there. Without memory for CAKE it
// takes the next.
func bestLeaf(ifindex, at int, l *Leaf, before *found) (kind string, err error) {
	for _, kind = range l.kinds() {
		if isMissing(kind) {
			continue
		}
		handle := uint32(0)
		if before != nil && before.kind == kind {
			handle = before.handle
		}
		err = putLeaf(ifindex, at, l, kind, handle)
		if !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EOPNOTSUPP) {
			if kind == leafCake && errors.Is(err, unix.ENOMEM) {
				continue
			}
			return kind, err
		}
		noteMissing(kind)
	}
	return "", cmp.Or(err, error(unix.EOPNOTSUPP))
}

// Remove takes weir's qdiscs from a device, which gets the kernel's own again. It does nothing if
// the device has none of weir's, or is gone.
func Remove(ifindex int) error {
	m, err := Read()
	if err != nil {
		return err
	}
	for _, own := range m.Own() {
		if own != ifindex {
			continue
		}
		err := send(unix.RTM_DELQDISC, 0, nl.TcMsg{Ifindex: int32(ifindex), Handle: rootHandle, Parent: netlink.HANDLE_ROOT}, "", nil)
		if !errors.Is(err, unix.ENODEV) && !errors.Is(err, unix.ENOENT) {
			return err
		}
	}
	return nil
}

// RemoveAll takes weir's qdiscs from all devices of the namespace, and removes weir's own devices.
func RemoveAll() error {
	m, err := Read()
	if err != nil {
		return err
	}
	waiting, err := WaitingDevices()
	errs := []error{err}
	for _, d := range waiting {
		errs = append(errs, RemoveWaiting(d))
	}
	for _, ifindex := range m.Own() {
		errs = append(errs, Remove(ifindex))
	}
	return errors.Join(errs...)
}
