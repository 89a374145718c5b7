package discovery

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"time"

	"weir/internal/pppoe/ppp"
)

// Config is what a client looks for.
type Config struct {
	MAC MAC // of the interface
	// Service is the Service-Name; "": any.
	Service string
	// AC is the AC-Name that the concentrator has to have; "": any.
	AC string
	// HostUniq is the Host-Uniq tag, where a provider demands a certain one; empty: a random
	// one.
	HostUniq []byte
	// MaxPayload is the largest PPP packet to agree on, in bytes. More than 1,492 is asked
	// for by RFC 4638.
	MaxPayload uint16
	// Random gives the Host-Uniq and the jitter.
	Random io.Reader
}

// Times of repetition. Each wait is twice as long as the one before (RFC 2516 8), with a
// tenth more or less, so that the clients of a concentrator that comes back do not speak at
// once.
const (
	firstPADI = time.Second
	lastPADI  = time.Minute
	firstPADR = time.Second
	maxPADR   = 4 // requests to one concentrator
	maxOffers = 8 // offers that are kept
)

// ordinaryPayload is the largest PPP packet without RFC 4638.
const ordinaryPayload = ppp.MaxMRU

// offer is what a PADO offers.
type offer struct {
	mac     MAC
	name    string
	service []byte
	cookie  []byte // nil: none
	relay   []byte // nil: none
	payload uint16
}

// Result is the session that was given.
type Result struct {
	Peer    MAC
	Session uint16 // never 0
	AC      string // the concentrator's name, printable
	Payload uint16 // the largest PPP packet, in bytes: 1,492, or as asked for
}

// Client finds a session. It is not safe for concurrent use.
type Client struct {
	config   Config
	uniq     []byte
	offers   []offer // the one that is asked is the first
	asking   bool
	tries    int
	padi     time.Duration // until the next PADI
	padr     time.Duration // until the next PADR
	deadline time.Time
	result   *Result
	out      []Frame
	notes    []string
}

// Start begins with a PADI.
func Start(config Config, now time.Time) *Client {
	c := &Client{config: config, uniq: config.HostUniq}
	if len(c.uniq) == 0 {
		c.uniq = c.random(8)
	}
	c.padi = firstPADI
	c.sendPADI(now)
	return c
}

func (c *Client) random(n int) []byte {
	b := make([]byte, n)
	if _, err := io.ReadFull(c.config.Random, b); err != nil {
		panic("the source of random numbers has ended: " + err.Error())
	}
	return b
}

// Take returns the frames to send and remarks for a log since the last call.
func (c *Client) Take() (frames []Frame, notes []string) {
	frames, notes = c.out, c.notes
	c.out, c.notes = nil, nil
	return frames, notes
}

// Next returns when Tick has to be called.
func (c *Client) Next() time.Time { return c.deadline }

// Asked returns the concentrator that is asked for a session at the moment, or has given it.
func (c *Client) Asked() (mac MAC, ok bool) {
	if !c.asking {
		return MAC{}, false
	}
	return c.offers[0].mac, true
}

// Result returns the session; nil: there is none yet.
func (c *Client) Result() *Result { return c.result }

func (c *Client) sendPADI(now time.Time) {
	tags := c.tags([]byte(c.config.Service), c.config.MaxPayload > ordinaryPayload)
	c.send(Broadcast, PADI, tags)
	c.waitPADI(now)
}

// waitPADI sets the timer for the next PADI, and the one after that to twice the time.
func (c *Client) waitPADI(now time.Time) {
	c.deadline = now.Add(Jitter(c.config.Random, c.padi, 10))
	c.padi = min(2*c.padi, lastPADI)
}

// Jitter returns a time of up to some percent more or less than d.
func Jitter(random io.Reader, d time.Duration, percent int64) time.Duration {
	var b [4]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		panic("the source of random numbers has ended: " + err.Error())
	}
	share := float64(binary.BigEndian.Uint32(b[:]))/(1<<31) - 1 // from -1 to 1
	return d + time.Duration(share*float64(d)*float64(percent)/100)
}

// tags are those of every packet of ours.
func (c *Client) tags(service []byte, payload bool) []Tag {
	tags := []Tag{{ServiceName, service}, {HostUniq, c.uniq}}
	if payload {
		tags = append(tags, Tag{MaxPayload, binary.BigEndian.AppendUint16(nil, c.config.MaxPayload)})
	}
	return tags
}

func (c *Client) send(to MAC, code Code, tags []Tag) {
	c.out = append(c.out, Frame{To: to, From: c.config.MAC, Ether: EtherDiscovery, Code: code, Payload: AppendTags(nil, tags)})
}

func (c *Client) note(format string, args ...any) {
	c.notes = append(c.notes, fmt.Sprintf(format, args...))
}

// Tick repeats what is not answered.
func (c *Client) Tick(now time.Time) {
	switch {
	case c.result != nil || now.Before(c.deadline):
	case !c.asking:
		c.sendPADI(now)
	case c.tries >= maxPADR:
		c.note("no answer of %s", c.offers[0].mac)
		c.nextOffer(now)
	default:
		c.sendPADR(now)
	}
}

