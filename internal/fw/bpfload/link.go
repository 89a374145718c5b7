package bpfload

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"weir/internal/host/netif"
	"weir/internal/killpoint"
)

// A Hook is a place at an interface where a program runs.
type Hook string

// Hooks, by the names in their pins.
const (
	XDP     Hook = "xdp"     // in the driver
	Ingress Hook = "ingress" // TCX, before all other programs
	Egress  Hook = "egress"  // TCX, after all other programs
)

// ErrForeign is returned (wrapped, with the program's name, id and owners) if an
// interface already has an XDP program.
var ErrForeign = errors.New("the interface has another XDP program")

// ErrNative is in a RefusalError.
var ErrNative = errors.New("the driver refuses XDP")

// A RefusalError is returned (wrapped) if a driver refuses an XDP program.
type RefusalError struct {
	Said string // the driver's message; "": none
	Err  error
}

func (e *RefusalError) Error() string {
	if e.Said == "" {
		return fmt.Sprintf("%v: %v", ErrNative, e.Err)
	}
	return fmt.Sprintf("%v: %s (%v)", ErrNative, e.Said, e.Err)
}

// Unwrap returns ErrNative and the kernel's error.
func (e *RefusalError) Unwrap() []error { return []error{ErrNative, e.Err} }

// A Link keeps a program attached to an interface's hook until it is detached, or until
// it is closed without being pinned.
type Link struct {
	link link.Link
}

// Attach attaches the program to the hook of an interface of the calling
// thread's network namespace.
func Attach(p *Program, hook Hook, ifindex int) (*Link, error) {
	if hook == XDP {
		return attachXDP(p, ifindex)
	}
	options := link.TCXOptions{Program: p, Interface: ifindex, Attach: ebpf.AttachTCXIngress, Anchor: link.Head()}
	if hook == Egress {
		options.Attach, options.Anchor = ebpf.AttachTCXEgress, link.Tail()
	}
	l, err := link.AttachTCX(options)
	if err != nil {
		return nil, fmt.Errorf("attach to %s of interface %d: %w", hook, ifindex, err)
	}
	killpoint.Done("attach to %s of interface %d", hook, ifindex)
	return &Link{link: l}, nil
}

// attachXDP attaches in the driver only. Generic XDP would be slower than TCX and copies
// most packets.
func attachXDP(p *Program, ifindex int) (*Link, error) {
	l, err := link.AttachXDP(link.XDPOptions{Program: p, Interface: ifindex, Flags: link.XDPDriverMode})
	if err == nil {
		killpoint.Done("attach to %s of interface %d", XDP, ifindex)
		return &Link{link: l}, nil
	}
	if errors.Is(err, unix.EBUSY) || errors.Is(err, unix.EEXIST) {
		if owner := describeXDP(ifindex); owner != "" {
			return nil, fmt.Errorf("attach xdp to interface %d: %w: %s", ifindex, ErrForeign, owner)
		}
	}
	if errors.Is(err, unix.ENODEV) {
		return nil, fmt.Errorf("attach xdp to interface %d: %w", ifindex, err)
	}
	refusal := &RefusalError{Err: err}
	if said, err := netif.XDPRefusal(ifindex, p.FD()); err == nil { // otherwise only the error number is known
		refusal.Said = said
	}
	return nil, fmt.Errorf("attach xdp to interface %d: %w", ifindex, refusal)
}

// OpenLink opens a pinned link.
func OpenLink(path string) (*Link, error) {
	l, err := link.LoadPinnedLink(path, nil)
	if err != nil {
		return nil, fmt.Errorf("open the pinned link: %w", err)
	}
	return &Link{link: l}, nil
}

// Ifindex returns the interface's index, or 0 if the interface is gone.
func (l *Link) Ifindex() (int, error) {
	info, err := l.link.Info()
	if err != nil {
		return 0, fmt.Errorf("ask about a link: %w", err)
	}
	if xdp := info.XDP(); xdp != nil {
		return int(xdp.Ifindex), nil
	}
	if tcx := info.TCX(); tcx != nil {
		return int(tcx.Ifindex), nil
	}
	return 0, fmt.Errorf("a link of type %d is neither XDP nor TCX", info.Type)
}

// programTries is how often Program asks for a program that is replaced meanwhile.
const programTries = 100

// Program opens the link's present program. A link always has one. If there is none of
// the id that the kernel tells, another process has replaced it between the two calls.
func (l *Link) Program() (*Program, error) {
	for try := 1; ; try++ {
		info, err := l.link.Info()
		if err != nil {
			return nil, fmt.Errorf("ask about a link: %w", err)
		}
		p, err := ebpf.NewProgramFromID(info.Program)
		if err == nil {
			return p, nil
		}
		if !errors.Is(err, fs.ErrNotExist) || try == programTries {
			return nil, fmt.Errorf("open the program of a link: %w", err)
		}
	}
}

// Replace replaces the link's program between two packets.
func (l *Link) Replace(p *Program) error {
	if err := l.link.Update(p); err != nil {
		return err
	}
	killpoint.Done("replace a program")
	return nil
}

// Pin pins the link at path, so that it outlives the process.
func (l *Link) Pin(path string) error {
	if err := l.link.Pin(path); err != nil {
		return fmt.Errorf("pin the link: %w", err)
	}
	killpoint.Done("pin %s", path)
	return nil
}

// Detach detaches the program from the interface. It is not an error if the interface is
// gone.
func (l *Link) Detach() error {
	err := l.link.Detach()
	if err == nil {
		killpoint.Done("detach")
	}
	if err == nil || errors.Is(err, unix.ENOLINK) || errors.Is(err, unix.ENODEV) || errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("detach: %w", err)
}

// Close releases the link. The program stays attached if the link is pinned.
func (l *Link) Close() error { return l.link.Close() }

// MapIDs returns the ids of the maps that the link's program uses.
func (l *Link) MapIDs() ([]uint32, error) {
	p, err := l.Program()
	if err != nil {
		return nil, err
	}
	defer p.Close()
	return programMaps(p)
}
