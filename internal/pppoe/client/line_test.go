package client

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/pppoe/ac"
	"weir/internal/pppoe/discovery"
	"weir/internal/pppoe/ppp"
)

var (
	ownMAC    = discovery.MAC{2, 0, 0, 0, 0, 1}
	firstMAC  = discovery.MAC{2, 0, 0, 0, 0, 0xa}
	secondMAC = discovery.MAC{2, 0, 0, 0, 0, 0xb}
)

// password is long enough not to occur by chance.
const password = "tuesday-4711-horse"

func address(s string) netip.Addr { return netip.MustParseAddr(s) }

// line is a client and concentrators on one Ethernet, in a time of its own. Frames need a
// millisecond.
type line struct {
	t       *testing.T
	now     time.Time
	client  *Machine
	servers []*ac.Server
	// toServer and toClient change what passes: they return the frames that arrive.
	toServer, toClient func(b []byte) [][]byte
	// respond is a peer written by hand, in place of servers.
	respond func(b []byte) [][]byte
	events  []Event
	seen    []discovery.Frame // all frames, in their order
	before  int               // how many they were a step ago
}

func asIs(b []byte) [][]byte { return [][]byte{b} }

func seeded(seed string) *rand.ChaCha8 {
	return rand.NewChaCha8([32]byte([]byte(fmt.Sprintf("%-32s", seed)[:32])))
}

func clientConfig() Config {
	return Config{
		Interface: 7, MAC: ownMAC, Prove: ppp.Prove{Name: "user@example", Secret: ppp.NewSecret(password)},
		V4: &ppp.V4{AskDNS: true}, V6: &ppp.V6{}, Random: seeded("client"),
	}
}

func serverConfig() ac.Config {
	return ac.Config{
		MAC: firstMAC, Name: "ac-1", MaxPayload: 1500, Random: seeded("server"),
		Ask: ppp.Ask{Methods: []ppp.Method{ppp.ByCHAP, ppp.ByPAP}, Name: "ac-1", Secret: func(name string) (ppp.Secret, bool) {
			return ppp.NewSecret(password), name == "user@example"
		}},
		Local: address("192.0.2.1"), First: address("198.51.100.10"), DNS: []netip.Addr{address("192.0.2.53"), address("192.0.2.54")},
		IPv6: true, EchoEvery: 20 * time.Second, EchoMisses: 3,
	}
}

func newLine(t *testing.T, config Config, servers ...ac.Config) *line {
	t.Helper()
	l := &line{t: t, now: time.Unix(1_700_000_000, 0), client: New(config), toServer: asIs, toClient: asIs}
	for _, s := range servers {
		l.servers = append(l.servers, ac.New(s))
	}
	l.client.Start(l.now)
	return l
}

// run lets a time pass.
func (l *line) run(d time.Duration) {
	l.t.Helper()
	for end := l.now.Add(d); l.now.Before(end); l.pass(end) {
		l.step()
	}
}

// await lets time pass until an event of a kind, at most d. It returns the event.
func (l *line) await(kind Kind, d time.Duration) Event {
	l.t.Helper()
	for end := l.now.Add(d); l.now.Before(end); l.pass(end) {
		from := len(l.events)
		l.step()
		for _, e := range l.events[from:] {
			if e.Kind == kind {
				return e
			}
		}
	}
	l.t.Fatalf("no event %d within %s:\n%s", kind, d, l.log())
	return Event{}
}

// pass lets a millisecond pass where frames were sent in the last one, else the time until
// something is due.
func (l *line) pass(end time.Time) {
	frames := len(l.seen) != l.before
	l.before = len(l.seen)
	next := end
	for _, s := range l.servers {
		if t := s.Next(); !t.IsZero() && t.Before(next) {
			next = t
		}
	}
	if t := l.client.Next(); !t.IsZero() && t.Before(next) {
		next = t
	}
	if soon := l.now.Add(time.Millisecond); frames || next.Before(soon) {
		next = soon
	}
	l.now = next
}

func (l *line) step() {
	l.client.Tick(l.now)
	out, events := l.client.Take()
	l.events = append(l.events, events...)
	for _, b := range out {
		l.note(b)
		for _, b := range l.toServer(b) {
			for _, s := range l.servers {
				s.Receive(b, l.now)
			}
			if l.respond != nil {
				l.deliver(l.respond(b))
			}
		}
	}
	for _, s := range l.servers {
		s.Tick(l.now)
		l.deliver(s.Take())
	}
}

func (l *line) deliver(frames [][]byte) {
	for _, b := range frames {
		l.note(b)
		for _, b := range l.toClient(b) {
			l.client.Receive(b, l.now)
		}
	}
}

func (l *line) note(b []byte) {
	f, err := discovery.Parse(b)
	if err != nil {
		l.t.Fatalf("a frame that is none: %v: %x", err, b)
	}
	l.seen = append(l.seen, f)
}

func (l *line) log() string {
	var lines []string
	for _, e := range l.events {
		lines = append(lines, fmt.Sprintf("%d %s", e.Kind, e.Text))
	}
	return strings.Join(lines[max(0, len(lines)-40):], "\n")
}

// count counts frames from a MAC of a code, and of a PPP protocol and code if those are not 0.
func (l *line) count(from discovery.MAC, code discovery.Code, protocol ppp.Protocol, of ppp.Code) int {
	n := 0
	for _, f := range l.seen {
		if f.From == from && f.Code == code && (protocol == 0 || isPPP(f, protocol, of)) {
			n++
		}
	}
	return n
}

func isPPP(f discovery.Frame, protocol ppp.Protocol, of ppp.Code) bool {
	p, body, err := ppp.ParseFrame(f.Payload)
	if err != nil || p != protocol {
		return false
	}
	packet, err := ppp.ParsePacket(body)
	return err == nil && packet.Code == of
}

// loses returns what drops the first n frames that a test is true for.
func loses(n int, drop func(f discovery.Frame) bool) func([]byte) [][]byte {
	return func(b []byte) [][]byte {
		f, err := discovery.Parse(b)
		if err == nil && n > 0 && drop(f) {
			n--
			return nil
		}
		return asIs(b)
	}
}

func only(code discovery.Code) func(discovery.Frame) bool {
	return func(f discovery.Frame) bool { return f.Code == code }
}

func onlyPPP(protocol ppp.Protocol, code ppp.Code) func(discovery.Frame) bool {
	return func(f discovery.Frame) bool { return f.Code == discovery.Session && isPPP(f, protocol, code) }
}

// checkSession compares a session with what serverConfig gives the first client.
func checkSession(t *testing.T, s Session) {
	t.Helper()
	if s.Peer != firstMAC || s.ID == 0 || s.Interface != 7 || s.Local != ownMAC || s.AC != "ac-1" ||
		s.IPv4 != address("198.51.100.10") || s.PeerIPv4 != address("192.0.2.1") ||
		!slices.Equal(s.DNS, []netip.Addr{address("192.0.2.53"), address("192.0.2.54")}) {
		t.Errorf("the session is %+v", s)
	}
}
