package userspace

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"weir/internal/vpn/device"
	"weir/internal/vpn/key"
	"weir/internal/vpn/tunnel"
	"weir/internal/vpn/wide"
)

// When handshakes of lanes are begun.
const (
	yieldPause  = 2 * time.Second  // for which the end whose turn it is not waits
	renewPause  = 30 * time.Second // before the end of a session
	greetPause  = 95 * time.Second // an engine tries for 90 s by itself; it doubles
	greetMost   = 30 * time.Minute
	orphanPause = 2 * device.RejectAfterTime // without a session of the first tunnel, after which there are no lanes
	deadPause   = 2 * time.Second            // for which the first tunnel may have no session while lanes work
	strayPause  = time.Second                // for which a lane may be at another address than the first tunnel
)

// link is a link that is to be wide. The lock of its wides is held whenever it is used.
type link struct {
	wides  *wides
	key    key.Public
	wanted int // ports; 0: it is to be wide no more
	ports  int // that this end has for it

	peer    *device.Peer // nil: it is not there
	of      *wide.Link
	first   wide.Watch
	alive   bool      // the first tunnel has a session
	met     time.Time // when it last had one
	dead    bool      // it does not work, and lanes do
	carried uint64    // by lanes, when it got its keys
	lapsed  time.Time // since when it has no session, or soon has none; zero: it has one
	greeted time.Time
	keys    *device.Keypair
	lanes   map[*wide.Set][]*lane
	where   where // the lanes are
	seen    where // the peer is since at
	at      time.Time
	astray  time.Time      // since when a lane is elsewhere; zero: none is
	over    []*device.Peer // by whom connections go
	text    string         // what there is to be said of it
	since   time.Time      // when that began
	said    string         // as the journal has it
}

// lane is a tunnel beside the first.
type lane struct {
	wide.Lane
	peer    *device.Peer
	watch   wide.Watch
	lapsed  time.Time // since when it has no session, or soon has none; zero: it has one
	greeted time.Time
	pause   time.Duration // until it is greeted again
}

// where is how the first tunnel reaches the peer.
type where struct {
	address netip.Addr
	scope   uint32
	local   netip.Addr // this end's
	link    uint32     // by which messages leave
	held    *device.Held
	port    bool // the peer's ports are as it knows them: no NAT changes them
}

// look does what is to be done now.
func (l *link) look(now time.Time) {
	p := l.wides.engine.device.LookupPeer(device.NoisePublicKey(l.key))
	if p == nil {
		l.forget()
		return
	}
	if p != l.peer {
		l.forget()
		l.peer, l.of, l.lanes = p, wide.New(), map[*wide.Set][]*lane{}
	}
	l.be(now)
	alive := p.Fresh(now)
	if keys := p.Keys(); alive && keys != l.keys {
		l.keys, l.carried = keys, l.byLanes()
		l.of.Again(now) // the other end may be another process by now
	}
	sets := l.of.Sets(now)
	if l.alive = alive; alive {
		l.met = now
	} else if len(sets) > 0 && now.Sub(l.met) >= orphanPause { // nothing that is configured vouches for their keys
		l.of.Drop(now)
		sets = nil
	}
	l.have(sets, now)
	l.roam(now)
	working := l.watch(sets, now)
	l.spread(sets)
	if working {
		l.renew(sets[0], now)
	}
	if alive {
		if o := l.of.Offer(now, working); o != nil {
			l.tell(p, o.Append(nil))
		}
	}
	l.say(now)
}

// be has this end of the link have the ports that there are.
func (l *link) be(now time.Time) {
	if l.wides.open == 0 {
		return // the tunnel does not listen at all
	}
	n := min(l.wanted, l.wides.open)
	if n < 2 {
		n = 1
	}
	var others []uint16
	for i := range n - 1 {
		others = append(others, l.wides.port+1+uint16(i))
	}
	l.of.Be(l.wides.port, others, now)
	l.ports = n
	for _, s := range l.of.Sets(now) { // until the last lane is gone, its port stays open
		l.ports = max(l.ports, 1+len(s.Lanes))
	}
}

