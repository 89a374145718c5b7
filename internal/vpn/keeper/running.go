package keeper

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weir/internal/vpn/kernel"
	"weir/internal/vpn/key"
	"weir/internal/vpn/route"
	"weir/internal/vpn/tunnel"
	"weir/internal/vpn/userspace"
	"weir/pf/resolve"
)

// running is a tunnel that is to be up. The keeper's lock is held whenever it is used.
type running struct {
	keeper  *keeper
	of      resolve.WireGuard
	engine  tunnel.Engine // nil: it does not work
	why     string        // this engine
	problem string        // that tend tries to get over
	config  *tunnel.Config
	states  map[key.Public]tunnel.State
	moved   map[key.Public]time.Time // when a peer was last sent to another endpoint
}

// be has the tunnel be as its statement says.
func (t *running) be(of resolve.WireGuard) {
	if t.engine != nil && t.of.Engine != of.Engine {
		t.leave()
	}
	t.of = of
	t.try()
}

// try does what is left to do. What fails is tried again.
func (t *running) try() {
	err := t.set()
	switch {
	case err == nil:
		if t.problem != "" {
			t.keeper.Log.Info("the tunnel works", "interface", t.of.Name)
		}
		t.problem = ""
	case t.problem != err.Error():
		t.problem = err.Error()
		t.keeper.Log.Error("set up a tunnel", "interface", t.of.Name, "error", err)
	}
}

func (t *running) set() error {
	networks := t.networks()
	if err := route.Block(networks); err != nil {
		return err
	}
	config, err := t.configure()
	if err != nil {
		return err
	}
	if t.engine == nil {
		if t.engine, t.why, err = t.open(); err != nil {
			return err
		}
	}
	l, err := netlink.LinkByName(t.of.Name)
	if err != nil {
		return fmt.Errorf("find %s: %w", t.of.Name, err)
	}
	if err := t.setLink(l); err != nil {
		return err
	}
	if err := t.engine.Apply(config); err != nil {
		return err
	}
	fresh := t.config == nil
	t.config = config
	if err := netlink.LinkSetUp(l); err != nil {
		return fmt.Errorf("set %s up: %w", t.of.Name, err)
	}
	if err := route.Lead(l.Attrs().Index, networks); err != nil {
		return err
	}
	if fresh {
		t.greet()
	}
	return nil
}

// networks are those that routes lead to.
func (t *running) networks() (all []netip.Prefix) {
	for i := range t.of.Peers {
		all = append(all, t.of.Peers[i].Routes...)
	}
	return all
}

// configure reads the keys, and finds the endpoints as far as they are known.
func (t *running) configure() (*tunnel.Config, error) {
	private, err := key.ReadFile(t.of.KeyFile)
	if err != nil {
		return nil, err
	}
	c := &tunnel.Config{Private: private, Port: t.of.Port}
	for i := range t.of.Peers {
		p := &t.of.Peers[i]
		k, err := key.ParsePublic(p.Key)
		if err != nil {
			return nil, fmt.Errorf("peer %s: the public key: %w", p.Name, err)
		}
		peer := tunnel.Peer{Key: k, Allowed: p.Allowed, Keepalive: p.Keepalive}
		if p.PSKFile != "" {
			if peer.Preshared, err = key.ReadFile(p.PSKFile); err != nil {
				return nil, fmt.Errorf("peer %s: %w", p.Name, err)
			}
		}
		peer.Endpoint = t.keeper.endpoints.first(t.of.Name, p)
		c.Peers = append(c.Peers, peer)
	}
	return c, nil
}

// open opens the engine that the statement asks for, or else the kernel's where there is one.
func (t *running) open() (tunnel.Engine, string, error) {
	log := func(text string) { t.keeper.Log.Warn(text, "interface", t.of.Name) } //nolint:sloglint // the engine's own words
	user := func(why string) (tunnel.Engine, string, error) {
		e, err := userspace.Open(t.of.Name, t.of.MTU, log)
		if err != nil {
			return nil, "", err
		}
		return e, why, nil
	}
	if t.of.Engine == userspace.Name {
		return user("the configuration says so")
	}
	e, err := kernel.Open(t.of.Name, t.of.MTU)
	switch {
	case errors.Is(err, kernel.ErrMissing) && t.of.Engine == "":
		return user(err.Error())
	case err != nil:
		return nil, "", err
	case t.of.Engine == "":
		return e, "this kernel has WireGuard", nil
	}
	return e, "the configuration says so", nil
}

