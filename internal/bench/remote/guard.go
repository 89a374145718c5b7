package remote

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"time"

	"github.com/prometheus/procfs"
)

// Bounds of the guard of a run.
const (
	guardEvery  = 10 * time.Millisecond
	guardShare  = 10 // times as long as a look takes it sleeps at least
	listenWait  = 5 * time.Second
	established = 1  // as /proc/net/tcp has it
	listening   = 10 // as well
)

// errStranger ends a run that somebody else has taken.
var errStranger = errors.New("another host connected to the run's port before the client did")

// port is one port of this machine while iperf3 serves there.
type port struct {
	number    uint16
	peer      netip.Addr // the only host that may use it
	listens   bool
	ours      bool // the peer has a TCP connection
	strangers bool // somebody else has one, or a UDP flow
}

// look reads the kernel's tables of sockets.
func (p *port) look() error {
	proc, err := procfs.NewFS("/proc")
	if err != nil {
		return fmt.Errorf("read the sockets: %w", err)
	}
	p.listens, p.ours, p.strangers = false, false, false
	//nolint:staticcheck // The netlink way needs a kernel module on some systems; this one needs none.
	for _, read := range []func() (procfs.NetTCP, error){
		proc.NetTCP, proc.NetTCP6, //nolint:staticcheck // deprecated for speed alone; a server has few sockets
	} {
		sockets, err := read()
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("read the TCP sockets: %w", err)
		}
		for _, s := range sockets {
			if s.LocalPort != uint64(p.number) {
				continue
			}
			p.listens = p.listens || s.St == listening
			if s.St == established {
				p.ours, p.strangers = p.ours || p.is(s.RemAddr), p.strangers || !p.is(s.RemAddr)
			}
		}
	}
	return p.lookUDP(&proc)
}

// lookUDP finds UDP sockets that iperf3 has connected to another host than the
// peer: a client could name a victim's address in a forged datagram.
func (p *port) lookUDP(proc *procfs.FS) error {
	for _, read := range []func() (procfs.NetUDP, error){proc.NetUDP, proc.NetUDP6} {
		sockets, err := read()
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("read the UDP sockets: %w", err)
		}
		for _, s := range sockets {
			if s.LocalPort == uint64(p.number) && s.RemPort != 0 && !p.is(s.RemAddr) {
				p.strangers, p.ours = true, false
			}
		}
	}
	return nil
}

func (p *port) is(ip net.IP) bool {
	a, ok := netip.AddrFromSlice(ip)
	return ok && a.Unmap() == p.peer.Unmap().WithZone("")
}

// await waits until iperf3 listens, or has ended.
func (p *port) await(ctx context.Context, ended <-chan struct{}) error {
	for end := time.Now().Add(listenWait); time.Now().Before(end); {
		if err := p.look(); err != nil || p.listens {
			return err
		}
		select {
		case <-ended:
			return fmt.Errorf("iperf3 cannot serve at port %d", p.number)
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(guardEvery):
		}
	}
	return fmt.Errorf("iperf3 does not listen at port %d after %s", p.number, listenWait)
}

// guard watches the port until ctx ends. A stranger at the port is an error,
// unless the client is connected already: then iperf3 turns the stranger away.
func (p *port) guard(ctx context.Context) error {
	for {
		begun := time.Now()
		if err := p.look(); err != nil {
			return err
		}
		if p.strangers && !p.ours {
			return errStranger
		}
		if sleep(ctx, max(guardEvery, guardShare*time.Since(begun))) != nil {
			return nil
		}
	}
}

// overflowed is how many datagrams found a full socket on this machine so far.
func overflowed() (uint64, error) {
	self, err := procfs.Self()
	if err != nil {
		return 0, fmt.Errorf("count datagrams that found a full socket: %w", err)
	}
	four, err := self.Snmp()
	if err != nil {
		return 0, fmt.Errorf("count datagrams that found a full socket: %w", err)
	}
	six, err := self.Snmp6()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("count datagrams that found a full socket: %w", err)
	}
	n := 0.0
	for _, v := range []*float64{four.Udp.RcvbufErrors, six.Udp6.RcvbufErrors} {
		if v != nil {
			n += *v
		}
	}
	return uint64(n), nil
}

// sleep waits, or gives the reason for which ctx has ended.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
