package advertise

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/mdlayher/ndp"
	"golang.org/x/net/ipv6"
)

// Link is an interface on which things are announced.
type Link struct {
	nic       *net.Interface
	conn      *ndp.Conn
	solicited chan netip.Addr
}

// Open opens a socket on an interface, which has to have a link-local address, in the calling
// thread's network namespace.
func Open(name string) (*Link, error) {
	nic, err := net.InterfaceByName(name)
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", name, err)
	}
	conn, _, err := ndp.Listen(nic, ndp.LinkLocal)
	if err != nil {
		return nil, fmt.Errorf("open a socket for router advertisements on %s: %w", name, err)
	}
	var only ipv6.ICMPFilter
	only.SetAll(true)
	only.Accept(ipv6.ICMPTypeRouterSolicitation)
	if err := errors.Join(conn.SetICMPFilter(&only), conn.JoinGroup(allRouters), conn.SetControlMessage(ipv6.FlagHopLimit, true)); err != nil {
		return nil, errors.Join(fmt.Errorf("open a socket for router advertisements on %s: %w", name, err), conn.Close())
	}
	l := &Link{nic, conn, make(chan netip.Addr, mostAnswers)}
	go l.receive()
	return l, nil
}

// Index is the interface's.
func (l *Link) Index() int { return l.nic.Index }

// Close closes the socket.
func (l *Link) Close() error { return l.conn.Close() }

// receive passes on who asks. A message from beyond the link has a lower hop limit (RFC 4861
// 6.1.1).
func (l *Link) receive() {
	for {
		m, control, from, err := l.conn.ReadFrom()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(time.Second) // the interface is down or gone
			continue
		}
		if _, ok := m.(*ndp.RouterSolicitation); ok && control != nil && control.HopLimit == ndp.HopLimit {
			select {
			case l.solicited <- from.WithZone(""):
			default:
			}
		}
	}
}

// send sends what there is. A message that cannot be sent is as good as lost.
func (l *Link) send(a *Advertiser) (err error) {
	for _, o := range a.Take() {
		err = errors.Join(err, l.conn.WriteTo(o.Message, nil, o.To))
	}
	return err
}

// Run announces the latest of states until ctx ends, or states is closed.
func (l *Link) Run(ctx context.Context, states <-chan State, fault func(error)) {
	a := New(l.nic.HardwareAddr, rand.Reader)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		if err := l.send(a); err != nil {
			fault(err)
		}
		wait := time.Hour
		if next := a.Next(); !next.IsZero() {
			wait = max(time.Until(next), 0)
		}
		timer.Reset(wait)
		select {
		case s, ok := <-states:
			if !ok {
				return
			}
			a.Set(s, time.Now())
		case from := <-l.solicited:
			a.Solicited(from, time.Now())
		case <-timer.C:
			a.Tick(time.Now())
		case <-ctx.Done():
			return
		}
	}
}

// Farewell tells all, three times in a row, what is withdrawn.
func (l *Link) Farewell(s State) error {
	s.Router = false
	a := New(l.nic.HardwareAddr, rand.Reader)
	a.state = s
	var err error
	for range news {
		err = l.conn.WriteTo(a.Message(time.Now()), nil, allNodes)
	}
	return err
}