// setLink gives the interface its MTU and its addresses. Others go, except for those that IPv6 makes
// by itself.
func (t *running) setLink(l netlink.Link) error {
	if l.Attrs().MTU != int(t.of.MTU) {
		if err := netlink.LinkSetMTU(l, int(t.of.MTU)); err != nil {
			return fmt.Errorf("set the MTU of %s: %w", t.of.Name, err)
		}
	}
	has, err := netlink.AddrList(l, netlink.FAMILY_ALL)
	if err != nil {
		return fmt.Errorf("list the addresses of %s: %w", t.of.Name, err)
	}
	wanted := map[netip.Prefix]bool{}
	for _, a := range t.of.Addresses {
		wanted[a] = true
	}
	var errs []error
	for i := range has {
		ip, _ := netip.AddrFromSlice(has[i].IP)
		bits, _ := has[i].Mask.Size()
		p := netip.PrefixFrom(ip.Unmap(), bits)
		if !wanted[p] && !(ip.Is6() && ip.IsLinkLocalUnicast()) {
			errs = append(errs, netlink.AddrDel(l, &has[i]))
		}
	}
	for _, a := range t.of.Addresses {
		add := &netlink.Addr{IPNet: route.Net(a)}
		if a.Addr().Is6() {
			add.Flags = unix.IFA_F_NODAD
		}
		errs = append(errs, netlink.AddrReplace(l, add))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("set the addresses of %s: %w", t.of.Name, err)
	}
	return nil
}

// greet begins handshakes with the peers. After a crash they still send with the keys of sessions that
// nobody has: without a handshake from here they notice only after 15 s.
func (t *running) greet() {
	for i := range t.config.Peers {
		if p := &t.config.Peers[i]; p.Endpoint.IsValid() {
			if err := t.engine.Greet(p.Key); err != nil {
				t.keeper.Log.Debug("greet a peer", "interface", t.of.Name, "error", err)
			}
		}
	}
}

// leave ends the engine. The interface, its addresses and its routes stay.
func (t *running) leave() {
	if t.engine != nil {
		t.engine.Close()
	}
	t.engine, t.config, t.states = nil, nil, nil
}

// tend gets over problems, and has peers be looked for where they are now.
func (t *running) tend(now time.Time) {
	if t.engine != nil {
		select {
		case <-t.engine.Failed(): // somebody has removed the interface
			t.leave()
			t.problem = "the engine has ended"
		default:
		}
	}
	if t.problem != "" || t.engine == nil {
		t.try()
	}
	if t.engine == nil || t.config == nil {
		return
	}
	if err := t.readStates(); err != nil {
		t.keeper.Log.Error("read the state of a tunnel", "interface", t.of.Name, "error", err)
		t.problem = err.Error()
		return
	}
	for i := range t.of.Peers {
		t.follow(&t.of.Peers[i], t.config.Peers[i].Key, now)
	}
}

func (t *running) readStates() error {
	all, err := t.engine.States()
	if err != nil {
		return err
	}
	t.states = map[key.Public]tunnel.State{}
	for i := range all {
		t.states[all[i].Key] = all[i]
	}
	return nil
}

// How long a peer may have no handshake before its endpoint is looked for anew, and how long one is
// given a chance.
const (
	lost      = 135 * time.Second // a handshake is due after 120 s, and tried for 15 s (wg's reresolve-dns.sh has the same)
	endurance = 10 * time.Second
)

// follow remembers where a peer is. One that does not answer is looked for at the endpoint that its
// statement says, at all of its addresses in turn.
func (t *running) follow(p *resolve.Peer, k key.Public, now time.Time) {
	s := t.states[k]
	if s.Endpoint.IsValid() && !s.Handshake.IsZero() {
		t.keeper.endpoints.note(t.of.Name, p, s.Endpoint)
	}
	if p.Endpoint == "" || !s.Handshake.IsZero() && now.Sub(s.Handshake) < lost || now.Sub(t.moved[k]) < endurance {
		return
	}
	to := t.keeper.endpoints.next(p)
	if !to.IsValid() {
		return
	}
	if t.moved == nil {
		t.moved = map[key.Public]time.Time{}
	}
	t.moved[k] = now
	if to == s.Endpoint {
		return
	}
	err := t.engine.Move(k, to)
	if err == nil {
		err = t.engine.Greet(k)
	}
	if err != nil {
		t.keeper.Log.Warn("send to another endpoint", "interface", t.of.Name, "peer", p.Name, "error", err)
	}
}

// status tells of the tunnel.
func (t *running) status(now time.Time) Status {
	s := Status{Interface: t.of.Name, Problem: t.problem, Port: t.of.Port, MTU: t.of.MTU, Peers: []Peer{}}
	if t.engine != nil {
		s.Engine, s.Why = t.engine.Name(), t.why
		if t.config != nil {
			k := t.config.Private.Public()
			s.Key = &k
			if err := t.readStates(); err != nil {
				s.Problem = err.Error()
			}
		}
	}
	for i := range t.of.Peers {
		of := &t.of.Peers[i]
		p := Peer{Name: of.Name, Key: of.Key, Allowed: of.Allowed, Session: NoSession}
		if k, err := key.ParsePublic(of.Key); err == nil {
			is := t.states[k]
			p.Session, p.Handshake, p.Endpoint = sessionOf(is.Handshake, now), is.Handshake, is.Endpoint
			p.Received, p.Sent, p.Error, p.ErrorTime = is.Received, is.Sent, is.Error, is.ErrorTime
		}
		s.Peers = append(s.Peers, p)
	}
	return s
}
