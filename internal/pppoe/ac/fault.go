package ac

import (
	"bytes"
	"encoding/binary"
	"time"

	"weir/internal/pppoe/discovery"
	"weir/internal/pppoe/ppp"
)

// Faults are what a concentrator, or the way to it, does wrong. The zero value does nothing wrong.
type Faults struct {
	LosePADS int // so many are lost, though the sessions are there
	// LateNak holds so many Configure-Nak and Configure-Reject back for so long.
	LateNaks int
	LateNak  time.Duration
	MuteIPv6 bool // IPV6CP is never answered
	// SmallMTU loses what is longer, in bytes of a PPP packet, whatever was agreed to; 0: nothing.
	SmallMTU int
	LoseEcho int // of so many echo requests of the client one is answered; 0: each
	// Storm sends so many PADT with other numbers, and from nowhere, with each frame.
	Storm int
	// Hostile has tags in each PADO and PADS that contradict themselves.
	Hostile bool
	// Double gives a second session for the answer to each PADR.
	Double bool
	// MRU is the only one of the client's that is agreed to, however often it asks for another; 0: any.
	MRU uint16
	// NoDNS names the server 0.0.0.0 to a client that asks for one, however often it does.
	NoDNS bool
	// Relay has tags of a relay in between, which have to come back (RFC 2516 appendix A).
	Relay []byte
}

// late is a frame that is held back.
type late struct {
	at    time.Time
	frame []byte
}

// spoil does to the frames that leave what the faults say.
func (s *Server) spoil(frames [][]byte) (out [][]byte) {
	for _, b := range frames {
		out = append(out, s.spoilOne(b)...)
	}
	return out
}

func (s *Server) spoilOne(b []byte) [][]byte {
	f, err := discovery.Parse(b)
	if err != nil {
		return [][]byte{b}
	}
	if f.Ether == discovery.EtherSession {
		return s.spoilSession(f, b)
	}
	faults := &s.config.Faults
	var out [][]byte
	switch f.Code {
	case discovery.PADS:
		if faults.LosePADS > 0 {
			faults.LosePADS--
			return nil
		}
		if faults.Double && f.SessionID != 0 {
			second := f
			second.SessionID ^= 0x4000
			out = append(out, second.Append(nil))
		}
		fallthrough
	case discovery.PADO:
		if faults.Relay != nil {
			f.Payload = discovery.AppendTags(bytes.Clone(f.Payload), []discovery.Tag{{Type: discovery.RelaySessionID, Value: faults.Relay}})
		}
		if faults.Hostile {
			odd := f
			odd.Payload = append(bytes.Clone(f.Payload), 0x01, 0x04, 0xff, 0xff) // a cookie longer than the frame
			out = append(out, odd.Append(nil))
			odd.Payload = []byte{0, 0, 0, 0, 1, 2}
			out = append(out, odd.Append(nil))
		}
	}
	// What is right comes first: a client takes the first.
	return append([][]byte{f.Append(nil)}, append(out, s.storm(f)...)...)
}

// refusal is the answer to a Configure-Request that is never agreed to; false: it may be.
func (s *Server) refusal(b []byte) (answer []byte, ok bool) {
	faults := &s.config.Faults
	protocol, body, err := ppp.ParseFrame(b)
	if err != nil {
		return nil, false
	}
	p, err := ppp.ParsePacket(body)
	if err != nil || p.Code != ppp.ConfigureRequest {
		return nil, false
	}
	options, err := ppp.ParseOptions(p.Data)
	if err != nil {
		return nil, false
	}
	var refused []ppp.Option
	for _, o := range options {
		switch {
		case protocol == ppp.LCP && o.Type == 1 && faults.MRU != 0 && (len(o.Data) != 2 || binary.BigEndian.Uint16(o.Data) != faults.MRU):
			refused = append(refused, ppp.Option{Type: o.Type, Data: binary.BigEndian.AppendUint16(nil, faults.MRU)})
		case protocol == ppp.IPCP && (o.Type == 129 || o.Type == 131) && faults.NoDNS:
			refused = append(refused, ppp.Option{Type: o.Type, Data: make([]byte, 4)})
		}
	}
	if len(refused) == 0 {
		return nil, false
	}
	nak := ppp.Packet{Code: ppp.ConfigureNak, ID: p.ID, Data: ppp.AppendOptions(nil, refused)}
	return nak.Append(binary.BigEndian.AppendUint16(nil, uint16(protocol))), true
}

// storm are PADTs that end no session of the client.
func (s *Server) storm(f discovery.Frame) (out [][]byte) {
	for i := range s.config.Faults.Storm {
		t := discovery.Terminate(f.To, s.config.MAC, f.SessionID+1+uint16(i))
		if i%2 == 1 {
			t.From[5] ^= 0xff
			t.SessionID = f.SessionID
		}
		out = append(out, t.Append(nil))
	}
	return out
}

func (s *Server) spoilSession(f discovery.Frame, b []byte) [][]byte {
	faults := &s.config.Faults
	protocol, body, err := ppp.ParseFrame(f.Payload)
	if err != nil || faults.SmallMTU != 0 && len(body) > faults.SmallMTU || faults.MuteIPv6 && protocol == ppp.IPV6CP {
		return nil
	}
	p, err := ppp.ParsePacket(body)
	if err == nil && protocol != ppp.PAP && protocol != ppp.CHAP && (p.Code == ppp.ConfigureNak || p.Code == ppp.ConfigureReject) && faults.LateNaks > 0 {
		faults.LateNaks--
		s.late = append(s.late, late{s.now.Add(faults.LateNak), b})
		return nil
	}
	if err == nil && protocol == ppp.LCP && p.Code == ppp.EchoReply && faults.LoseEcho > 0 {
		if s.echoes++; s.echoes%faults.LoseEcho != 0 {
			return nil
		}
	}
	return append([][]byte{b}, s.storm(f)...)
}

// due returns the frames that were held back long enough.
func (s *Server) due() (out [][]byte) {
	for len(s.late) > 0 && !s.now.Before(s.late[0].at) {
		out = append(out, s.late[0].frame)
		s.late = s.late[1:]
	}
	return out
}
