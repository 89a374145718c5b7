package ac

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"io"
	"net/netip"
	"slices"
	"time"

	"weir/internal/pppoe/discovery"
	"weir/internal/pppoe/ppp"
)

// Config is what a concentrator offers.
type Config struct {
	MAC      discovery.MAC // of the interface
	Name     string        // AC-Name
	Services []string      // Service-Names besides the empty one
	// MaxPayload is the largest PPP packet by RFC 4638, in bytes; 0: 1,492, and the tag is not
	// answered.
	MaxPayload uint16
	Ask        ppp.Ask
	// Local is the concentrator's IPv4 address, First the first client's; the next clients
	// have the following ones. Invalid: no IPv4.
	Local, First netip.Addr
	DNS          []netip.Addr
	IPv6         bool
	EchoEvery    time.Duration // 0: none
	EchoMisses   int
	Restart      time.Duration // 0: 3 s
	// OnePerMAC refuses a second session of one Ethernet address, as many providers do.
	OnePerMAC bool
	// EndUnknown answers frames of sessions that there are not by a PADT.
	EndUnknown bool
	Faults     Faults
	Random     io.Reader
}

// Info is one session.
type Info struct {
	ID   uint16
	Peer discovery.MAC
	Name string // that was proved; "": none
	// IPv4 is the client's address, ID6 its interface identifier; invalid and 0: not up.
	IPv4 netip.Addr
	ID6  uint64
	MTU  uint16 // largest packet to the client, in bytes
}

type session struct {
	id     uint16
	peer   discovery.MAC
	uniq   string
	answer discovery.Frame // the PADS
	slot   uint32          // of the addresses
	link   *ppp.Link
}

// Server is a concentrator. It is not safe for concurrent use.
type Server struct {
	config   Config
	key      []byte // of the cookies
	sessions map[uint16]*session
	lastID   uint16
	out      [][]byte
	ended    []string // why sessions have ended

	now    time.Time // of the last call
	late   []late    // by time
	echoes int       // answers to the clients' echo requests
}

// New makes a concentrator without sessions.
func New(config Config) *Server {
	seed := make([]byte, 34)
	if _, err := io.ReadFull(config.Random, seed); err != nil {
		panic("the source of random numbers has ended: " + err.Error())
	}
	return &Server{config: config, key: seed[:32], lastID: binary.BigEndian.Uint16(seed[32:]), sessions: map[uint16]*session{}}
}

// Take returns the Ethernet frames to send since the last call.
func (s *Server) Take() [][]byte {
	out := append(s.due(), s.spoil(s.out)...)
	s.out = nil
	return out
}

// Ended returns why sessions have ended since the last call.
func (s *Server) Ended() []string {
	ended := s.ended
	s.ended = nil
	return ended
}

// Sessions returns the sessions by their number.
func (s *Server) Sessions() []Info {
	var all []Info
	for _, one := range s.sessions {
		info := Info{ID: one.id, Peer: one.peer, Name: one.link.PeerName(), MTU: one.link.MTU()}
		_, info.IPv4, _ = one.link.Addresses()
		_, info.ID6 = one.link.InterfaceIDs()
		all = append(all, info)
	}
	slices.SortFunc(all, func(a, b Info) int { return int(a.ID) - int(b.ID) })
	return all
}