// forget drops everything.
func (l *link) forget() {
	if l.peer != nil {
		l.peer.Spread(nil)
		for _, lanes := range l.lanes {
			l.drop(lanes)
		}
	}
	l.peer, l.of, l.lanes, l.over, l.ports, l.alive, l.keys = nil, nil, nil, nil, 0, false, nil
	l.first, l.where, l.seen = wide.Watch{}, where{}, where{}
	l.met, l.dead, l.lapsed, l.greeted = time.Time{}, false, time.Time{}, time.Time{}
}

func (l *link) drop(lanes []*lane) {
	for _, a := range lanes {
		if a.peer != nil {
			l.peer.RemoveLane(a.peer)
		}
	}
}

// have has the lanes of these sets be there, and no others.
func (l *link) have(sets []*wide.Set, now time.Time) {
	for s, lanes := range l.lanes {
		if !slices.Contains(sets, s) {
			l.spread(sets) // nothing goes by them from here on
			l.drop(lanes)
			delete(l.lanes, s)
		}
	}
	for _, s := range sets {
		if _, there := l.lanes[s]; there {
			continue
		}
		lanes := []*lane{}
		for _, of := range s.Lanes {
			a := &lane{Lane: of, lapsed: now, pause: greetPause}
			p, err := l.peer.NewLane(of.Place, of.Private.Reveal(), device.NoisePublicKey(of.Peer))
			if err != nil {
				l.wides.engine.device.Errorf("%v - wide: port %d: %v", l.peer, l.wides.port+uint16(of.Place), err)
			}
			a.peer = p // nil: it works never
			lanes = append(lanes, a)
		}
		l.lanes[s] = lanes
		l.lead(lanes)
	}
}

// whereabouts returns how the first tunnel reaches the peer.
func (l *link) whereabouts() where {
	is := l.peer.Endpoint()
	if is == nil {
		return where{}
	}
	return where{is.Remote.Addr(), is.Scope, is.Local, is.Interface, is.Held, is.Remote.Port() == l.of.FarPort()}
}

// roam has all lanes be where the peer is, if it is not just there for a moment: the answer to a probe by another way
// goes there, too.
func (l *link) roam(now time.Time) {
	switch is := l.whereabouts(); {
	case is != l.seen:
		l.seen, l.at, l.astray = is, now, time.Time{}
	case is != l.where && now.Sub(l.at) >= widePause:
		l.follow()
	case !is.port || !l.apart(is.address):
		l.astray = time.Time{}
	case l.astray.IsZero():
		l.astray = now
	case now.Sub(l.astray) >= strayPause:
		l.astray = time.Time{}
		l.follow()
	}
}

// apart reports whether a lane is at another address: what was under way when the peer went elsewhere has taken it back.
func (l *link) apart(from netip.Addr) bool {
	for _, lanes := range l.lanes {
		for _, a := range lanes {
			if a.peer == nil {
				continue
			}
			if is := a.peer.Endpoint(); is != nil && is.Remote.Addr() != from {
				return true
			}
		}
	}
	return false
}

// follow has all lanes be where the peer is.
func (l *link) follow() {
	if l.of == nil {
		return
	}
	l.where = l.whereabouts()
	for _, lanes := range l.lanes {
		l.lead(lanes)
	}
}

// lead has lanes be where the peer is. Ports that a NAT has changed are known from what comes by them only.
func (l *link) lead(lanes []*lane) {
	w := l.whereabouts()
	for _, a := range lanes {
		if a.peer == nil {
			continue
		}
		if is := a.peer.Endpoint(); w.port {
			a.peer.Follow(a.Port)
		} else if is != nil {
			a.peer.Follow(is.Remote.Port())
		}
		a.pause = greetPause
	}
}

// watch finds out which lanes work, and reports whether any does.
func (l *link) watch(sets []*wide.Set, now time.Time) (any bool) {
	for _, s := range sets {
		works := 0
		for _, a := range l.lanes[s] {
			if a.peer != nil && l.watchLane(s, a, now) {
				works++
			}
		}
		any = any || works > 0
		l.of.Works(s, works, now)
	}
	if !l.of.Agreed() || len(sets) == 0 {
		l.dead = l.dead && any // what would make the ends agree goes by the first tunnel
		return any
	}
	sent, received := l.peer.Own()
	was := l.first.Up()
	if n := l.first.Look(now, sent, received, l.alive); n != 0 {
		l.probe(l.peer, n, l.first.Deaf())
	}
	l.dead = any && (l.first.Dead() || !l.alive && now.Sub(l.met) >= deadPause)
	if was && !l.first.Up() && l.alive { // its keys may be lost, as those of lanes are
		l.peer.SendHandshakeInitiation(false) //nolint:errcheck // it logs what goes wrong, and is tried again
	}
	return any
}

