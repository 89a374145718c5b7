package keeper

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"github.com/vishvananda/netlink"

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
	missing bool          // the kernel's engine, as it was found when it was last tried
	problem string        // that tend tries to get over
	config  *tunnel.Config
	states  map[key.Public]tunnel.State
	watched map[key.Public]*watch
	links   map[key.Public]*link           // peers that several ways lead to, or one that is chosen
	peers   atomic.Pointer[[]resolve.Peer] // of them, for the engine's goroutines
	noted   map[key.Public]tunnel.State    // as the journal has them
	notedAt time.Time
	paths   map[key.Public]*path
	linkMTU uint16    // of the interface, as it was last set
	raising int       // measurements that need the largest MTU
	greeted bool      // the peers, since the engine has them
	held    time.Time // when hold last looked
}

// watch is what is remembered of a peer.
type watch struct {
	moved          time.Time // when it was last looked for
	sent, received uint64    // bytes when it last was there

	heard, said uint64    // bytes when it last was heard
	unanswered  time.Time // since when what was sent has no answer; zero: it has

	ledTo netip.AddrPort // where it was when the routes were last looked at
	ledBy int            // the index of the interface that they lead there by
	led   int            // the same, as the engine was told; 0: it was not
}

// be has the tunnel be as its statement says.
func (t *running) be(of resolve.WireGuard) {
	if t.engine != nil && !t.suits(&of) {
		t.leave()
	}
	if t.of = of; t.engine != nil {
		t.why = t.reason()
	}
	t.peers.Store(&of.Peers)
	t.forget()
	t.try()
}

// suits reports whether the tunnel has the engine already that a statement asks for. Peers lose their sessions with an
// engine.
func (t *running) suits(of *resolve.WireGuard) bool {
	switch is := t.engine.Name(); {
	case whyUser(of) != "":
		return is == userspace.Name
	case of.Engine == "":
		return is == kernel.Name || t.missing
	default:
		return is == of.Engine
	}
}

// marks reports whether outer packets have code points, which the kernel's engine cannot give them.
func marks(of *resolve.WireGuard) bool { return of.CopyDSCP || of.DSCP != 0 }

// try does what is left to do. What fails is tried again.
func (t *running) try() {
	err := t.set()
	switch {
	case err == nil:
		if t.problem != "" {
			t.keeper.Log.Info("the tunnel works", "interface", t.of.Name)
			t.note(OfTunnel, "", "it works")
		}
		t.problem = ""
	case t.problem != err.Error():
		t.problem = err.Error()
		t.keeper.Log.Error("set up a tunnel", "interface", t.of.Name, "error", err)
		t.note(OfTunnel, "", "%v", err)
	}
}

func (t *running) set() error {
	if err := route.Block(t.blackholes()); err != nil {
		return err
	}
	config, faulty := t.configure()
	if config == nil {
		return faulty
	}
	if t.engine != nil && !tunnel.Ours(t.of.Name) {
		t.leave() // somebody has removed the interface
	}
	var err error
	if t.engine == nil {
		if t.engine, t.why, err = t.open(); err != nil {
			return err
		}
		t.keeper.stamps.begin(t.engine, time.Now(), t.keeper.Log)
		t.note(OfTunnel, "", "the engine %s begins: %s", t.engine.Name(), t.why)
		t.placeWorkers()
	}
	l, err := netlink.LinkByName(t.of.Name)
	if err != nil {
		return fmt.Errorf("find %s: %w", t.of.Name, err)
	}
	if err := t.setLink(l); err != nil {
		return err
	}
	if err := t.engine.Apply(config); err != nil {
		t.greeted = false // it has made all peers anew, or will
		return err
	}
	t.noteChange(t.config, config)
	t.config = config
	if err := netlink.LinkSetUp(l); err != nil {
		return fmt.Errorf("set %s up: %w", t.of.Name, err)
	}
	if err := route.Lead(l.Attrs().Index, route.Networks(&t.of)); err != nil {
		return err
	}
	if !t.greeted {
		t.greet()
	}
	return faulty
}