// Next returns when Tick has to be called; zero: it need not.
func (s *Server) Next() time.Time {
	var next time.Time
	if len(s.late) > 0 {
		next = s.late[0].at
	}
	for _, one := range s.sessions {
		if t := one.link.Next(); !t.IsZero() && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	return next
}

// Tick does what is due at a time.
func (s *Server) Tick(now time.Time) {
	s.now = now
	for _, one := range s.sessions {
		if t := one.link.Next(); !t.IsZero() && !now.Before(t) {
			one.link.Tick(now)
			s.drain(one)
		}
	}
}

// Terminate ends a session by LCP, or at once by a PADT alone.
func (s *Server) Terminate(id uint16, atOnce bool, now time.Time) {
	one := s.sessions[id]
	if one == nil {
		return
	}
	if atOnce {
		s.end(one, "ended here", true)
		return
	}
	one.link.Close(now)
	s.drain(one)
}

// Challenge asks the client of a session once more who it is.
func (s *Server) Challenge(id uint16, now time.Time) {
	if one := s.sessions[id]; one != nil {
		one.link.Challenge(now)
		s.drain(one)
	}
}

// Receive handles an Ethernet frame of either type of PPPoE.
func (s *Server) Receive(b []byte, now time.Time) {
	s.now = now
	f, err := discovery.Parse(b)
	if err != nil || f.From == s.config.MAC || f.To != s.config.MAC && (f.To != discovery.Broadcast || f.Code != discovery.PADI) {
		return
	}
	if f.Ether == discovery.EtherSession {
		s.receiveSession(f, now)
		return
	}
	tags, err := discovery.ParseTags(f.Payload)
	if err != nil {
		return
	}
	switch f.Code {
	case discovery.PADI:
		s.offer(f, tags)
	case discovery.PADR:
		s.requested(f, tags, now)
	case discovery.PADT:
		if one := s.sessions[f.SessionID]; one != nil && one.peer == f.From {
			s.end(one, "PADT", false)
		}
	}
}

func (s *Server) receiveSession(f discovery.Frame, now time.Time) {
	one := s.sessions[f.SessionID]
	if f.Code != discovery.Session {
		return
	}
	if one == nil || one.peer != f.From {
		if s.config.EndUnknown {
			s.out = append(s.out, discovery.Terminate(f.From, s.config.MAC, f.SessionID).Append(nil))
		}
		return
	}
	if answer, ok := s.refusal(f.Payload); ok {
		s.out = append(s.out, discovery.Frame{To: one.peer, From: s.config.MAC, Ether: discovery.EtherSession, SessionID: one.id, Payload: answer}.Append(nil))
		return
	}
	one.link.Receive(f.Payload, now)
	s.drain(one)
}

// offer answers a PADI. Without a service that is offered here there is no answer (RFC 2516
// 5.2).
func (s *Server) offer(f discovery.Frame, tags []discovery.Tag) {
	service, ok := discovery.Find(tags, discovery.ServiceName)
	if !ok || !s.offers(string(service)) {
		return
	}
	answer := []discovery.Tag{{Type: discovery.ACName, Value: []byte(s.config.Name)}, {Type: discovery.ServiceName, Value: service}}
	for _, other := range s.config.Services {
		if other != string(service) {
			answer = append(answer, discovery.Tag{Type: discovery.ServiceName, Value: []byte(other)})
		}
	}
	answer = append(answer, discovery.Tag{Type: discovery.ACCookie, Value: s.cookie(f.From)})
	s.send(f.From, discovery.PADO, 0, append(answer, s.returned(tags)...))
}

func (s *Server) offers(service string) bool {
	return service == "" || slices.Contains(s.config.Services, service)
}

// cookie is one that this concentrator needs no memory for (RFC 2516 appendix A).
func (s *Server) cookie(mac discovery.MAC) []byte {
	h := hmac.New(sha256.New, s.key)
	h.Write(mac[:])
	return h.Sum(nil)[:16]
}

// returned are the client's tags that an answer has to have, and PPP-Max-Payload if it is
// agreed to (RFC 4638 3).
func (s *Server) returned(tags []discovery.Tag) []discovery.Tag {
	var back []discovery.Tag
	for _, t := range tags {
		switch t.Type {
		case discovery.HostUniq, discovery.RelaySessionID:
			back = append(back, t)
		case discovery.MaxPayload:
			if s.payload(tags) > ppp.MaxMRU {
				back = append(back, t)
			}
		}
	}
	return back
}

// payload is the largest PPP packet of a client with such tags.
func (s *Server) payload(tags []discovery.Tag) uint16 {
	asked, ok := discovery.Find(tags, discovery.MaxPayload)
	if ok && len(asked) == 2 && binary.BigEndian.Uint16(asked) <= s.config.MaxPayload {
		return max(binary.BigEndian.Uint16(asked), ppp.MaxMRU)
	}
	return ppp.MaxMRU
}

// requested answers a PADR. One that comes twice has the same answer twice.
func (s *Server) requested(f discovery.Frame, tags []discovery.Tag, now time.Time) {
	if relay, _ := discovery.Find(tags, discovery.RelaySessionID); s.config.Faults.Relay != nil && !bytes.Equal(relay, s.config.Faults.Relay) {
		return // the relay does not know whose it is
	}
	cookie, _ := discovery.Find(tags, discovery.ACCookie)
	uniq, _ := discovery.Find(tags, discovery.HostUniq)
	service, ok := discovery.Find(tags, discovery.ServiceName)
	switch {
	case !hmac.Equal(cookie, s.cookie(f.From)):
		return
	case !ok || !s.offers(string(service)):
		s.refuse(f, tags, discovery.ServiceNameError, "no such service")
		return
	}
	for _, one := range s.sessions {
		switch {
		case one.peer != f.From:
		case one.uniq == string(uniq):
			s.out = append(s.out, one.answer.Append(nil))
			return
		case s.config.OnePerMAC:
			s.refuse(f, tags, discovery.ACSystemError, "there is a session of this address")
			return
		}
	}
	s.begin(f, tags, string(uniq), service, now)
}

func (s *Server) refuse(f discovery.Frame, tags []discovery.Tag, t discovery.TagType, why string) {
	s.send(f.From, discovery.PADS, 0, append(s.returned(tags), discovery.Tag{Type: t, Value: []byte(why)}))
}

func (s *Server) begin(f discovery.Frame, tags []discovery.Tag, uniq string, service []byte, now time.Time) {
	id, slot, ok := s.free()
	if !ok {
		s.refuse(f, tags, discovery.ACSystemError, "no session is free")
		return
	}
	answer := append([]discovery.Tag{{Type: discovery.ServiceName, Value: service}}, s.returned(tags)...)
	one := &session{id: id, peer: f.From, uniq: uniq, slot: slot}
	one.answer = s.send(f.From, discovery.PADS, id, answer)
	config := ppp.Config{
		Random: s.config.Random, MRU: s.payload(tags), Restart: s.config.Restart, Ask: s.config.Ask,
		EchoEvery: s.config.EchoEvery, EchoMisses: s.config.EchoMisses,
	}
	if s.config.First.IsValid() {
		config.V4 = &ppp.V4{Own: s.config.Local, Peer: nth(s.config.First, slot), DNS: s.config.DNS}
	}
	if s.config.IPv6 {
		config.V6 = &ppp.V6{}
	}
	s.sessions[id] = one
	one.link = ppp.New(config, now)
	s.drain(one)
}

// free returns a number of a session and of addresses that are not in use. Numbers are not
// used again soon; 0 and 0xffff are none (RFC 2516 4).
func (s *Server) free() (id uint16, slot uint32, ok bool) {
	if len(s.sessions) >= 0xfffe {
		return 0, 0, false
	}
	for {
		s.lastID++
		if s.lastID != 0 && s.lastID != 0xffff && s.sessions[s.lastID] == nil {
			break
		}
	}
	used := map[uint32]bool{}
	for _, one := range s.sessions {
		used[one.slot] = true
	}
	for used[slot] {
		slot++
	}
	return s.lastID, slot, true
}

// nth returns the address n after another.
func nth(first netip.Addr, n uint32) netip.Addr {
	b := first.As4()
	binary.BigEndian.PutUint32(b[:], binary.BigEndian.Uint32(b[:])+n)
	return netip.AddrFrom4(b)
}

func (s *Server) send(to discovery.MAC, code discovery.Code, id uint16, tags []discovery.Tag) discovery.Frame {
	f := discovery.Frame{
		To: to, From: s.config.MAC, Ether: discovery.EtherDiscovery, Code: code, SessionID: id,
		Payload: discovery.AppendTags(nil, tags),
	}
	s.out = append(s.out, f.Append(nil))
	return f
}

// drain sends what a session's link has to send, and ends the session with the link.
func (s *Server) drain(one *session) {
	frames, events := one.link.Take()
	for _, b := range frames {
		f := discovery.Frame{To: one.peer, From: s.config.MAC, Ether: discovery.EtherSession, SessionID: one.id, Payload: b}
		s.out = append(s.out, f.Append(nil))
	}
	for _, e := range events {
		if e.Kind == ppp.Ended {
			s.end(one, e.Detail, true)
		}
	}
}

func (s *Server) end(one *session, why string, tell bool) {
	if tell {
		s.out = append(s.out, discovery.Terminate(one.peer, s.config.MAC, one.id).Append(nil))
	}
	delete(s.sessions, one.id)
	s.ended = append(s.ended, why)
}