// nextOffer asks the concentrator that offered next; if there is none, all anew.
func (c *Client) nextOffer(now time.Time) {
	c.offers = c.offers[1:]
	if len(c.offers) == 0 {
		c.asking = false
		c.waitPADI(now)
		return
	}
	c.ask(now)
}

func (c *Client) ask(now time.Time) {
	c.asking, c.tries, c.padr = true, 0, firstPADR
	c.sendPADR(now)
}

// sendPADR asks the first offer's concentrator for a session, with its cookie and the
// relay's identifier as they came (RFC 2516 5.3, appendix A).
func (c *Client) sendPADR(now time.Time) {
	o := c.offers[0]
	tags := c.tags(o.service, o.payload > ordinaryPayload)
	if o.cookie != nil {
		tags = append(tags, Tag{ACCookie, o.cookie})
	}
	if o.relay != nil {
		tags = append(tags, Tag{RelaySessionID, o.relay})
	}
	c.send(o.mac, PADR, tags)
	c.tries++
	c.deadline = now.Add(Jitter(c.config.Random, c.padr, 10))
	c.padr *= 2
}

// Receive handles a discovery frame.
func (c *Client) Receive(f Frame, now time.Time) {
	if f.Ether != EtherDiscovery || f.To != c.config.MAC || f.Code != PADO && f.Code != PADS {
		return
	}
	tags, err := ParseTags(f.Payload)
	if err != nil {
		c.note("%s from %s: %v", f.Code, f.From, err)
		return
	}
	if uniq, _ := Find(tags, HostUniq); !bytes.Equal(uniq, c.uniq) {
		return // another client's on this link
	}
	if f.Code == PADO {
		c.offered(f, tags, now)
		return
	}
	c.given(f, tags, now)
}

// offered takes a PADO (RFC 2516 5.2) if it is what is looked for.
func (c *Client) offered(f Frame, tags []Tag, now time.Time) {
	if f.SessionID != 0 || c.result != nil || f.From == Broadcast || f.From[0]&1 != 0 {
		return
	}
	name, _ := Find(tags, ACName)
	if why := c.unfit(name, tags); why != "" {
		c.note("PADO from %s %q is not taken: %s", f.From, ppp.Printable(name), why)
		return
	}
	for _, o := range c.offers {
		if o.mac == f.From {
			return
		}
	}
	if len(c.offers) == maxOffers {
		return
	}
	c.note("PADO from %s %q", f.From, ppp.Printable(name))
	c.offers = append(c.offers, c.makeOffer(f.From, name, tags))
	if !c.asking {
		c.ask(now)
	}
}

// unfit says why a PADO is not taken.
func (c *Client) unfit(name []byte, tags []Tag) string {
	if kind, text, bad := FindError(tags); bad {
		return kind + " " + ppp.Printable(text)
	}
	if c.config.AC != "" && string(name) != c.config.AC {
		return "another name"
	}
	for _, t := range tags {
		if t.Type == ServiceName && string(t.Value) == c.config.Service {
			return ""
		}
	}
	if c.config.Service != "" {
		return "another service"
	}
	return "" // any service was asked for
}

func (c *Client) makeOffer(from MAC, name []byte, tags []Tag) offer {
	o := offer{mac: from, name: ppp.Printable(name), service: []byte(c.config.Service), payload: c.agreed(tags)}
	if cookie, ok := Find(tags, ACCookie); ok {
		o.cookie = append([]byte{}, cookie...)
	}
	if relay, ok := Find(tags, RelaySessionID); ok {
		o.relay = append([]byte{}, relay...)
	}
	return o
}

// agreed returns the largest PPP packet by the concentrator's PPP-Max-Payload. It counts only
// if it is what was asked for (RFC 4638 3).
func (c *Client) agreed(tags []Tag) uint16 {
	value, ok := Find(tags, MaxPayload)
	if ok && len(value) == 2 && c.config.MaxPayload > ordinaryPayload && binary.BigEndian.Uint16(value) == c.config.MaxPayload {
		return c.config.MaxPayload
	}
	return min(c.config.MaxPayload, ordinaryPayload)
}

// given takes a PADS (RFC 2516 5.4).
func (c *Client) given(f Frame, tags []Tag, now time.Time) {
	if !c.asking || f.From != c.offers[0].mac {
		return
	}
	if c.result != nil {
		// The answer to a PADR that was sent twice: a second session is not wanted.
		if f.SessionID != 0 && f.SessionID != c.result.Session {
			c.note("a second session 0x%04x from %s is ended", f.SessionID, f.From)
			c.out = append(c.out, Terminate(f.From, c.config.MAC, f.SessionID))
		}
		return
	}
	if kind, text, bad := FindError(tags); bad || f.SessionID == 0 {
		c.note("PADS from %s gives no session: %s %s", f.From, kind, ppp.Printable(text))
		c.nextOffer(now)
		return
	}
	c.deadline = time.Time{}
	c.result = &Result{Peer: f.From, Session: f.SessionID, AC: c.offers[0].name, Payload: min(c.offers[0].payload, c.agreed(tags))}
	c.note("PADS from %s: session 0x%04x, packets of %d bytes", f.From, f.SessionID, c.result.Payload)
}
