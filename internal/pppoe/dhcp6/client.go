package dhcp6

import (
	"encoding/binary"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv6"

	"weir/internal/pppoe/discovery"
)

// Config is what a client asks for.
type Config struct {
	DUID []byte // who it is; the same for ever, or the provider gives another prefix
	IAID [4]byte
	// Length asks for a prefix of this length; 0: the server chooses.
	Length uint8
	// Before is a prefix of an earlier session, to ask for again; not valid: there is none.
	Before netip.Prefix
	// Lease is one that another process has left; nil: there is none.
	Lease  *Lease
	Random io.Reader // crypto/rand.Reader, but in tests
}

// Kind says what an event is.
type Kind uint8

// The events.
const (
	Changed Kind = iota + 1 // the lease is another one, or is extended
	Note                    // a line for a log
)

// Event is something that happened.
type Event struct {
	Kind  Kind
	Lease Lease  // of Changed; without prefixes: there is none any more
	Text  string // of Note: printable
}

type phase uint8

const (
	off phase = iota // the link is down
	soliciting
	requesting
	bound
	renewing
	rebinding
	pausing // before it solicits again
)

// Times of RFC 8415 7.6.
const (
	solicitFirst = time.Second
	solicitMost  = time.Hour
	requestFirst = time.Second
	requestMost  = 30 * time.Second
	requestTries = 10
	renewFirst   = 10 * time.Second
	renewMost    = 10 * time.Minute
	// soonest is the least time between a lease and its renewal, whatever the server says.
	soonest = 10 * time.Second
	// pauseFirst is how long a client waits after a refusal; twice as long after each further one.
	pauseFirst = 2 * time.Second
	pauseMost  = 10 * time.Minute
	// unanswered is how many Solicits with a wish stay without an answer until the wish is left out:
	// some servers do not answer them.
	unanswered = 3
)

// mostOffers is how many servers' offers are looked at.
const mostOffers = 8

// Client asks for prefixes and keeps them. It is not safe for concurrent use.
type Client struct {
	config Config
	phase  phase
	lease  Lease
	offers []answer // sorted: the best first
	plain  bool     // no wish in the next Solicit
	wished bool     // the last Solicit had one, unless there is none at all

	id       uint32 // of the exchange
	since    time.Time
	deadline time.Time // when the message is sent again, or the phase ends
	timeout  time.Duration
	tries    int
	solMax   time.Duration
	pause    time.Duration

	out    [][]byte
	events []Event
}

// New makes a client that does nothing yet.
func New(config Config) *Client {
	c := &Client{config: config, solMax: solicitMost, pause: pauseFirst}
	if config.Lease != nil {
		c.lease = *config.Lease
	}
	return c
}

// IAID returns Config.IAID.
func (c *Client) IAID() [4]byte { return c.config.IAID }

// Identify sets Config.DUID, before the link is up for the first time.
func (c *Client) Identify(duid []byte) { c.config.DUID = duid }

// Take returns the messages to send and the events since the last call.
func (c *Client) Take() (messages [][]byte, events []Event) {
	messages, events = c.out, c.events
	c.out, c.events = nil, nil
	return messages, events
}

// Lease returns what there is.
func (c *Client) Lease() Lease { return c.lease }

// Next returns when Tick has to be called; zero: it need not.
func (c *Client) Next() time.Time {
	next := c.lease.next()
	switch c.phase {
	case off:
		return next
	case bound:
		return sooner(next, sooner(c.lease.Renew, c.lease.Rebind))
	case renewing:
		return sooner(next, sooner(c.deadline, c.lease.Rebind))
	}
	return sooner(next, c.deadline)
}

// Up says that the link carries IPv6. Same says that it is the session in which the lease was
// made: it goes on. In another session the provider is asked anew, as it may not know the lease
// any more, and then would not answer a Renew at all.
func (c *Client) Up(same bool, now time.Time) {
	c.expire(now)
	if same && len(c.lease.Prefixes) > 0 {
		c.phase = bound
		c.Tick(now)
		return
	}
	c.pause, c.plain = pauseFirst, false
	c.solicit(now)
}

// Down says that the link carries no IPv6 any more. The lease stays until it ends.
func (c *Client) Down() { c.phase = off }

// Tick does what is due at a time.
func (c *Client) Tick(now time.Time) {
	c.expire(now)
	switch {
	case c.phase == bound && over(c.lease.Rebind, now), c.phase == renewing && over(c.lease.Rebind, now):
		c.ask(rebinding, renewFirst, now)
	case c.phase == bound && over(c.lease.Renew, now):
		c.ask(renewing, renewFirst, now)
	case c.phase == off, c.phase == bound, !over(c.deadline, now):
	case c.phase == pausing:
		c.solicit(now)
	case c.phase == soliciting && len(c.offers) > 0:
		c.ask(requesting, requestFirst, now)
	case c.phase == requesting && c.tries == requestTries:
		c.refused("no answer to the Request", now)
	default:
		c.send(now)
	}
}

