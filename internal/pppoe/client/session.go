package client

import (
	"fmt"
	"time"

	"weir/internal/pppoe/discovery"
	"weir/internal/pppoe/ppp"
)

// discover looks for a concentrator.
func (m *Machine) discover(now time.Time) {
	m.phase, m.early, m.renewing, m.told = discovering, nil, false, false
	m.finder = discovery.Start(m.wanted(), now)
	m.afterDiscovery(now)
}

// wanted is what is looked for.
func (m *Machine) wanted() discovery.Config {
	mtu := m.config.MTU
	if m.plain {
		mtu = min(mtu, ppp.MaxMRU)
	}
	return discovery.Config{
		MAC: m.config.MAC, Service: m.config.Service, AC: m.config.AC, HostUniq: m.config.HostUniq,
		MaxPayload: mtu, Random: m.config.Random,
	}
}

// afterDiscovery passes on what the search has to send and say, and begins PPP once there is
// a session.
func (m *Machine) afterDiscovery(now time.Time) {
	frames, notes := m.finder.Take()
	for _, n := range notes {
		m.note("← %s", n)
	}
	for _, f := range frames {
		if f.Code == discovery.PADR && m.doubtful != (Ref{}) && !m.told && (m.config.Foreign == nil || !m.config.Foreign(m.doubtful)) {
			m.told = true
			m.note("→ PADT for session 0x%04x of before, once more", m.doubtful.ID)
			m.terminate(m.doubtful)
		}
		m.note("→ %s to %s", f.Code, f.To)
		m.out = append(m.out, f.Append(nil))
	}
	if r := m.finder.Result(); r != nil && m.phase == discovering {
		m.begin(*r, now)
	}
}

// begin begins PPP in a session.
func (m *Machine) begin(r discovery.Result, now time.Time) {
	m.phase, m.ref, m.ac, m.payload, m.doubtful = inSession, Ref{r.Peer, r.Session}, r.AC, r.Payload, Ref{}
	m.checking = r.Payload > ppp.MaxMRU
	m.upSince, m.last = time.Time{}, Session{}
	m.link = ppp.New(m.linkConfig(r.Payload), now)
	m.drain(now)
	early := m.early
	m.early = nil
	for _, b := range early {
		m.Receive(b, now)
	}
}

// linkConfig is what PPP has to be in a session with packets of up to payload bytes.
func (m *Machine) linkConfig(payload uint16) ppp.Config {
	return ppp.Config{
		Random: m.config.Random, MRU: payload, Restart: m.config.Restart, Prove: m.config.Prove,
		V4: m.config.V4, V6: m.config.V6, EchoEvery: m.config.EchoEvery, EchoMisses: m.config.EchoMisses,
		VerifyMTU: payload > ppp.MaxMRU,
	}
}

// drain passes on what the link has to send and say.
func (m *Machine) drain(now time.Time) {
	if m.phase != inSession {
		return
	}
	frames, events := m.link.Take()
	for _, b := range frames {
		m.note("→ %s", ppp.Describe(b))
		f := discovery.Frame{To: m.ref.Peer, From: m.config.MAC, Ether: discovery.EtherSession, SessionID: m.ref.ID, Payload: b}
		m.out = append(m.out, f.Append(nil))
	}
	for _, e := range events {
		m.linkEvent(e, now)
		if m.phase != inSession {
			return
		}
	}
}

func (m *Machine) linkEvent(e ppp.Event, now time.Time) {
	switch e.Kind {
	case ppp.LinkUp:
		// Only what both ends agree on can be larger, and is to be proven.
		m.checking = min(m.link.MTU(), m.link.MRU()) > ppp.MaxMRU
	case ppp.Authenticated:
		m.authWait = firstAuthWait
		m.note("authenticated: %s", e.Detail)
	case ppp.NetworkFailed:
		m.note("no %s: %s", family(e.Protocol), e.Detail)
		m.report(now)
	case ppp.MTUVerified:
		m.checking = false
		m.note("packets of %d bytes pass", min(m.link.MTU(), m.link.MRU()))
		m.report(now)
	case ppp.MTUFailed:
		if !m.checking {
			return
		}
		m.plain, m.renewing = true, true
		m.over(ppp.Local, fmt.Sprintf("packets of %d bytes do not pass; the next session has %d", m.payload, ppp.MaxMRU), true, now)
	case ppp.NetworkUp, ppp.NetworkDown, ppp.LinkDown:
		m.report(now)
	case ppp.Ended:
		m.over(e.Cause, e.Detail, true, now)
	}
}

