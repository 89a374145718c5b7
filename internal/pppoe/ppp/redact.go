package ppp

// Redact returns a PPP frame for others to read: without a password, without answers to challenges,
// which help to guess one, and without what a peer has sent back of such.
func Redact(b []byte) []byte {
	protocol, body, err := ParseFrame(b)
	if err != nil {
		return nil
	}
	p, err := ParsePacket(body)
	switch {
	case protocol != PAP && protocol != CHAP && protocol != LCP:
		return b
	case err != nil:
		return b[:2]
	}
	switch {
	case protocol == LCP && p.Code == ProtocolReject:
		p.Data = p.Data[:min(len(p.Data), 2)]
	case protocol == LCP && p.Code == CodeReject:
		p.Data = p.Data[:min(len(p.Data), packetHeader)]
	case protocol == PAP && p.Code == papRequest:
		name, _, _ := field(p.Data)
		p.Data = appendField(appendField(nil, name), []byte(hidden))
	case protocol == CHAP && p.Code == chapResponse:
		answer, name, _ := field(p.Data)
		p.Data = append(appendField(nil, make([]byte, len(answer))), name...)
	case protocol == CHAP && p.Code >= chapSuccess:
		p.Data = withoutProof(p.Data)
	}
	return frame(protocol, p)
}
