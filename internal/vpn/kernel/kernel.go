package kernel

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/wgctrl"
	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"weir/internal/vpn/key"
	"weir/internal/vpn/tunnel"
)

// Name is what the configuration calls the engine.
const Name = "kernel"

// ErrMissing is the error for a kernel without WireGuard.
var ErrMissing = errors.New("this kernel has no WireGuard")

// An Engine is a tunnel in the kernel.
type Engine struct {
	name    string
	client  *wgctrl.Client
	applied *tunnel.Config
	ended   chan struct{}
}

// Open opens the tunnel of an interface, and makes the interface if there is none.
func Open(name string, mtu uint16) (*Engine, error) {
	l, err := tunnel.Find(name, "wireguard")
	if err == nil && l == nil {
		l = &netlink.Wireguard{LinkAttrs: netlink.LinkAttrs{Name: name}}
		if err = netlink.LinkAdd(l); errors.Is(err, unix.EOPNOTSUPP) {
			return nil, ErrMissing
		}
		if err == nil {
			if err = tunnel.Mark(name); err != nil {
				err = errors.Join(err, netlink.LinkDel(l))
			}
		}
	}
	if err == nil {
		err = netlink.LinkSetMTU(l, int(mtu))
	}
	if err != nil {
		return nil, fmt.Errorf("make %s: %w", name, err)
	}
	client, err := wgctrl.New()
	if err != nil {
		return nil, fmt.Errorf("ask the kernel's WireGuard: %w", err)
	}
	return &Engine{name: name, client: client, ended: make(chan struct{})}, nil
}

// Name is what the configuration calls the engine.
func (*Engine) Name() string { return Name }

// Apply has the tunnel be as c says. Peers of an earlier process keep their sessions.
func (e *Engine) Apply(c *tunnel.Config) error {
	d, err := e.client.Device(e.name)
	if err != nil {
		return fmt.Errorf("read %s: %w", e.name, err)
	}
	private, port := wgtypes.Key(c.Private.Reveal()), int(c.Port)
	config := wgtypes.Config{ListenPort: &port}
	if d.PrivateKey != private {
		config.PrivateKey = &private
	}
	wanted := map[wgtypes.Key]bool{}
	for i := range c.Peers {
		p := e.peer(&c.Peers[i])
		wanted[p.PublicKey] = true
		at := slices.IndexFunc(d.Peers, func(has wgtypes.Peer) bool { return has.PublicKey == p.PublicKey })
		if at < 0 {
			config.Peers = append(config.Peers, p)
		} else if change, needed := changeOf(&d.Peers[at], &p); needed {
			config.Peers = append(config.Peers, change)
		}
	}
	for _, p := range d.Peers {
		if !wanted[p.PublicKey] {
			config.Peers = append(config.Peers, wgtypes.PeerConfig{PublicKey: p.PublicKey, Remove: true})
		}
	}
	if err := e.client.ConfigureDevice(e.name, config); err != nil {
		return fmt.Errorf("configure %s: %w", e.name, err)
	}
	e.applied = c
	return nil
}

// peer returns a peer as the kernel takes it. An endpoint that has not changed is left out, because
// the peer may have moved.
func (e *Engine) peer(p *tunnel.Peer) wgtypes.PeerConfig {
	preshared, keepalive := wgtypes.Key(p.Preshared.Reveal()), time.Duration(p.Keepalive)*time.Second
	c := wgtypes.PeerConfig{
		PublicKey: wgtypes.Key(p.Key), PresharedKey: &preshared, PersistentKeepaliveInterval: &keepalive, ReplaceAllowedIPs: true,
	}
	before := netip.AddrPort{}
	if e.applied != nil {
		for _, was := range e.applied.Peers {
			if was.Key == p.Key {
				before = was.Endpoint
			}
		}
	}
	if p.Endpoint.IsValid() && p.Endpoint != before {
		c.Endpoint = net.UDPAddrFromAddrPort(p.Endpoint)
	}
	for _, a := range p.Allowed {
		c.AllowedIPs = append(c.AllowedIPs, net.IPNet{IP: a.Addr().AsSlice(), Mask: net.CIDRMask(a.Bits(), a.Addr().BitLen())})
	}
	return c
}

