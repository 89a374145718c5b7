package keeper

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/vishvananda/netlink"

	"weir/internal/host/netif"
	"weir/internal/vpn/key"
	"weir/internal/vpn/pathmtu"
	"weir/internal/vpn/tunnel"
	"weir/pf/resolve"
)

// PathMTU is what is known of the path to a peer.
type PathMTU struct {
	Size uint16         `json:"size"` // of the largest packet that goes through the tunnel
	At   time.Time      `json:"at"`
	By   pathmtu.Method `json:"by"`
	Less bool           `json:"less,omitempty"` // even packets of that size do not go whole
	Cut  bool           `json:"cut,omitempty"`  // then messages are cut outside, which IPv4 can
}

// path is the path to a peer, and when it is measured.
type path struct {
	found  *PathMTU // nil: nothing is known
	course course
	begun  time.Time // of the last measurement
	looked time.Time // at the course
	raised time.Time // when larger packets were last tried
	sent   uint64    // bytes to the peer when it was last measured
	busy   bool      // it is being measured
	again  bool      // it is to be measured at once
	ended  bool      // nothing answered any more when it was last measured
	away   bool      // nothing has answered since, and it may have become larger
	rest   time.Time // until then it is not
}

// course is where a peer's messages go: another one may carry other packets.
type course struct {
	to  netip.AddrPort
	way netif.Way
	mtu int // of the interface
}

// When a path is measured: at once if it has changed, then while packets are sent, and now and then for larger ones
// (RFC 8899 has 600 s for that).
const (
	coursePause  = 5 * time.Second
	confirmPause = time.Minute
	assumedPause = 30 * time.Second
	raisePause   = 10 * time.Minute
	idleBytes    = 1024             // handshakes and keepalives may be sent without that
	endedPause   = 10 * time.Second // after nothing has answered any more
	freshPause   = 2 * time.Second  // so that a path that changes all the time is not measured all the time
	mostMeasured = 4                // paths at the same time
	pathAge      = 10 * time.Minute // without a handshake: the path of a peer that is not there does not count
)

// What packets of the tunnel may be.
const (
	leastMTU6 = 1280
	leastMTU4 = 576
)

// bounds are between what the MTU of a tunnel is sought.
func (t *running) bounds() (least, most int) {
	least = leastMTU4
	six := func(n netip.Prefix) bool { return n.Addr().Is6() }
	if slices.ContainsFunc(t.of.Addresses, six) || slices.ContainsFunc(t.of.Peers, func(p resolve.Peer) bool { return slices.ContainsFunc(p.Allowed, six) }) {
		least = leastMTU6
	}
	return least, int(t.of.MTU)
}

// mtu returns the MTU that the interface is to have, which it has now: that of the peer with the smallest.
func (t *running) mtu(has int) int {
	least, most := t.bounds()
	if t.of.MTUFixed {
		return most
	}
	if t.raising > 0 {
		return most
	}
	known := 0
	for k, p := range t.paths {
		if p.found != nil && time.Since(t.states[k].Handshake) < pathAge && (known == 0 || int(p.found.Size) < known) {
			known = int(p.found.Size)
		}
	}
	switch {
	case known != 0:
		return min(max(known, least), most)
	case has < least || has > most:
		return most
	}
	return has // as an earlier process has found out
}

// setMTU gives the interface its MTU.
func (t *running) setMTU(l netlink.Link) error {
	mtu := t.mtu(l.Attrs().MTU)
	if l.Attrs().MTU != mtu {
		if err := netlink.LinkSetMTU(l, mtu); err != nil {
			return fmt.Errorf("set the MTU of %s: %w", t.of.Name, err)
		}
		t.note(OfMTU, "", "the interface has an MTU of %d", mtu)
	}
	t.linkMTU = uint16(mtu)
	if p, ok := t.engine.(tunnel.Prober); ok {
		p.Resize(mtu)
		p.Cut(slices.ContainsFunc(t.of.Peers, func(p resolve.Peer) bool {
			k, _ := key.ParsePublic(p.Key)
			known := t.paths[k]
			return known != nil && known.found != nil && known.found.Cut
		}))
	}
	return nil
}