// renew has the first tunnel get a new session while lanes carry what it would be renewed for. It is not renewed for lanes
// that carry nothing: these end with it.
func (l *link) renew(newest *wide.Set, now time.Time) {
	if l.peer.Fresh(now.Add(renewPause)) {
		l.lapsed = time.Time{}
		return
	}
	if l.lapsed.IsZero() {
		l.lapsed = now
	}
	if l.byLanes() == l.carried || now.Sub(l.greeted) < greetPause || newest.Mine < newest.Theirs && now.Sub(l.lapsed) < yieldPause {
		return
	}
	l.greeted = now
	l.peer.SendHandshakeInitiation(false) //nolint:errcheck // it logs what goes wrong, and is tried again
}

// byLanes returns how many bytes lanes have carried.
func (l *link) byLanes() uint64 {
	sent, received := l.peer.Bytes()
	ownSent, ownReceived := l.peer.Own()
	return sent - ownSent + received - ownReceived
}

func (l *link) watchLane(s *wide.Set, a *lane, now time.Time) (works bool) {
	fresh := a.peer.Fresh(now)
	was := a.watch.Up()
	sent, received := a.peer.Own()
	if n := a.watch.Look(now, sent, received, fresh); n != 0 {
		l.probe(a.peer, n, a.watch.Deaf())
	}
	if was && !a.watch.Up() && fresh && !s.Ended() {
		l.of.Again(now) // the other end may have lost its keys
	}
	switch {
	case a.peer.Fresh(now.Add(renewPause)):
		a.lapsed, a.pause, a.greeted = time.Time{}, greetPause, time.Time{}
	case a.lapsed.IsZero(), !l.alive: // both ends count from when the first tunnel works again
		a.lapsed = now
	}
	if l.alive && !s.Ended() && !a.lapsed.IsZero() && (s.Mine > s.Theirs || now.Sub(a.lapsed) >= yieldPause) && now.Sub(a.greeted) >= a.pause && l.where.port {
		if !a.greeted.IsZero() {
			a.pause = min(2*a.pause, greetMost)
		}
		a.greeted = now
		a.peer.SendHandshakeInitiation(false) //nolint:errcheck // it logs what goes wrong, and is tried again
	}
	return a.watch.Up()
}

// probe asks whether a tunnel carries packets as large as the interface has.
func (l *link) probe(by *device.Peer, number uint64, deaf bool) {
	p := wide.Probe{Number: number, Deaf: deaf, Size: l.wides.engine.device.MTU()}
	l.tell(by, p.Append(nil))
}

func (l *link) tell(by *device.Peer, text []byte) {
	l.wides.engine.path.Tell(by, text) //nolint:errcheck // what needs an answer is said again
}

// probed answers a probe, or takes the answer to one.
func (l *link) probed(from *device.Peer, p *wide.Probe) {
	watch := &l.first
	if from != l.peer {
		a := l.laneOf(from)
		if a == nil {
			return
		}
		watch = &a.watch
	}
	if p.Answer {
		if watch.Answered(p.Number); from == l.peer {
			l.dead = false
		}
		l.spread(l.of.Sets(time.Now()))
		return
	}
	if watch.Asked(p.Deaf); p.Deaf {
		l.spread(l.of.Sets(time.Now()))
	}
	answer := *p
	answer.Answer = true
	l.tell(from, answer.Append(nil))
}

func (l *link) laneOf(p *device.Peer) *lane {
	for _, lanes := range l.lanes {
		for _, a := range lanes {
			if a.peer == p {
				return a
			}
		}
	}
	return nil
}

