package wire

import (
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"weir/internal/pppoe/discovery"
)

// Wire is an interface with its two sockets. Its methods may be called concurrently.
type Wire struct {
	// Interface is the one it is on.
	Interface *net.Interface
	// Frames are the Ethernet frames that have arrived. It is closed at the end.
	Frames chan []byte

	files [2]*os.File // of discovery, of sessions
	done  chan struct{}
	fault chan error
}

// Offsets in an Ethernet frame without VLAN tag, and of what the kernel says about it.
const (
	offsetProtocol = 20
	// firstControl is the first number of a PPP control protocol; those below carry packets
	// (RFC 1661 2).
	firstControl = 0x8000
)

// queue is how many frames may wait; more are dropped, as they would be by the kernel.
const queue = 256

// Open opens the sockets in the calling thread's network namespace. Priority is that of the
// frames, which a VLAN device maps to the PCP; 0 is the default.
func Open(name string, priority int) (*Wire, error) {
	nic, err := net.InterfaceByName(name)
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", name, err)
	}
	if len(nic.HardwareAddr) != 6 {
		return nil, fmt.Errorf("%s has no Ethernet address", name)
	}
	w := &Wire{Interface: nic, Frames: make(chan []byte, queue), done: make(chan struct{}), fault: make(chan error, 2)}
	for i, ether := range []uint16{discovery.EtherDiscovery, discovery.EtherSession} {
		w.files[i], err = open(nic.Index, ether, priority)
		if err != nil {
			w.closeFiles()
			return nil, fmt.Errorf("open a socket for 0x%04x on %s: %w", ether, name, err)
		}
	}
	go w.receiveAll()
	return w, nil
}

// MAC is the interface's Ethernet address.
func (w *Wire) MAC() discovery.MAC { return discovery.MAC(w.Interface.HardwareAddr) }

// open opens a socket that receives nothing before its filter is set.
func open(index int, ether uint16, priority int) (*os.File, error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), fmt.Sprintf("pppoe 0x%04x", ether))
	program, err := filter(ether)
	if err == nil {
		err = unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, program)
	}
	if err == nil && priority != 0 {
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PRIORITY, priority)
	}
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: ether<<8 | ether>>8, Ifindex: index})
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// filter lets through what is without VLAN tag (a socket of a device also sees the frames of
// the VLANs on it) and what others have sent; of sessions, to this machine, control
// protocols only.
func filter(ether uint16) (*unix.SockFprog, error) {
	// Each jump goes to the last instruction, which drops the frame.
	program := []bpf.Instruction{
		bpf.LoadExtension{Num: bpf.ExtVLANTagPresent},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0, SkipTrue: 4},
		bpf.LoadExtension{Num: bpf.ExtType},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.PACKET_OUTGOING, SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.PACKET_OTHERHOST, SkipTrue: 1},
		bpf.RetConstant{Val: 0xffff},
		bpf.RetConstant{Val: 0},
	}
	if ether == discovery.EtherSession {
		program = []bpf.Instruction{
			bpf.LoadExtension{Num: bpf.ExtVLANTagPresent},
			bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0, SkipTrue: 5},
			bpf.LoadExtension{Num: bpf.ExtType},
			bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.PACKET_HOST, SkipTrue: 3},
			bpf.LoadAbsolute{Off: offsetProtocol, Size: 2},
			bpf.JumpIf{Cond: bpf.JumpLessThan, Val: firstControl, SkipTrue: 1},
			bpf.RetConstant{Val: 0xffff},
			bpf.RetConstant{Val: 0},
		}
	}
	raw, err := bpf.Assemble(program)
	if err != nil {
		return nil, err
	}
	code := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		code[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	return &unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}, nil
}

// receiveAll reads both sockets until the end.
func (w *Wire) receiveAll() {
	ends := make(chan struct{})
	for _, f := range w.files {
		go func() {
			w.receive(f)
			ends <- struct{}{}
		}()
	}
	<-ends
	<-ends
	close(w.Frames)
}

func (w *Wire) receive(f *os.File) {
	buffer := make([]byte, 0x10000)
	for {
		n, err := f.Read(buffer)
		if errors.Is(err, unix.ENETDOWN) {
			// The interface is down and may come up again.
			if w.pause() {
				continue
			}
			return
		}
		if err != nil {
			if !errors.Is(err, os.ErrClosed) {
				w.fault <- err
			}
			return
		}
		select {
		case w.Frames <- append([]byte{}, buffer[:n]...):
		case <-w.done:
			return
		default:
		}
	}
}

// pause waits a moment; false: the end has come.
func (w *Wire) pause() bool {
	select {
	case <-time.After(100 * time.Millisecond):
		return true
	case <-w.done:
		return false
	}
}

// Err returns why receiving has ended, once Frames is closed; nil: by Close.
func (w *Wire) Err() error {
	select {
	case err := <-w.fault:
		return err
	default:
		return nil
	}
}

// Send sends an Ethernet frame. It is not tried again: what is lost on the way is not either.
func (w *Wire) Send(frame []byte) error {
	if _, err := w.files[0].Write(frame); err != nil {
		return fmt.Errorf("send on %s: %w", w.Interface.Name, err)
	}
	return nil
}

// Close ends it.
func (w *Wire) Close() {
	close(w.done)
	w.closeFiles()
}

func (w *Wire) closeFiles() {
	for _, f := range w.files {
		if f != nil {
			f.Close()
		}
	}
}