// forget forgets the paths of peers that are gone, and measures the others anew.
func (t *running) forget() {
	for k, p := range t.paths {
		if p.again = true; !slices.ContainsFunc(t.of.Peers, func(p resolve.Peer) bool { return p.Key == k.String() }) || t.of.MTUFixed {
			delete(t.paths, k)
		}
	}
}

// measure begins to measure the path to a peer, if it is time for that.
func (t *running) measure(ctx context.Context, of *resolve.Peer, k key.Public, now time.Time) {
	s := t.states[k]
	prober, ok := t.engine.(tunnel.Prober)
	if !ok || t.of.MTUFixed || sessionOf(s.Handshake, now) != Current || !s.Endpoint.IsValid() {
		return
	}
	if t.paths == nil {
		t.paths = map[key.Public]*path{}
	}
	p := t.paths[k]
	if p == nil {
		p = &path{}
		t.paths[k] = p
	}
	if p.busy || now.Before(p.rest) || now.Sub(p.begun) < freshPause {
		return
	}
	other := false
	if p.course.to != s.Endpoint || now.Sub(p.looked) >= coursePause {
		p.looked = now
		if w := courseOf(flowTo(&s, t.of.Port)); w != p.course {
			other, p.course = true, w
		}
	}
	fresh := other || p.again || p.begun.IsZero()
	if p.ended && (p.found == nil || prober.Beyond()) { // else larger packets than are known would be sent again and again
		fresh = true
	}
	raise := fresh || now.Sub(p.raised) >= raisePause && prober.Beyond()
	due := fresh || raise || p.ended
	if since := now.Sub(p.begun); !due && s.Sent > p.sent+idleBytes {
		due = since >= confirmPause || since >= assumedPause && p.found != nil && p.found.By == pathmtu.Assumed
	}
	if !due {
		return
	}
	p.begun, p.busy, p.again, p.ended = now, true, false, false
	if raise {
		p.raised = now
	}
	engine, name := t.engine, of.Name // there the lock is not held
	t.keeper.measuring.Go(func() { t.keeper.measurePath(ctx, t, engine, prober, p, name, k, raise) })
}

// courseOf looks where the messages to a peer go.
func courseOf(f netif.Flow) course {
	c := course{to: f.To}
	way, err := netif.WayOf(f)
	if err != nil {
		return c
	}
	c.way = way
	if i, err := net.InterfaceByIndex(way.Link); err == nil {
		c.mtu = i.MTU
	}
	return c
}

// peerPath is the path to a peer as it is measured. The keeper's lock is not held.
type peerPath struct {
	keeper *keeper
	of     *running
	engine tunnel.Engine
	prober tunnel.Prober
	peer   key.Public
	ends   []ends
}

// ends are addresses that a request goes between.
type ends struct{ from, to netip.Addr }

// Targets is how many addresses may be asked.
func (p *peerPath) Targets() int { return len(p.ends) }

// Ask sends an echo request.
func (p *peerPath) Ask(ctx context.Context, target, size int, wait time.Duration) (time.Duration, bool) {
	e := p.ends[target]
	return p.prober.Ask(ctx, &tunnel.Question{Peer: p.peer, From: e.from, To: e.to, Size: size, Wait: wait})
}

// Bytes tells how many bytes went to the peer, and how many came from it.
func (p *peerPath) Bytes() (sent, received uint64, ok bool) {
	p.keeper.mu.Lock()
	defer p.keeper.mu.Unlock()
	if p.of.engine != p.engine || p.of.readStates() != nil {
		return 0, 0, false
	}
	s, ok := p.of.states[p.peer]
	return s.Sent, s.Received, ok
}

