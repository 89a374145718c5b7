package inquiry

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"weir/internal/vpn/keeper"
	"weir/internal/vpn/tunnel"
)

// Facts are what is known of a tunnel and one of its peers.
type Facts struct {
	Tunnel keeper.Status
	Peer   keeper.Peer
	Routes []Route // to those of the peer's networks that weir's routes lead to
	Probes []Probe
	Now    time.Time
}

// Route is where a route to one of the peer's networks leads.
type Route struct {
	Network netip.Prefix
	Through string // the interface; empty: nowhere
}

// Probe is what became of echo requests to an address behind the peer.
type Probe struct {
	To       netip.Addr
	From     netip.Addr // this end's address; not valid: unknown
	Sent     int
	Answered int
	RTT      time.Duration // the least
	Out, In  uint64        // bytes that the engine has sent to the peer and received meanwhile
	Largest  int           // bytes of the largest packet that was answered; 0: not tried
	Arrived  uint64        // packets of the peer that came to the tunnel's port meanwhile, if that was looked at
}

// A Finding is an answer to one question about the tunnel.
type Finding struct {
	Question string `json:"question"`
	OK       bool   `json:"ok"`
	Answer   string `json:"answer"`
}

// Judge answers the questions in order, from the engine to the network.
func Judge(f *Facts) (all []Finding) {
	say := func(question string, ok bool, format string, args ...any) {
		all = append(all, Finding{question, ok, fmt.Sprintf(format, args...)})
	}
	switch {
	case f.Tunnel.Problem != "":
		say("tunnel", false, "%s", f.Tunnel.Problem)
	case f.Tunnel.Engine == "":
		say("tunnel", false, "no engine works for it yet")
	default:
		say("tunnel", true, "engine %s, port %d, MTU %d", f.Tunnel.Engine, f.Tunnel.Port, f.Tunnel.MTU)
	}
	all = append(all, session(f))
	if w := f.Peer.Wide; w != nil && f.Peer.Session == keeper.Current {
		say("ports", w.Why == "" || w.Fewer, "%s", ports(w))
	}
	all = append(all, routes(f))
	if r := f.Peer.Refused; r != nil && f.Now.Sub(r.Time) < keeper.Noticed {
		say("allowed", false, "packets of the peer are dropped, %d so far, the last %s ago from %s: that is in none of its allowed networks here. Add its network, if the peer may send from there",
			r.Packets, f.Now.Sub(r.Time).Round(time.Second), r.Source)
	}
	for i := range f.Probes {
		all = append(all, probe(f, &f.Probes[i])...)
	}
	if len(f.Probes) == 0 {
		say("probe", false, "no address to ask is known: name one behind the peer with --to")
	}
	return all
}

// errorAge is how old an error may be to be why there is no session: handshakes are tried every 5 s.
const errorAge = 30 * time.Second

// session says whether there are keys to encrypt with, and else why not.
func session(f *Facts) Finding {
	p := &f.Peer
	ago := max(f.Now.Sub(p.Handshake), 0).Round(time.Second)
	recent := p.Error != "" && p.ErrorTime.After(p.Handshake) && f.Now.Sub(p.ErrorTime) <= errorAge
	stranger := f.Tunnel.StrangerOf(p, f.Now)
	finding := func(ok bool, format string, args ...any) Finding {
		return Finding{"session", ok, fmt.Sprintf(format, args...)}
	}
	switch {
	case p.Session == keeper.Current && !f.Tunnel.Says.IsZero():
		return finding(true, "the last handshake was %s ago, with %s. It said a time that is yet to come, as this end's clock was ahead, or has gone back: until %s the peer takes none from another program with this key",
			ago, p.Endpoint, clock(f.Tunnel.Says))
	case p.Session == keeper.Current:
		return finding(true, "the last handshake was %s ago, with %s", ago, p.Endpoint)
	case p.Behind != nil && f.Now.Sub(p.Behind.Time) < keeper.Noticed:
		b := p.Behind
		return finding(false, "the peer's clock has gone back, or somebody sends old messages of it again: handshakes come that say %s, and the last one that counted said %s. None with an earlier time counts. Compare the peer's clock, and set it. Only if it cannot be set, restart weir vpn run here: it then takes any time once, also that of an old message",
			clock(b.Theirs), clock(b.Last))
	case f.Now.Before(firstYear):
		return finding(false, "this end's clock says %s: a peer that has had a later handshake takes none from this end. Set the clock", clock(f.Now))
	case p.Ahead(f.Now) && f.Tunnel.Engine != "userspace": // which sends a later time all the same
		return finding(false, "this end's clock has gone back: the last handshake was at %s, and now it is %s. The peer takes no handshake with an earlier time than the last one. Set the clock", clock(p.Handshake), clock(f.Now))
	case stranger != nil && stranger.Key == nil:
		return finding(false, "somebody at %s begins handshakes with another public key than this end's: if it is the peer, the other end has to have %s for this one", stranger.From.Addr(), f.Tunnel.Key)
	case stranger != nil && p.Endpoint.IsValid():
		return finding(false, "somebody at %s begins handshakes with the public key %s, which no peer here has. Anybody can claim that address and that key: compare it with what the peer itself shows before you change the statement", stranger.From, stranger.Key)
	case stranger != nil:
		return finding(false, "the peer has no endpoint, and has not come by itself; somebody at %s begins handshakes with the public key %s, which no peer here has. Anybody can claim that key: compare it with what the peer itself shows before you change the statement", stranger.From, stranger.Key)
	case !p.Endpoint.IsValid():
		return finding(false, "it is not known where the peer is: it has no endpoint, or its name has no address, and it has not come by itself")
	case p.Session == keeper.OldSession && !recent:
		return finding(false, "the last handshake was %s ago: the peer at %s is silent since, or nothing was sent", ago, p.Endpoint)
	case recent:
		return finding(false, "no handshake with %s: %s", p.Endpoint, p.Error)
	case p.Received == 0:
		return finding(false, "%s has never answered: nobody is there, the way is blocked (UDP, both directions), one end has another public or preshared key for the other, or this end's clock is behind what it was at an earlier handshake", p.Endpoint)
	}
	return finding(false, "no handshake with %s has come to its end, though packets come: one end has another preshared key", p.Endpoint)
}