// expire takes away what is not valid any more.
func (c *Client) expire(now time.Time) {
	if !c.lease.expire(now) {
		return
	}
	c.note("a prefix is not valid any more: the provider has not extended it")
	c.events = append(c.events, Event{Kind: Changed, Lease: c.lease})
	if len(c.lease.Prefixes) == 0 && (c.phase == bound || c.phase == renewing || c.phase == rebinding) {
		c.solicit(now)
	}
}

func (c *Client) solicit(now time.Time) {
	c.offers = nil
	c.ask(soliciting, solicitFirst, now)
}

// ask begins an exchange.
func (c *Client) ask(p phase, first time.Duration, now time.Time) {
	c.phase, c.since, c.timeout, c.tries = p, now, first, 0
	c.id = binary.BigEndian.Uint32(append([]byte{0}, c.random(3)...))
	c.send(now)
}

// send sends the message of the phase, for the first time or once more (RFC 8415 15).
func (c *Client) send(now time.Time) {
	var (
		kind     dhcpv6.MessageType
		server   []byte
		most     time.Duration
		prefixes []netip.Prefix
	)
	switch c.phase {
	default:
		kind, most, prefixes = dhcpv6.MessageTypeSolicit, c.solMax, c.wish()
	case requesting:
		kind, server, most, prefixes = dhcpv6.MessageTypeRequest, c.offers[0].server, requestMost, c.offers[0].prefixes()
	case renewing:
		kind, server, most, prefixes = dhcpv6.MessageTypeRenew, c.lease.Server, renewMost, c.lease.prefixes()
	case rebinding:
		kind, most, prefixes = dhcpv6.MessageTypeRebind, renewMost, c.lease.prefixes()
	}
	if c.tries == 0 || c.tries&(c.tries-1) == 0 { // the log need not have them all
		c.note("→ %s%s", kind, list(prefixes))
	}
	c.out = append(c.out, c.write(kind, server, prefixes, now))
	if c.tries > 0 {
		c.timeout = min(2*c.timeout, most)
	}
	c.tries++
	wait := discovery.Jitter(c.config.Random, c.timeout, 10)
	if c.phase == soliciting && c.tries == 1 {
		wait = max(wait, c.timeout) // RFC 8415 18.2.1
	}
	c.deadline = now.Add(wait)
}

// wish is what a Solicit asks for. A length without a prefix upsets some servers; so there is none
// unless the configuration has one.
func (c *Client) wish() []netip.Prefix {
	if c.tries == unanswered {
		c.plain = true
	}
	c.wished = !c.plain
	before := c.config.Before
	if p, ok := c.lease.longest(c.since); ok {
		before = p.Prefix
	}
	length := int(c.config.Length)
	switch {
	case c.plain:
		return nil
	case before.IsValid() && (length == 0 || length == before.Bits()):
		return []netip.Prefix{before}
	case length != 0:
		return []netip.Prefix{netip.PrefixFrom(netip.IPv6Unspecified(), length)}
	}
	return nil
}

func (a *answer) prefixes() (all []netip.Prefix) {
	for _, g := range a.granted {
		if g.valid > 0 {
			all = append(all, g.prefix)
		}
	}
	return all
}

func (l *Lease) prefixes() (all []netip.Prefix) {
	for _, p := range l.Prefixes {
		all = append(all, p.Prefix)
	}
	return all
}

func list(prefixes []netip.Prefix) (text string) {
	for _, p := range prefixes {
		text += " " + p.String()
	}
	return text
}

// Receive handles a message. What is not an answer to the last one of ours is left alone; so is a
// Reconfigure, which nobody was told that we would take (RFC 8415 18.2.11).
func (c *Client) Receive(b []byte, now time.Time) {
	m, err := dhcpv6.MessageFromBytes(b)
	if err != nil || c.phase == off {
		return
	}
	id := m.TransactionID
	if m.MessageType == dhcpv6.MessageTypeReconfigure {
		c.note("← Reconfigure: not followed, as it is not authenticated")
		return
	}
	if uint32(id[0])<<16|uint32(id[1])<<8|uint32(id[2]) != c.id {
		return
	}
	a, err := c.read(m)
	if err != nil {
		c.note("← %s: %v", m.MessageType, err)
		return
	}
	switch {
	case m.MessageType == dhcpv6.MessageTypeAdvertise && c.phase == soliciting:
		c.offered(a, now)
	case m.MessageType == dhcpv6.MessageTypeReply && c.phase == requesting:
		c.replied(a, now)
	case m.MessageType == dhcpv6.MessageTypeReply && (c.phase == renewing || c.phase == rebinding):
		c.extended(a, now)
	}
}