// measurePath measures a path, and has the tunnel be as that says.
func (k *keeper) measurePath(ctx context.Context, t *running, engine tunnel.Engine, prober tunnel.Prober, p *path, name string, peer key.Public, raise bool) {
	k.slots <- struct{}{}
	defer func() { <-k.slots }()
	k.mu.Lock()
	bounds := pathmtu.Bounds{Raise: raise}
	bounds.Least, bounds.Most = t.bounds()
	if p.found != nil {
		bounds.Now = int(p.found.Size)
	}
	fits := raise && !prober.Beyond() // only what fits into the interface can be asked
	if fits {
		t.raising++
		t.relink()
	}
	m := &peerPath{keeper: k, of: t, engine: engine, prober: prober, peer: peer, ends: t.targets(peer)}
	k.mu.Unlock()
	found := pathmtu.Measure(ctx, m, bounds)
	k.mu.Lock()
	defer k.mu.Unlock()
	if p.busy = false; fits {
		t.raising--
	}
	defer t.relink()
	if ctx.Err() != nil || t.engine != engine || t.paths[peer] != p || t.of.MTUFixed {
		return
	}
	if t.readStates() == nil {
		p.sent = t.states[peer].Sent
	}
	if found.Ended {
		p.ended, p.rest = true, time.Now().Add(endedPause)
	}
	p.answers(found, raise)
	if found.Size != 0 { // else nothing goes at all
		// What is only assumed does not undo what was measured.
		less := found.Below || found.By == pathmtu.Assumed && p.found != nil && p.found.Less
		p.found = &PathMTU{Size: uint16(found.Size), At: time.Now(), By: found.By, Less: less, Cut: less && p.course.to.Addr().Is4()}
		if bounds.Now != found.Size {
			t.note(OfMTU, name, "packets of %d bytes go: %s", found.Size, found.By)
			k.Log.Info("the path MTU", "interface", t.of.Name, "peer", name, "mtu", found.Size, "by", string(found.By))
		}
	}
}

// answers notes whether a path was away. One that answers again may carry larger packets than before: it is measured anew, but only
// after a pause, as the interface may have to be at its largest MTU for that. A measurement that has tried larger packets was that.
func (p *path) answers(found pathmtu.Found, raised bool) {
	switch {
	case found.Ended || found.By != pathmtu.Echo && p.found != nil && p.found.By == pathmtu.Echo:
		p.away = true
	case found.By != pathmtu.Echo || !p.away: // it has not answered, or was not away
	case raised:
		p.away = false
	case p.begun.Sub(p.raised) >= raisePause:
		p.away, p.again = false, true
	}
}

// relink gives the interface the MTU that is known now.
func (t *running) relink() {
	if t.keeper.tunnels[t.of.Name] != t || !tunnel.Ours(t.of.Name) {
		return // it is gone
	}
	l, err := netlink.LinkByName(t.of.Name)
	if err == nil {
		err = t.setMTU(l)
	}
	if err != nil {
		t.keeper.Log.Warn("set the MTU of a tunnel", "interface", t.of.Name, "error", err)
	}
}

// mostTargets is how many addresses behind a peer may be asked.
const mostTargets = 3

// targets returns addresses behind a peer that may answer, the most likely first, each with one of ours that the peer
// should let in.
func (t *running) targets(peer key.Public) (all []ends) {
	at := slices.IndexFunc(t.of.Peers, func(p resolve.Peer) bool { return p.Key == peer.String() })
	if at < 0 {
		return nil
	}
	allowed := t.of.Peers[at].Allowed
	add := func(to netip.Addr) {
		ours := slices.IndexFunc(t.of.Addresses, func(a netip.Prefix) bool { return a.Contains(to) })
		if ours < 0 {
			ours = slices.IndexFunc(t.of.Addresses, func(a netip.Prefix) bool { return a.Addr().Is4() == to.Is4() })
		}
		if ours < 0 || slices.ContainsFunc(t.of.Addresses, func(a netip.Prefix) bool { return a.Addr() == to }) ||
			!slices.ContainsFunc(allowed, func(n netip.Prefix) bool { return n.Contains(to) }) {
			return
		}
		e := ends{t.of.Addresses[ours].Addr(), to}
		if len(all) < mostTargets && !slices.Contains(all, e) {
			all = append(all, e)
		}
	}
	for _, near := range []bool{true, false} { // hosts in the networks of our addresses are the peer itself
		for _, n := range allowed {
			if n.IsSingleIP() && near == slices.ContainsFunc(t.of.Addresses, func(a netip.Prefix) bool { return a.Contains(n.Addr()) }) {
				add(n.Addr())
			}
		}
	}
	for _, a := range t.of.Addresses { // the others of a small network
		first := a.Masked().Addr()
		for _, to := range []netip.Addr{first.Next(), first.Next().Next(), first} {
			if a.Contains(to) && (to != first || a.Bits() >= a.Addr().BitLen()-1) {
				add(to)
			}
		}
	}
	for _, n := range allowed {
		if n.Bits() > 0 && !n.IsSingleIP() {
			add(n.Addr().Next())
		}
	}
	return all
}