func (t *running) blackholes() []route.Blackhole { return route.Blackholes(t.through()) }

func (t *running) through() route.Through {
	return route.Through{Addresses: t.of.Addresses, Networks: route.Networks(&t.of)}
}

// holdPause is the least time between two looks at what others may have removed.
const holdPause = 5 * time.Second

// hold adds again what others have removed: blackholes, addresses, and the routes if the interface is up.
func (t *running) hold(now time.Time) error {
	if now.Sub(t.held) < holdPause {
		return nil
	}
	t.held = now
	index, _ := indexOf(t.of.Name)
	changed := t.keeper.routes.Changed(t.of.Name, index, t.through())
	if changed {
		if err := route.Block(t.blackholes()); err != nil {
			return err
		}
	}
	if !tunnel.Ours(t.of.Name) {
		return fmt.Errorf("%s is no interface of weir's any more", t.of.Name)
	}
	l, err := netlink.LinkByName(t.of.Name)
	if err != nil {
		return fmt.Errorf("find %s: %w", t.of.Name, err)
	}
	if err := t.setLink(l); err != nil || l.Attrs().Flags&net.FlagUp == 0 {
		return err
	}
	if t.widthsChanged() {
		if err := t.widen(); err != nil {
			return err
		}
	}
	if !changed {
		return nil
	}
	return route.Lead(l.Attrs().Index, route.Networks(&t.of))
}

// configure reads the keys, and finds the endpoints as far as they are known. For a key that cannot be
// read the one of before stays; without one, a peer is left out. With no private key there is nothing.
func (t *running) configure() (c *tunnel.Config, faulty error) {
	private, err := readKey(t.of.KeyFile)
	if err != nil {
		if t.config == nil {
			return nil, err
		}
		private, faulty = t.config.Private, err
	}
	c = &tunnel.Config{Private: private, Port: t.of.Port, CopyDSCP: t.of.CopyDSCP, DSCP: t.of.DSCP}
	for i := range t.of.Peers {
		p := &t.of.Peers[i]
		k, err := key.ParsePublic(p.Key)
		if err != nil {
			faulty = errors.Join(faulty, fmt.Errorf("peer %s: the public key: %w", p.Name, err))
			continue
		}
		peer := tunnel.Peer{Key: k, Allowed: p.Allowed, Keepalive: p.Keepalive, Wide: t.width(p)}
		if p.PSKFile != "" {
			if peer.Preshared, err = readKey(p.PSKFile); err != nil {
				faulty = errors.Join(faulty, fmt.Errorf("peer %s: %w", p.Name, err))
				before := t.before(k)
				if before == nil || before.Preshared.IsZero() {
					continue
				}
				peer.Preshared = before.Preshared
			}
		}
		if len(p.Ways) == 0 { // otherwise its link says where it is
			peer.Endpoint = t.keeper.endpoints.first(t.of.Name, p)
		}
		c.Peers = append(c.Peers, peer)
	}
	return c, faulty
}

// before returns a peer as the engine has it, or nil.
func (t *running) before(k key.Public) *tunnel.Peer {
	if t.config == nil {
		return nil
	}
	for i := range t.config.Peers {
		if t.config.Peers[i].Key == k {
			return &t.config.Peers[i]
		}
	}
	return nil
}

// readKey reads a key, and tells why the service may not see the file.
func readKey(path string) (key.Secret, error) {
	s, err := key.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		err = fmt.Errorf("%w (the service does not see /home and /root, and reads files of root only)", err)
	}
	return s, err
}

