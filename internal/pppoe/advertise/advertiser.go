package advertise

import (
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/mdlayher/ndp"
)

// Bits is the length of every prefix that is announced: hosts make addresses from no other.
const Bits = 64

// Prefix is one that hosts of the link make addresses from.
type Prefix struct {
	Prefix netip.Prefix
	// Preferred and Valid are until when; zero: for ever. In the past: it is withdrawn.
	Preferred, Valid time.Time
}

// State is what is announced.
type State struct {
	// Router says that the way to the provider is open. Without it hosts have no default route here,
	// and do not try IPv6 in vain.
	Router   bool
	Prefixes []Prefix
	DNS      []netip.Addr
	GoneDNS  []netip.Addr // name servers that are withdrawn
}

// Times that hosts are told at most (RFC 4861 6.2.1, RFC 9096 3.4). They are short, so that hosts
// give up what a provider has changed while nobody here could say so.
const (
	routerLifetime = 30 * time.Minute
	mostPreferred  = 45 * time.Minute
	// MostValid is the longest time for which hosts know of a prefix without a new advertisement.
	MostValid = 90 * time.Minute
)

// Times between advertisements (RFC 4861 6.2.1, 6.2.4, 10).
const (
	leastInterval = 200 * time.Second
	mostInterval  = 600 * time.Second
	// news is how often a change is told, newsInterval the time between.
	news         = 3
	newsInterval = 4 * time.Second
	// between is the least time between two advertisements to all.
	between = 3 * time.Second
)

// mostAnswers is how many solicitations of hosts are answered to them alone, between two
// advertisements to all; the next one is answered to all.
const mostAnswers = 64

// hopLimit is what hosts are told to begin with.
const hopLimit = 64

var (
	allNodes   = netip.MustParseAddr("ff02::1")
	allRouters = netip.MustParseAddr("ff02::2")
)

// Out is a message, and to whom it goes.
type Out struct {
	To      netip.Addr
	Message *ndp.RouterAdvertisement
}

// Advertiser decides what is said to whom, and when. It is not safe for concurrent use.
type Advertiser struct {
	mac      net.HardwareAddr
	random   io.Reader
	state    State
	told     bool      // something was announced
	last     time.Time // of the last one to all
	deadline time.Time // of the next one to all; zero: there is nothing to say
	news     int       // how often the state is still to be repeated soon
	answers  int
	out      []Out
}

// New makes an advertiser of a link, whose interface has an Ethernet address; nil: none.
func New(mac net.HardwareAddr, random io.Reader) *Advertiser {
	return &Advertiser{mac: mac, random: random}
}

// Take returns the messages to send since the last call.
func (a *Advertiser) Take() []Out {
	out := a.out
	a.out = nil
	return out
}

// Next returns when Tick has to be called; zero: it need not.
func (a *Advertiser) Next() time.Time { return a.deadline }

// Set says what is to be announced from now on.
func (a *Advertiser) Set(s State, now time.Time) {
	if a.told && equal(&a.state, &s) {
		return
	}
	a.state = s
	if !a.told && len(s.Prefixes) == 0 {
		return // there is nothing yet: another router may be on the link
	}
	a.told, a.news = true, news
	a.soon(now)
}

func equal(a, b *State) bool {
	return a.Router == b.Router && slices.Equal(a.DNS, b.DNS) && slices.Equal(a.GoneDNS, b.GoneDNS) &&
		slices.EqualFunc(a.Prefixes, b.Prefixes, func(a, b Prefix) bool {
			return a.Prefix == b.Prefix && a.Preferred.Equal(b.Preferred) && a.Valid.Equal(b.Valid)
		})
}

// soon has all told as soon as it is allowed.
func (a *Advertiser) soon(now time.Time) {
	at := now
	if earliest := a.last.Add(between); !a.last.IsZero() && earliest.After(at) {
		at = earliest
	}
	if a.deadline.IsZero() || at.Before(a.deadline) {
		a.deadline = at
	}
	a.Tick(now)
}

// Solicited answers a host that asks. It has an address, or none yet: then all are told.
func (a *Advertiser) Solicited(from netip.Addr, now time.Time) {
	switch {
	case !a.told:
	case from.IsLinkLocalUnicast() && a.answers < mostAnswers:
		a.answers++
		a.out = append(a.out, Out{from, a.Message(now)})
	default:
		a.soon(now)
	}
}

// Tick does what is due at a time.
func (a *Advertiser) Tick(now time.Time) {
	if a.deadline.IsZero() || now.Before(a.deadline) {
		return
	}
	a.out = append(a.out, Out{allNodes, a.Message(now)})
	a.last, a.answers = now, 0
	if a.news > 0 {
		a.news--
	}
	if a.news > 0 {
		a.deadline = now.Add(newsInterval)
		return
	}
	if !a.state.Router && len(a.state.Prefixes) == 0 {
		a.deadline, a.told = time.Time{}, false
		return
	}
	a.deadline = now.Add(leastInterval + a.share(mostInterval-leastInterval))
}

// share returns a random part of d.
func (a *Advertiser) share(d time.Duration) time.Duration {
	var b [4]byte
	if _, err := io.ReadFull(a.random, b[:]); err != nil {
		panic("the source of random numbers has ended: " + err.Error())
	}
	return time.Duration(float64(d) * float64(binary.BigEndian.Uint32(b[:])) / (1 << 32))
}

// Message is what is announced at a time.
func (a *Advertiser) Message(now time.Time) *ndp.RouterAdvertisement {
	m := &ndp.RouterAdvertisement{CurrentHopLimit: hopLimit}
	if a.state.Router {
		m.RouterLifetime = routerLifetime
	}
	if len(a.mac) == 6 {
		m.Options = append(m.Options, &ndp.LinkLayerAddress{Direction: ndp.Source, Addr: a.mac})
	}
	left := time.Duration(0) // for which anything is valid
	for _, p := range a.state.Prefixes {
		valid := remains(p.Valid, now, MostValid)
		left = max(left, valid)
		m.Options = append(m.Options, &ndp.PrefixInformation{
			PrefixLength: Bits, OnLink: true, AutonomousAddressConfiguration: true, Prefix: p.Prefix.Addr(),
			ValidLifetime: valid, PreferredLifetime: min(valid, remains(p.Preferred, now, mostPreferred)),
		})
	}
	for _, dns := range []struct {
		servers  []netip.Addr
		lifetime time.Duration
	}{{a.state.DNS, min(left, routerLifetime)}, {a.state.GoneDNS, 0}} {
		if len(dns.servers) > 0 {
			m.Options = append(m.Options, &ndp.RecursiveDNSServer{Lifetime: dns.lifetime, Servers: dns.servers})
		}
	}
	return m
}

// remains is the time until t in whole seconds, at most so much.
func remains(t, now time.Time, most time.Duration) time.Duration {
	if t.IsZero() {
		return most
	}
	return min(max(t.Sub(now), 0), most).Truncate(time.Second)
}