// firstYear is before weir was written: a machine without a battery begins with such a time.
var firstYear = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)

func clock(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// ports says how many of a wide link's ports are used, and why not all are. The others carry what these would.
func ports(w *tunnel.Wide) string {
	text := fmt.Sprintf("%d of %d ports carry the link", w.Used, w.Wanted)
	var silent []string
	for _, p := range w.Ports {
		if !p.Works {
			silent = append(silent, strconv.Itoa(int(p.Port)))
		}
	}
	if w.Why != "" {
		text += ": " + w.Why
	}
	if len(silent) > 0 {
		text += " (" + strings.Join(silent, " ") + ")"
	}
	return text
}

func routes(f *Facts) Finding {
	if len(f.Peer.Allowed) == 0 {
		return Finding{"routes", false, "the peer has no allowed networks: nothing is sent to it"}
	}
	for _, r := range f.Routes {
		if r.Through == "" {
			return Finding{"routes", false, fmt.Sprintf("no route leads to %s", r.Network)}
		}
		if r.Through != f.Tunnel.Interface {
			return Finding{"routes", false, fmt.Sprintf("the route to %s leads through %s, not through %s", r.Network, r.Through, f.Tunnel.Interface)}
		}
	}
	return Finding{"routes", true, fmt.Sprintf("%d of %d allowed networks are reached through %s; the others have no route of weir's", len(f.Routes), len(f.Peer.Allowed), f.Tunnel.Interface)}
}

// least is how many bytes an encrypted echo request, or its answer, has at least. The second message of a handshake and
// the keepalive after it have 124 together.
const least = 128

// Count takes from what is known of the peer before and after the requests what was sent and received meanwhile. It
// returns false if nothing was answered and a handshake has come to its end meanwhile: its messages were counted, so
// it has to be asked again.
func (p *Probe) Count(before, after *keeper.Peer) bool {
	p.Out, p.In = after.Sent-min(before.Sent, after.Sent), after.Received-min(before.Received, after.Received)
	return p.Answered > 0 || after.Handshake.Equal(before.Handshake)
}

// Silent reports whether requests left, and nothing was decrypted.
func (p *Probe) Silent() bool { return p.Answered == 0 && p.In < least && p.Out >= least }

// Stalled reports whether packets came, and nothing was decrypted. One may have been a handshake's.
func (p *Probe) Stalled() bool {
	return p.Silent() && p.In == 0 && p.Arrived >= uint64(max(2, p.Sent-1))
}

func probe(f *Facts, p *Probe) (all []Finding) {
	say := func(question string, ok bool, format string, args ...any) {
		all = append(all, Finding{question, ok, fmt.Sprintf(format, args...)})
	}
	contained := false
	for _, a := range f.Peer.Allowed {
		contained = contained || a.Contains(p.To)
	}
	switch {
	case !contained:
		say("probe", false, "%s is in none of the peer's allowed networks: nothing is sent to the peer for it", p.To)
	case p.Answered > 0:
		say("probe", true, "%s answers %d of %d, in %s", p.To, p.Answered, p.Sent, p.RTT.Round(10*time.Microsecond))
	case p.Out < least*uint64(max(1, p.Sent-1)): // one may be lost on its way; the first message of a handshake has 148
		say("probe", false, "nothing left for %s: the rules here block it at %s, or there is no session", p.To, f.Tunnel.Interface)
	case p.Stalled():
		say("probe", false, "no progress: %d packets of the peer came to port %d meanwhile, and none was decrypted. The peer uses keys that this end does not have any more, or decryption stands still, as that of some kernels' WireGuard may: a new handshake helps against both (weir vpn reconnect %s)",
			p.Arrived, f.Tunnel.Port, f.Peer.Name)
	case p.In < least:
		say("probe", false, "one way: %d bytes left for %s, and nothing came back. The other end drops them (its allowed networks lack our address, or its rules), or has no way back into the tunnel", p.Out, p.To)
	default:
		say("probe", false, "%s does not answer, though %d bytes came from the peer: the host is down or drops echo requests, or the rules here block the answers at %s", p.To, p.In, f.Tunnel.Interface)
	}
	if found := p.mtu(&f.Tunnel); found.Question != "" {
		all = append(all, found)
	}
	return all
}
