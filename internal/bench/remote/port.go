package remote

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/prometheus/procfs"
)

// Limits of the guard of a run.
const (
	guardEvery  = 10 * time.Millisecond
	guardShare  = 10 // it sleeps at least this many times as long as a look takes
	listenWait  = 5 * time.Second
	connectWait = 10 * time.Second // for the client's iperf3, after the grant
	established = 1                // value in /proc/net/tcp
	listening   = 10
)

// Reasons to end a run early.
var (
	errStranger = errors.New("another host connected to the run's port before the client did")
	errAbsent   = errors.New("the client did not connect to the run's port")
)

// port is a port of this machine on which iperf3 serves.
type port struct {
	number    uint16
	peer      netip.Addr // the only host that may use it
	listens   bool
	ours      bool // the peer has a TCP connection
	strangers bool // another host has one, or a UDP flow
}

// look reads the kernel's socket tables. A UDP socket that is connected to another host
// counts as a stranger's, because a client can forge a datagram with a victim's address.
func (p *port) look() error {
	proc, err := procfs.NewFS("/proc")
	//nolint:staticcheck // deprecated for speed alone: a server has few sockets, and netlink's way needs a module
	tcp4, err1 := proc.NetTCP()
	tcp6, err2 := proc.NetTCP6() //nolint:staticcheck // likewise
	udp4, err3 := proc.NetUDP()
	udp6, err4 := proc.NetUDP6()
	for _, err := range []error{err, err1, err2, err3, err4} {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("read the sockets: %w", err)
		}
	}
	p.listens, p.ours, p.strangers = false, false, false
	for _, s := range slices.Concat(tcp4, tcp6) {
		here, connected := s.LocalPort == uint64(p.number), s.St == established
		p.listens = p.listens || here && s.St == listening
		p.ours = p.ours || here && connected && p.is(s.RemAddr)
		p.strangers = p.strangers || here && connected && !p.is(s.RemAddr)
	}
	for _, s := range slices.Concat(udp4, udp6) {
		if s.LocalPort == uint64(p.number) && s.RemPort != 0 && !p.is(s.RemAddr) {
			p.strangers, p.ours = true, false
		}
	}
	return nil
}

func (p *port) is(ip net.IP) bool {
	a, ok := netip.AddrFromSlice(ip)
	return ok && a.Unmap() == p.peer.Unmap().WithZone("")
}

// await waits until iperf3 listens or has ended.
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

// guard watches the port until ctx ends. A stranger on the port is an error, unless the
// client is already connected: then iperf3 rejects the stranger.
func (p *port) guard(ctx context.Context) error {
	seen := false
	for begun := time.Now(); ; {
		looked := time.Now()
		if err := p.look(); err != nil {
			return err
		}
		seen = seen || p.ours
		switch {
		case p.strangers && !p.ours:
			return errStranger
		case !seen && time.Since(begun) > connectWait:
			return errAbsent
		}
		if sleep(ctx, max(guardEvery, guardShare*time.Since(looked))) != nil {
			return nil
		}
	}
}

// overflowed returns how many datagrams this machine has dropped at full sockets so far.
func overflowed() (uint64, error) {
	self, err := procfs.Self()
	four, err4 := self.Snmp()
	six, err6 := self.Snmp6()
	if errors.Is(err6, fs.ErrNotExist) {
		err6 = nil
	}
	if err := errors.Join(err, err4, err6); err != nil {
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

// sleep waits, or returns why ctx ended.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
