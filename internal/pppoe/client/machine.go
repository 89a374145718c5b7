package client

import (
	"io"
	"net/netip"
	"time"

	"weir/internal/pppoe/discovery"
	"weir/internal/pppoe/ppp"
)

// Config is what a session has to be.
type Config struct {
	Interface int           // index of the interface below, for the events
	MAC       discovery.MAC // of that interface
	Service   string        // Service-Name; "": any
	AC        string        // name of the concentrator; "": any
	HostUniq  []byte        // empty: a random one
	// MTU is the largest packet, in bytes: 1,492, or up to 1,500 by RFC 4638 on an interface
	// with room for 8 bytes more. 0: 1,492.
	MTU   uint16
	Prove ppp.Prove
	V4    *ppp.V4 // nil: no IPv4
	V6    *ppp.V6 // nil: no IPv6
	// EchoEvery is the time between two LCP echo requests, EchoMisses how many may stay
	// without an answer. 0: 10 s and 5.
	EchoEvery  time.Duration
	EchoMisses int
	// Restart is how long an answer of PPP is waited for; 0: 3 s.
	Restart time.Duration
	// Before is a session from before a crash: it is ended first, as a concentrator may
	// refuse another one for minutes.
	Before *Ref
	// Resume is a session that another process has left open, to go on with. It goes before
	// Before.
	Resume *Saved
	// Dark says that the line has no carrier at the start.
	Dark bool
	// Foreign says whether a session on this interface is another client's of this machine,
	// and so not to be ended. nil: none is.
	Foreign func(Ref) bool
	Random  io.Reader // crypto/rand.Reader, but in tests
}

// Ref names a session of this machine.
type Ref struct {
	Peer discovery.MAC
	ID   uint16
}

// Session is a session that is up. It is all that the data path needs.
type Session struct {
	Ref
	Interface int
	Local     discovery.MAC
	AC        string // the concentrator's name, printable
	MTU       uint16 // largest packet to the peer, in bytes
	MRU       uint16 // largest packet from the peer, in bytes
	// Magic is what an LCP echo reply has to carry; 0: none. PeerMagic is the peer's.
	Magic, PeerMagic uint32
	Method           ppp.Method // of authentication

	IPv4, PeerIPv4 netip.Addr // invalid: no IPv4, or the peer has no address
	DNS            []netip.Addr
	ID6, PeerID6   uint64 // interface identifiers; 0: no IPv6, or the peer has none
}

// LinkLocal returns the IPv6 link-local address of an interface identifier; for 0 an invalid
// one.
func LinkLocal(id uint64) netip.Addr {
	if id == 0 {
		return netip.Addr{}
	}
	b := [16]byte{0: 0xfe, 1: 0x80}
	for i := range 8 {
		b[8+i] = byte(id >> (56 - 8*i))
	}
	return netip.AddrFrom16(b)
}

// Kind says what an event is.
type Kind uint8

// The events.
const (
	Up      Kind = iota + 1 // the session carries packets
	Changed                 // what it carries has changed: an address family came or went; or it is held no more
	Held                    // the line has no carrier: the session carries nothing until it answers again
	Down                    // the session is over
	Note                    // a line for a log
	Frame                   // a frame was sent or has come, from Run
)

// Event is something that happened.
type Event struct {
	Kind    Kind
	Session Session       // of Up, Changed and Held; of Down the last one, if it was up
	Saved   *Saved        // of Up and Changed, from Run: for a process that goes on with the session
	WasUp   bool          // of Down
	Cause   ppp.Cause     // of Down
	Text    string        // of Down, Note and Frame: for a person, printable, without secrets
	Frame   []byte        // of Frame: Ethernet's, without secrets
	Out     bool          // of Frame: it was sent
	Retry   time.Duration // of Down: until the next attempt; negative: there is none
}

// String is what the log has of an event.
func (e *Event) String() string {
	switch e.Kind {
	case Up:
		return "up"
	case Changed:
		return "changed"
	case Held:
		return "the line has no carrier"
	case Down:
		return "down: " + e.Text
	}
	return e.Text
}

type phase uint8

const (
	off phase = iota
	waiting
	discovering
	inSession
)

// Machine is one session and its successors. It is not safe for concurrent use.
type Machine struct {
	config  Config
	phase   phase
	finder  *discovery.Client
	link    *ppp.Link
	ref     Ref
	ac      string
	payload uint16
	early   [][]byte // frames of the session that came before the PADS

	retryAt   time.Time
	upSince   time.Time // zero: not up
	checking  bool      // the large echo is out
	plain     bool      // no RFC 4638: large packets do not pass
	stopping  bool      // no new session follows
	renewing  bool      // a new session follows at once
	last      Session
	doubtful  Ref       // the last session, whose end may not have reached the concentrator; zero: there is none
	told      bool      // that end, once more in this search
	dark      bool      // the line has no carrier
	held      bool      // the session has not answered since it had none
	darkSince time.Time // when it went, if dark
	scout     scout

	backOff, authWait time.Duration
	strayAt           time.Time         // the next PADT for an unknown session, not before
	strays            map[Ref]time.Time // unknown sessions and when they were seen first

	out    [][]byte
	events []Event
}