// open opens the engine that the statement asks for, or else the kernel's where there is one.
func (t *running) open() (tunnel.Engine, string, error) {
	log, name := t.keeper.Log, t.of.Name // for goroutines of the engine
	said := &echo{pass: func(text string, times int) {
		log.Warn(text, "interface", name, "times", times) //nolint:sloglint // the engine's own words
	}}
	user := func(why string) (tunnel.Engine, string, error) {
		e, err := userspace.Open(name, t.of.MTU, func(text string) {
			said.say(text, time.Now())
			t.keeper.heard(name, t.peers.Load(), text, true)
		})
		if err != nil {
			return nil, "", err
		}
		e.Remark(func(text string) { t.keeper.heard(name, t.peers.Load(), text, false) })
		return e, why, nil
	}
	if why := whyUser(&t.of); why != "" {
		return user(why)
	}
	e, err := kernel.Open(t.of.Name, t.of.MTU)
	t.missing = errors.Is(err, kernel.ErrMissing)
	switch {
	case t.missing && t.of.Engine == "":
		return user(err.Error())
	case err != nil:
		return nil, "", err
	}
	return e, whyKernel(&t.of), nil
}

const saidSo = "the configuration says so"

// whyUser says why a tunnel has the engine in user space; empty: it has the kernel's where there is one.
func whyUser(of *resolve.WireGuard) string {
	switch {
	case of.Engine == userspace.Name:
		return saidSo
	case engineOf(of) == userspace.Name && slices.ContainsFunc(of.Peers, isWide):
		return "the kernel's WireGuard has no wide links"
	case engineOf(of) == userspace.Name:
		return "the kernel's WireGuard does not choose between uplinks"
	case of.Engine == "" && marks(of):
		return "the kernel's WireGuard clears the code point"
	}
	return ""
}

func whyKernel(of *resolve.WireGuard) string {
	if of.Engine == "" {
		return "this kernel has WireGuard"
	}
	return saidSo
}

// reason says why the tunnel has the engine that it has.
func (t *running) reason() string {
	if t.engine.Name() != userspace.Name {
		return whyKernel(&t.of)
	}
	return cmp.Or(whyUser(&t.of), kernel.ErrMissing.Error())
}

// setLink gives the interface its MTU and its addresses.
func (t *running) setLink(l netlink.Link) error {
	if err := t.setMTU(l); err != nil {
		return err
	}
	return setAddresses(l, t.of.Addresses)
}

// greet begins handshakes with the peers. After a crash they still send with the keys of sessions that
// nobody has: without a handshake from here they notice only after 15 s.
func (t *running) greet() {
	t.greeted, t.links = true, nil
	t.choose(time.Now())
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
		t.keeper.stamps.note(t.engine)
		t.engine.Close()
		t.note(OfTunnel, "", "the engine %s has ended", t.engine.Name())
	}
	t.engine, t.config, t.states, t.links, t.greeted = nil, nil, nil, nil, false
	for _, w := range t.watched {
		w.led = 0
	}
}