// spread has connections go by the lanes that work, each by the newest keys there are. What a lane that does not work
// would carry goes by the first tunnel, or by the first lane that works if the first tunnel does not.
func (l *link) spread(sets []*wide.Set) {
	var over []*device.Peer
	for _, s := range sets {
		if s.Ended() {
			continue
		}
		lanes := l.lanes[s]
		if over == nil && len(lanes) > 0 { // both ends reckon with as many
			over = slices.Repeat([]*device.Peer{l.peer}, 1+len(lanes))
		}
		for _, a := range lanes {
			if at := int(a.Place); a.watch.Up() && at < len(over) && over[at] == l.peer {
				over[at] = a.peer
			}
		}
		if s.Moved() {
			break
		}
	}
	if at := slices.IndexFunc(over, func(p *device.Peer) bool { return p != l.peer }); at < 0 {
		over = nil
	} else if best := over[at]; l.dead {
		for i := range over {
			if over[i] == l.peer {
				over[i] = best
			}
		}
	}
	if !slices.Equal(over, l.over) {
		l.over = over
		l.peer.Spread(over)
	}
}

// state tells of the link.
func (l *link) state() *tunnel.Wide {
	s := &tunnel.Wide{Wanted: l.wanted, Used: 1}
	first := tunnel.Port{Port: l.wides.port, Works: l.alive && !l.dead}
	if l.dead {
		s.Used = 0
	}
	s.Ports = append(s.Ports, first)
	if l.peer == nil || l.of == nil {
		s.Why = "there is no peer"
		return s
	}
	if is := l.peer.Endpoint(); is != nil {
		s.Ports[0].Endpoint = is.Remote
	}
	s.Ports[0].Sent, s.Ports[0].Received = l.peer.Own()
	for _, set := range l.of.Sets(time.Now()) {
		if set.Ended() {
			continue
		}
		for _, a := range l.lanes[set] {
			l.add(s, a)
		}
		break
	}
	s.Why = l.why(s)
	return s
}

func (l *link) add(s *tunnel.Wide, a *lane) {
	p := tunnel.Port{Port: l.wides.port + uint16(a.Place)}
	if a.peer != nil {
		if is := a.peer.Endpoint(); is != nil {
			p.Endpoint = is.Remote
		}
		p.Sent, p.Received = a.peer.Own()
	}
	if at := int(a.Place); at < len(l.over) && int(l.over[at].Place()) == at { // by keys of before, perhaps
		p.Works = true
		s.Used++
	}
	s.Ports = append(s.Ports, p)
}

// why says why the link does not use as many ports as it is to, and notes whether the other end has fewer.
func (l *link) why(s *tunnel.Wide) string {
	weir, far := l.of.Known()
	switch {
	case s.Used >= s.Wanted:
		return ""
	case l.wides.open < l.wanted && l.wides.taken != "":
		return l.wides.taken
	case !weir && l.alive:
		return "the other end does not answer as a weir does"
	case !weir:
		return "there is no session yet"
	case !far:
		return "the other end's statement does not say wide"
	case len(s.Ports) < s.Wanted && s.Used == len(s.Ports) && s.Used > 1:
		s.Fewer = true
		return fmt.Sprintf("the other end has %d ports", len(s.Ports))
	case !l.alive:
		return "there is no session"
	case l.dead:
		return fmt.Sprintf("nothing comes back by port %d: a rule, here or there, may be in the way", l.wides.port)
	case !l.where.port && s.Used == 1:
		return "ports are changed on the way to the other end, which has to begin; nothing came by them yet"
	}
	return "nothing comes back by the other ports: a rule, here or there, or a NAT may be in the way"
}

// sayPause is for how long something stays as it is before it is said.
const sayPause = 3 * time.Second

// say tells the journal what has changed.
func (l *link) say(now time.Time) {
	if l.wanted == 0 {
		return
	}
	s := l.state()
	text := fmt.Sprintf("wide: %d of %d ports in use", s.Used, s.Wanted)
	if s.Why != "" {
		text += ": " + s.Why
	}
	if text != l.text {
		l.text, l.since = text, now
	}
	if text == l.said || now.Sub(l.since) < sayPause {
		return
	}
	l.said = text
	l.wides.engine.remarked("%v - %s", l.peer, text)
}