// Times between sessions.
const (
	firstBackOff = time.Second
	lastBackOff  = 5 * time.Minute
	// firstAuthWait is long, as some providers lock who comes with a wrong password often.
	firstAuthWait = 5 * time.Minute
	lastAuthWait  = time.Hour
	// proven is how long a session has to have been up for the next one to follow at once.
	proven = time.Minute
	// strayEvery is the time between two answers to frames of unknown sessions, strayAge how
	// long a session has to be unknown: one that another client has just got is known soon.
	strayEvery = time.Second
	strayAge   = 2 * time.Second
)

// maxStrays is how many unknown sessions are remembered; then all are forgotten.
const maxStrays = 64

// maxEarly is how many frames are kept that come before the PADS.
const maxEarly = 4

// New makes a machine that does nothing yet.
func New(config Config) *Machine {
	if config.MTU == 0 {
		config.MTU = ppp.MaxMRU
	}
	if config.EchoEvery == 0 {
		config.EchoEvery, config.EchoMisses = 10*time.Second, 5
	}
	return &Machine{config: config, backOff: firstBackOff, authWait: firstAuthWait, dark: config.Dark}
}

// Take returns the Ethernet frames to send and the events since the last call.
func (m *Machine) Take() (frames [][]byte, events []Event) {
	frames, events = m.out, m.events
	m.out, m.events = nil, nil
	return frames, events
}

// Next returns when Tick has to be called; zero: it need not.
func (m *Machine) Next() time.Time {
	switch m.phase {
	case waiting:
		return m.retryAt
	case discovering:
		return m.finder.Next()
	case inSession:
		next := m.link.Next()
		if t := m.scout.next(); !t.IsZero() && (next.IsZero() || t.Before(next)) {
			return t
		}
		return next
	}
	return time.Time{}
}

// Ref returns the session that there is, up or not; false: there is none. It is what Before
// has to be after a crash.
func (m *Machine) Ref() (Ref, bool) { return m.ref, m.phase == inSession }

// Start begins.
func (m *Machine) Start(now time.Time) {
	m.stopping = false
	if s := m.config.Resume; s != nil && m.phase == off {
		m.config.Resume = nil
		m.resume(*s, now)
		return
	}
	if m.config.Before != nil {
		m.note("→ PADT for session 0x%04x of before", m.config.Before.ID)
		m.terminate(*m.config.Before)
		m.config.Before = nil
	}
	if m.phase == off {
		m.discover(now)
	}
}

// Stop ends the session, and no other follows. Down is reported when it is over.
func (m *Machine) Stop(now time.Time) {
	m.stopping = true
	if m.phase == inSession {
		m.link.Close(now)
		m.drain(now)
		return
	}
	if m.phase != off {
		m.phase = off
		m.event(Event{Kind: Down, Cause: ppp.Local, Text: "stopped", Retry: -1})
	}
}

// Reconnect ends the session and makes a new one at once. A long wait ends too, and packets
// larger than 1,492 bytes are tried again.
func (m *Machine) Reconnect(now time.Time) {
	m.plain = false
	m.backOff, m.authWait = firstBackOff, firstAuthWait
	switch m.phase {
	case inSession:
		m.renewing = true
		m.link.Close(now)
		m.drain(now)
	case waiting, discovering:
		m.discover(now)
	}
}

// Resize says how large packets may be asked for from now on. A new session is made for it at once if there is to be one anew, or
// if none is up.
func (m *Machine) Resize(mtu uint16, anew bool, now time.Time) {
	if m.config.MTU = mtu; anew || m.phase == discovering || m.phase == inSession && m.upSince.IsZero() {
		m.Reconnect(now)
	}
}

// Carrier says whether the line below has a carrier. With it, what waits begins at once. A session outlives a line that
// was down for a while, if the concentrator has not noticed: quick echoes find out. Until it answers, or another one offers a
// session, the line may not forward yet.
func (m *Machine) Carrier(on bool, now time.Time) {
	if m.dark == !on {
		return
	}
	m.dark, m.scout = !on, scout{}
	if m.dark {
		m.darkSince = now
	}
	if m.dark && m.phase == inSession {
		m.link.EndProbe(now)
	}
	switch {
	case m.phase == inSession && m.upSince.IsZero(): // PPP sends again
	case m.phase == inSession && on:
		m.link.Probe(now, returnPatience)
		if m.held {
			m.scout.begin = now.Add(scoutAfter)
		}
		m.drain(now)
	case m.phase == inSession && !m.held:
		m.held = true
		m.event(Event{Kind: Held, Session: m.last})
	case on && (m.phase == discovering || m.phase == waiting && m.authWait == firstAuthWait):
		m.discover(now)
	}
}