// tend gets over problems, and has peers be looked for where they are now.
func (t *running) tend(ctx context.Context, now time.Time) {
	if t.engine != nil {
		select {
		case <-t.engine.Failed(): // somebody has removed the interface
			t.leave()
			t.problem = "the engine has ended"
		default:
		}
	}
	if t.problem == "" && t.engine != nil {
		if err := t.hold(now); err != nil {
			t.problem = err.Error()
			t.note(OfTunnel, "", "%v", err)
			t.keeper.Log.Warn("look after a tunnel", "interface", t.of.Name, "error", err)
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
		if k, err := key.ParsePublic(t.of.Peers[i].Key); err == nil && t.before(k) != nil {
			t.noteState(t.of.Peers[i].Name, k, now)
			if len(t.of.Peers[i].Ways) == 0 { // else its link looks for it
				t.follow(&t.of.Peers[i], k, now)
				t.lead(&t.of.Peers[i], k)
			}
			t.measure(ctx, &t.of.Peers[i], k, now)
		}
	}
	t.notedAt = now
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
	// silence is for how long nothing has answered what was sent until a name is asked for that may have another address by now: a peer
	// answers within 10 s, be it with a keepalive.
	silence = 20 * time.Second
)

// initiation is how many bytes the first message of a handshake has. Whoever sends data without a
// session sends it.
const initiation = 148

// follow remembers where a peer is. One that does not answer is looked for at the endpoint that its
// statement says, at all of its addresses in turn. One that nothing is sent to has nothing to answer.
func (t *running) follow(p *resolve.Peer, k key.Public, now time.Time) {
	if t.watched == nil {
		t.watched = map[key.Public]*watch{}
	}
	w, s := t.watched[k], t.states[k]
	if w == nil {
		w = &watch{}
		t.watched[k] = w
	}
	if s.Endpoint.IsValid() && s.Handshake.After(w.moved) {
		t.keeper.endpoints.note(t.of.Name, p, s.Endpoint)
	}
	switch {
	case s.Received != w.heard || s.Sent < w.said:
		w.heard, w.said, w.unanswered = s.Received, s.Sent, time.Time{}
	case s.Sent-w.said >= initiation && w.unanswered.IsZero():
		w.unanswered = now
	}
	if !w.unanswered.IsZero() && now.Sub(w.unanswered) >= silence && now.Sub(w.moved) >= endurance && t.keeper.endpoints.left(p.Endpoint, p.Port, s.Endpoint) {
		t.move(p, k, now)
		return
	}
	met := !s.Handshake.IsZero()
	if met && (now.Sub(s.Handshake) < lost || s.Received != w.received || s.Sent < w.sent) {
		w.sent, w.received = s.Sent, s.Received
	}
	if p.Endpoint == "" || met && s.Sent-w.sent < initiation || now.Sub(w.moved) < endurance {
		return
	}
	t.move(p, k, now)
}

// move has a peer be looked for at the next address of its endpoint.
func (t *running) move(p *resolve.Peer, k key.Public, now time.Time) {
	to := t.keeper.endpoints.next(p.Endpoint, p.Port)
	if !to.IsValid() {
		return
	}
	t.watched[k].moved = now
	if to == t.states[k].Endpoint {
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
	s := Status{Interface: t.of.Name, Problem: t.problem, Port: t.of.Port, MTU: t.of.MTU, Fixed: t.of.MTUFixed, Peers: []Peer{}}
	if t.linkMTU != 0 {
		s.MTU = t.linkMTU
	}
	if t.engine != nil {
		s.Engine, s.Why, s.Says = t.engine.Name(), t.why, t.keeper.stamps.says(t.engine, now)
		if t.config != nil {
			k := t.config.Private.Public()
			s.Key = &k
			if err := t.readStates(); err != nil {
				s.Problem = err.Error()
			}
			if d, ok := t.engine.(tunnel.Doorkeeper); ok {
				s.Strangers = slices.DeleteFunc(d.Strangers(), func(is tunnel.Stranger) bool { return is.Key != nil && t.before(*is.Key) != nil }) // he is a peer by now
			}
		}
	}
	for i := range t.of.Peers {
		of := &t.of.Peers[i]
		p := Peer{Name: of.Name, Key: of.Key, Allowed: of.Allowed, Routes: of.Routes, Session: NoSession}
		if k, err := key.ParsePublic(of.Key); err == nil {
			is := t.states[k]
			p.Session, p.Handshake, p.Endpoint = sessionOf(is.Handshake, now), is.Handshake, is.Endpoint
			p.Received, p.Sent, p.Error, p.ErrorTime = is.Received, is.Sent, is.Error, is.ErrorTime
			p.Ways, p.Moved = t.links[k].status()
			p.Wide, p.Refused, p.Behind = is.Wide, is.Refused, is.Behind
			if path := t.paths[k]; path != nil {
				p.Path = path.found
			}
		}
		s.Peers = append(s.Peers, p)
	}
	return s
}