// changeOf returns what makes a peer that there is be as p says, and whether there is anything. While the kernel replaces the allowed
// networks of a peer it has none of them, and packets are lost. So they are replaced only if the peer is to have fewer.
func changeOf(has *wgtypes.Peer, p *wgtypes.PeerConfig) (c wgtypes.PeerConfig, needed bool) {
	c = wgtypes.PeerConfig{PublicKey: p.PublicKey, UpdateOnly: true}
	if has.PresharedKey != *p.PresharedKey {
		c.PresharedKey, needed = p.PresharedKey, true
	}
	if has.PersistentKeepaliveInterval != *p.PersistentKeepaliveInterval {
		c.PersistentKeepaliveInterval, needed = p.PersistentKeepaliveInterval, true
	}
	if p.Endpoint != nil && p.Endpoint.String() != has.Endpoint.String() {
		c.Endpoint, needed = p.Endpoint, true
	}
	added, fewer := without(p.AllowedIPs, has.AllowedIPs), len(without(has.AllowedIPs, p.AllowedIPs)) > 0
	switch {
	case fewer:
		c.ReplaceAllowedIPs, c.AllowedIPs, needed = true, p.AllowedIPs, true
	case len(added) > 0:
		c.AllowedIPs, needed = added, true
	}
	return c, needed
}

// without returns those networks of all that are not among others.
func without(all, others []net.IPNet) []net.IPNet {
	return slices.DeleteFunc(slices.Clone(all), func(n net.IPNet) bool {
		return slices.ContainsFunc(others, func(o net.IPNet) bool { return o.String() == n.String() })
	})
}

// States tells of the peers.
func (e *Engine) States() (all []tunnel.State, err error) {
	d, err := e.client.Device(e.name)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", e.name, err)
	}
	for i := range d.Peers {
		p := &d.Peers[i]
		s := tunnel.State{Key: key.Public(p.PublicKey), Mark: uint32(d.FirewallMark), Handshake: p.LastHandshakeTime, Received: uint64(p.ReceiveBytes), Sent: uint64(p.TransmitBytes)}
		if p.Endpoint != nil {
			at := p.Endpoint.AddrPort()
			s.Endpoint = netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
		}
		all = append(all, s)
	}
	return all, nil
}

// Move has the peer be at another endpoint.
func (e *Engine) Move(k key.Public, to netip.AddrPort) error {
	return e.client.ConfigureDevice(e.name, wgtypes.Config{Peers: []wgtypes.PeerConfig{{
		PublicKey: wgtypes.Key(k), UpdateOnly: true, Endpoint: net.UDPAddrFromAddrPort(to),
	}}})
}

// Greet does nothing: the kernel's sessions outlive the process.
func (*Engine) Greet(key.Public) error { return nil }

// Renew has other keys be agreed on with a peer when something is sent to it: the kernel forgets the peer, and gets it anew where it is. The
// interface stays as it is, with its routes.
func (e *Engine) Renew(k key.Public) error {
	d, err := e.client.Device(e.name)
	if err != nil {
		return fmt.Errorf("read %s: %w", e.name, err)
	}
	at := slices.IndexFunc(d.Peers, func(p wgtypes.Peer) bool { return p.PublicKey == wgtypes.Key(k) })
	if at < 0 {
		return fmt.Errorf("%s has no such peer", e.name)
	}
	is := &d.Peers[at]
	config := wgtypes.Config{Peers: []wgtypes.PeerConfig{{PublicKey: is.PublicKey, Remove: true}, {
		PublicKey: is.PublicKey, PresharedKey: &is.PresharedKey, PersistentKeepaliveInterval: &is.PersistentKeepaliveInterval, Endpoint: is.Endpoint,
		ReplaceAllowedIPs: true, AllowedIPs: is.AllowedIPs,
	}}}
	if err := e.client.ConfigureDevice(e.name, config); err != nil {
		return fmt.Errorf("make a peer of %s anew: %w", e.name, err)
	}
	return nil
}

// Failed returns a channel that is never closed: the kernel's tunnel does not end.
func (e *Engine) Failed() <-chan struct{} { return e.ended }

// Close ends the engine. The tunnel works on.
func (e *Engine) Close() { e.client.Close() }
