package keeper

import (
	"net"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/vishvananda/netlink"

	"weir/internal/vpn/failover"
	"weir/internal/vpn/key"
	"weir/internal/vpn/tunnel"
	"weir/internal/vpn/userspace"
	"weir/pf/resolve"
)

// link is a peer that several ways lead to, or one whose interface is chosen.
type link struct {
	of     []resolve.Way
	ways   []way
	choice *failover.Link
	since  time.Time        // when it began
	apart  []netip.AddrPort // where the other ways lead, as the engine has it
	moved  *Moved
}

// nameWait is how long the name of the preferred way may take at the beginning before another way is used.
const nameWait = 3 * time.Second

// way is where a way leads now.
type way struct {
	target netip.AddrPort // not valid: its name has no address yet
	index  int            // of its interface; 0: none is named
	up     bool           // something can be sent by it
	missed time.Time      // when its target was last given up
}

func (w *way) at() tunnel.At { return tunnel.At{Remote: w.target, Interface: w.index} }

// engineOf returns the engine that a tunnel needs; empty: either.
func engineOf(of *resolve.WireGuard) string {
	if of.Engine == "" && slices.ContainsFunc(of.Peers, func(p resolve.Peer) bool { return len(p.Ways) > 0 || isWide(p) }) {
		return userspace.Name
	}
	return of.Engine
}

// choose has each peer be reached by the way that works.
func (t *running) choose(now time.Time) {
	holder, ok := t.engine.(tunnel.Holder)
	if !ok || t.config == nil {
		return
	}
	there := map[key.Public]bool{}
	for i := range t.of.Peers {
		p := &t.of.Peers[i]
		k, err := key.ParsePublic(p.Key)
		if err != nil || len(p.Ways) == 0 {
			continue
		}
		if is, ok := holder.Reach(k); ok {
			there[k] = true
			t.reach(holder, p, k, &is, now)
		}
	}
	for k := range t.links {
		if !there[k] {
			delete(t.links, k)
		}
	}
}

// reach has a peer be reached by the way that works.
func (t *running) reach(holder tunnel.Holder, p *resolve.Peer, k key.Public, is *tunnel.Reach, now time.Time) {
	l := t.links[k]
	if l == nil || !slices.Equal(l.of, p.Ways) {
		l = &link{of: p.Ways, ways: make([]way, len(p.Ways)), choice: failover.New(len(p.Ways), now), since: now}
		if t.links == nil {
			t.links = map[key.Public]*link{}
		}
		t.links[k] = l
	}
	note := func(err error) {
		if err != nil {
			t.keeper.Log.Debug("use or probe a way to a peer", "interface", t.of.Name, "peer", p.Name, "error", err)
		}
	}
	before := l.choice.At
	held := l.ways[before].at()
	up := l.look(&t.keeper.endpoints)
	if before == 0 && !l.ways[0].target.IsValid() && now.Sub(l.since) < nameWait {
		return
	}
	facts := failover.Facts{Now: now, Sent: is.Sent, Received: is.Received, Stray: is.Stray, Answered: is.Answered, Took: is.Took, Up: up}
	step := l.choice.Next(&facts)
	used := &l.ways[l.choice.At]
	if step.Move {
		t.keeper.Log.Warn("a peer is reached by another way", "interface", t.of.Name, "peer", p.Name, "from", l.name(before), "to", l.name(l.choice.At), "why", step.Why)
		l.moved = &Moved{now, "from " + l.name(before) + " to " + l.name(l.choice.At) + ": " + step.Why}
		t.note(OfEndpoint, p.Name, "moved %s", l.moved.Why)
		if known := t.paths[k]; known != nil {
			known.again = true // another way may carry other packets
		}
		if w := l.of[l.choice.At]; step.First && w.Endpoint == l.of[before].Endpoint && w.Port == l.of[before].Port && is.At.Remote.IsValid() {
			used.target = is.At.Remote // where it has gone meanwhile
		}
	}
	if at, others := used.at(), l.others(); used.up && (step.Move || at != held || !slices.Equal(others, l.apart)) {
		if !step.Move && at == held && is.At.Remote.IsValid() {
			at.Remote = is.At.Remote // where it has gone meanwhile
		}
		l.apart = others
		note(holder.Hold(k, at, others))
	}
	if step.Recall {
		holder.Recall(k)
	}
	if step.Probe {
		var apart *tunnel.At
		if step.Way != l.choice.At {
			at := l.ways[step.Way].at()
			apart = &at
		}
		begun, err := holder.Probe(k, apart)
		note(err)
		if begun || err != nil {
			l.choice.Begun(step.Way, now)
		}
	}
}

// look finds out which ways something can be sent by. The endpoint of one that has not answered is looked up again.
func (l *link) look(e *endpoints) (up []bool) {
	for i := range l.ways {
		w, of, known := &l.ways[i], &l.of[i], &l.choice.Ways[i]
		inUse := i == l.choice.At && l.choice.Sure
		if !w.target.IsValid() || known.Missed.After(w.missed) && !inUse {
			w.missed = known.Missed
			if to := e.next(of.Endpoint, of.Port); to.IsValid() {
				w.target = to
			}
		}
		w.up = w.target.IsValid()
		if of.On != "" {
			index, running := indexOf(of.On)
			if w.up = w.up && running; running {
				w.index = index
			}
		}
		up = append(up, w.up)
	}
	return up
}

// indexOf returns the index of an interface, and whether it is up and has a carrier.
func indexOf(name string) (index int, running bool) {
	l, err := netlink.LinkByName(name)
	if err != nil {
		return 0, false
	}
	const wanted = net.FlagUp | net.FlagRunning
	return l.Attrs().Index, l.Attrs().Flags&wanted == wanted
}

// others are where the ways lead that are not used.
func (l *link) others() (all []netip.AddrPort) {
	used := l.ways[l.choice.At].target
	for i := range l.ways {
		if to := l.ways[i].target; to.IsValid() && to != used {
			all = append(all, to)
		}
	}
	return all
}

// name is what a way is called.
func (l *link) name(i int) string {
	w := &l.of[i]
	text := net.JoinHostPort(w.Endpoint, strconv.Itoa(int(w.Port)))
	if w.On != "" {
		text += " on " + w.On
	}
	return text
}

// status tells of the ways to a peer. There may be none.
func (l *link) status() (all []Way, moved *Moved) {
	if l == nil {
		return nil, nil
	}
	for i := range l.ways {
		is, of, known := &l.ways[i], &l.of[i], &l.choice.Ways[i]
		w := Way{
			Endpoint: net.JoinHostPort(of.Endpoint, strconv.Itoa(int(of.Port))), Address: is.target, Interface: of.On,
			Used: i == l.choice.At, Answered: known.Answered, RTT: float64(known.Took.Microseconds()) / 1000,
		}
		switch {
		case !is.up:
			w.State = WayDown
		case known.Missed.After(known.Answered):
			w.State = WaySilent
		case known.Answered.IsZero():
			w.State = WayUntried
		default:
			w.State = WayAnswers
		}
		all = append(all, w)
	}
	return all, l.moved
}