func family(p ppp.Protocol) ppp.Protocol {
	if p == ppp.IPV6CP {
		return ppp.IPv6
	}
	return ppp.IPv4
}

// report says what the session carries, if that is new.
func (m *Machine) report(now time.Time) {
	s := m.session()
	up := s.IPv4.IsValid() || s.ID6 != 0
	switch {
	case m.upSince.IsZero() && (!up || m.checking) || same(s, m.last):
		return
	case m.upSince.IsZero():
		m.upSince = now
		m.event(Event{Kind: Up, Session: s})
	default:
		m.event(Event{Kind: Changed, Session: s})
	}
	m.last = s
}

func (m *Machine) session() Session {
	s := Session{
		Ref: m.ref, Interface: m.config.Interface, Local: m.config.MAC, AC: m.ac,
		MTU: m.link.MTU(), MRU: m.link.MRU(), Magic: m.link.Magic(), PeerMagic: m.link.PeerMagic(), Method: m.link.Method(),
	}
	s.IPv4, s.PeerIPv4, s.DNS = m.link.Addresses()
	s.ID6, s.PeerID6 = m.link.InterfaceIDs()
	return s
}

func same(a, b Session) bool {
	if len(a.DNS) != len(b.DNS) {
		return false
	}
	for i := range a.DNS {
		if a.DNS[i] != b.DNS[i] {
			return false
		}
	}
	return a.Ref == b.Ref && a.MTU == b.MTU && a.MRU == b.MRU && a.Magic == b.Magic && a.PeerMagic == b.PeerMagic &&
		a.IPv4 == b.IPv4 && a.PeerIPv4 == b.PeerIPv4 && a.ID6 == b.ID6 && a.PeerID6 == b.PeerID6
}

// over ends the session, tells the concentrator if it has to be told, and decides when the
// next one is tried.
func (m *Machine) over(cause ppp.Cause, why string, tell bool, now time.Time) {
	if tell {
		m.note("→ PADT")
		m.terminate(m.ref)
	}
	if cause == ppp.Dead || cause == ppp.NoReply || cause == ppp.Local { // else the concentrator knows
		m.doubtful = m.ref
	}
	e := Event{Kind: Down, Cause: cause, Text: why, Session: m.last, WasUp: !m.upSince.IsZero(), Retry: m.retry(cause, now)}
	m.link, m.upSince, m.held, m.scout = nil, time.Time{}, false, scout{}
	m.event(e)
	switch {
	case e.Retry < 0:
		m.phase = off
	case e.Retry == 0:
		m.discover(now)
	default:
		m.phase, m.retryAt = waiting, now.Add(e.Retry)
	}
}

// retry returns how long to wait for the next attempt; negative: there is none.
func (m *Machine) retry(cause ppp.Cause, now time.Time) time.Duration {
	if m.stopping {
		return -1
	}
	if m.renewing {
		return 0
	}
	if cause == ppp.Refused {
		wait := m.authWait
		m.authWait = min(2*wait, lastAuthWait)
		return discovery.Jitter(m.config.Random, wait, 10)
	}
	if !m.upSince.IsZero() && now.Sub(m.upSince) >= proven {
		m.backOff = firstBackOff
		if cause == ppp.Peer {
			return 0
		}
	}
	wait := m.backOff
	m.backOff = min(2*wait, lastBackOff)
	return discovery.Jitter(m.config.Random, wait, 25)
}

func (m *Machine) terminate(ref Ref) {
	m.out = append(m.out, discovery.Terminate(ref.Peer, m.config.MAC, ref.ID).Append(nil))
}

func (m *Machine) note(format string, args ...any) {
	m.event(Event{Kind: Note, Text: fmt.Sprintf(format, args...)})
}

func (m *Machine) event(e Event) { m.events = append(m.events, e) }

// abandon ends a session whose peer does not answer the farewell.
func (m *Machine) abandon(now time.Time) {
	if m.phase == inSession {
		m.over(ppp.Local, "stopped; the concentrator has not answered", true, now)
	}
}