// wrongCarrier is after how long something that the peer has sent proves that the line works, whatever its driver says of the
// carrier: what was on its way before has come by then.
const wrongCarrier = 2 * time.Second

// answered says that the session carries packets again, if it was held.
func (m *Machine) answered(now time.Time) {
	if m.held && (!m.dark || now.Sub(m.darkSince) > wrongCarrier) {
		m.held, m.scout = false, scout{}
		m.event(Event{Kind: Changed, Session: m.last})
	}
}

// Traffic says that the data path has received packets of the session since the last call:
// the peer is there, whatever becomes of echo requests on a full line. While the session is held that says nothing: they
// may be from before.
func (m *Machine) Traffic(now time.Time) {
	if m.phase == inSession && !m.held {
		m.link.Heard(now)
	}
}

// Ended says that the data path has closed a session, because the concentrator has ended it. The frame itself
// may not have arrived here. If it was forged, the concentrator is told.
func (m *Machine) Ended(ref Ref, now time.Time) {
	if m.phase == inSession && m.ref == ref && !m.upSince.IsZero() {
		m.over(ppp.Peer, "ended by the concentrator", true, now)
	}
}

// Tick does what is due at a time.
func (m *Machine) Tick(now time.Time) {
	next := m.Next()
	if next.IsZero() || now.Before(next) {
		return
	}
	switch m.phase {
	case waiting:
		m.discover(now)
	case discovering:
		m.finder.Tick(now)
		m.afterDiscovery(now)
	case inSession:
		m.link.Tick(now)
		m.drain(now)
		m.tickScout(now)
	}
}

// Receive handles an Ethernet frame of either type of PPPoE.
func (m *Machine) Receive(b []byte, now time.Time) {
	f, err := discovery.Parse(b)
	if err != nil || f.From == m.config.MAC || m.phase == off {
		return
	}
	switch {
	case f.Ether == discovery.EtherSession:
		m.receiveSession(f, b, now)
	case f.Code == discovery.PADT:
		m.terminated(f, now)
	default:
		if m.scout.finder != nil {
			m.scout.finder.Receive(f, now)
			m.afterScout(now)
		}
		if m.finder != nil {
			m.finder.Receive(f, now)
			m.afterDiscovery(now)
		}
	}
}

// receiveSession gives a frame of our session to the link. Only the concentrator that has
// given it is listened to.
func (m *Machine) receiveSession(f discovery.Frame, b []byte, now time.Time) {
	if f.Code != discovery.Session || f.To != m.config.MAC {
		return
	}
	if m.phase == inSession && m.ref == (Ref{f.From, f.SessionID}) {
		m.note("← %s", ppp.Describe(f.Payload))
		m.link.Receive(f.Payload, now)
		m.answered(now)
		m.drain(now)
		return
	}
	if m.phase == discovering {
		if asked, ok := m.finder.Asked(); ok && asked == f.From {
			if len(m.early) < maxEarly {
				m.early = append(m.early, append([]byte{}, b...))
			}
			return
		}
	}
	m.stray(Ref{f.From, f.SessionID}, now)
}

// stray ends a session that is nobody's, which a concentrator holds from before a crash.
func (m *Machine) stray(ref Ref, now time.Time) {
	if ref.ID == 0 || m.config.Foreign != nil && m.config.Foreign(ref) {
		return
	}
	first, seen := m.strays[ref]
	if !seen {
		if m.strays == nil || len(m.strays) >= maxStrays {
			m.strays = map[Ref]time.Time{}
		}
		m.strays[ref] = now
		return
	}
	if now.Sub(first) < strayAge || now.Before(m.strayAt) {
		return
	}
	m.strayAt = now.Add(strayEvery)
	m.note("→ PADT for the unknown session 0x%04x of %s", ref.ID, ref.Peer)
	m.terminate(ref)
}

// terminated handles a PADT. It counts only from the concentrator of this session, with its
// number (RFC 2516 5.5): one that has kept an older session ends that one, not this.
func (m *Machine) terminated(f discovery.Frame, now time.Time) {
	if m.phase != inSession || m.ref != (Ref{f.From, f.SessionID}) || f.To != m.config.MAC {
		return
	}
	cause, why := m.link.Failing()
	if cause == 0 {
		cause, why = ppp.Peer, "ended by the concentrator (PADT)"
	}
	if tags, err := discovery.ParseTags(f.Payload); err == nil {
		if kind, text, bad := discovery.FindError(tags); bad {
			why += ": " + kind + " " + ppp.Printable(text)
		}
	}
	m.note("← PADT")
	m.over(cause, why, false, now)
}