// offered takes an Advertise. The others' are waited for during the first timeout.
func (c *Client) offered(a answer, now time.Time) {
	if a.solMaxRT != 0 {
		c.solMax = a.solMaxRT
	}
	if !a.usable() {
		c.note("← Advertise: %s", a.why())
		c.plain = c.wished // the wish may be what the server minds, or that there is none
		return
	}
	c.note("← Advertise%s", list(a.prefixes()))
	if len(c.offers) == mostOffers || slices.ContainsFunc(c.offers, func(o answer) bool { return string(o.server) == string(a.server) }) {
		return
	}
	c.offers = append(c.offers, a)
	slices.SortStableFunc(c.offers, func(a, b answer) int { return int(b.preference) - int(a.preference) })
	if a.preference == 255 || c.tries > 1 {
		c.ask(requesting, requestFirst, now)
	}
}

// replied takes the Reply to a Request.
func (c *Client) replied(a answer, now time.Time) {
	if !a.usable() {
		c.refused(a.why(), now)
		return
	}
	c.pause = pauseFirst
	c.take(&a, nil, now)
}

// refused goes on with the next offer; without one it begins anew after a pause.
func (c *Client) refused(why string, now time.Time) {
	c.note("no prefix of this server: %s", why)
	c.offers = c.offers[1:]
	if len(c.offers) > 0 {
		c.ask(requesting, requestFirst, now)
		return
	}
	c.plain = !c.plain
	c.startPause(now)
}

func (c *Client) startPause(now time.Time) {
	c.phase, c.deadline = pausing, now.Add(discovery.Jitter(c.config.Random, c.pause, 10))
	c.pause = min(2*c.pause, pauseMost)
}

// extended takes the Reply to a Renew or Rebind.
func (c *Client) extended(a answer, now time.Time) {
	if !a.has && a.refusal == nil || a.refusal == nil && len(a.granted) == 0 {
		c.note("← Reply without our prefix: asked again")
		return
	}
	if a.noBinding || a.refusal != nil && len(a.granted) == 0 {
		// What we have may be routed no more. It stays until there is another, or its time is over.
		c.note("← Reply: %s", a.why())
		if !a.noBinding { // who knows nothing of the prefix does not mind the wish for it
			c.plain = !c.plain
		}
		c.startPause(now)
		return
	}
	kept := slices.DeleteFunc(slices.Clone(c.lease.Prefixes), func(p Prefix) bool {
		return slices.ContainsFunc(a.granted, func(g granted) bool { return g.prefix == p.Prefix })
	})
	c.take(&a, kept, now)
}

// take makes a lease of an answer, with older prefixes that it does not name.
func (c *Client) take(a *answer, kept []Prefix, now time.Time) {
	l := Lease{Prefixes: kept, DNS: a.dns, Server: a.server}
	var shortest time.Duration
	for _, g := range a.granted {
		if g.valid == 0 || g.prefix.Bits() > longestPrefix {
			continue
		}
		l.Prefixes = append(l.Prefixes, Prefix{g.prefix, until(now, g.preferred), until(now, g.valid)})
		life := g.preferred
		if life == 0 {
			life = g.valid
		}
		if shortest == 0 || life < shortest {
			shortest = life
		}
	}
	l.Renew, l.Rebind = times(a.t1, a.t2, shortest, now)
	c.lease, c.phase, c.offers = l, bound, nil
	c.note("← Reply%s", list(l.prefixes()))
	c.events = append(c.events, Event{Kind: Changed, Lease: l})
	if len(l.Prefixes) == 0 {
		c.note("the provider has taken the prefix away")
		c.plain = !c.plain
		c.startPause(now)
	}
}

// times are when a lease is renewed and rebound. A server may leave it to the client (RFC 8415
// 14.2), or say what comes too late. If it says only one of them, the other follows from it, or the Rebind
// could come before the Renew.
func times(t1, t2, shortest time.Duration, now time.Time) (renew, rebind time.Time) {
	if t1 >= shortest {
		t1 = 0
	}
	if t2 > shortest {
		t2 = 0
	}
	switch { // divided first: a product may overflow
	case t1 == 0 && t2 == 0 && shortest >= forever:
		t1, t2 = forever, forever
	case t1 == 0 && t2 == 0:
		t1, t2 = shortest/2, shortest/5*4
	case t1 == 0:
		t1 = t2 / 8 * 5
	case t2 == 0:
		t2 = min(t1/5*8, shortest)
	}
	t1 = max(t1, soonest)
	return until(now, t1), until(now, max(t2, t1))
}

func (c *Client) random(n int) []byte {
	b := make([]byte, n)
	if _, err := io.ReadFull(c.config.Random, b); err != nil {
		panic("the source of random numbers has ended: " + err.Error())
	}
	return b
}

func (c *Client) note(format string, args ...any) {
	c.events = append(c.events, Event{Kind: Note, Text: fmt.Sprintf(format, args...)})
}
