package discovery

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
)

// The types of Ethernet frames of PPPoE (RFC 2516 4).
const (
	EtherDiscovery uint16 = 0x8863
	EtherSession   uint16 = 0x8864
)

// MAC is an Ethernet address.
type MAC [6]byte

// Broadcast is everybody.
var Broadcast = MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// String returns the address as six pairs of digits.
func (m MAC) String() string { return net.HardwareAddr(m[:]).String() }

// Code says what a packet is (RFC 2516 5).
type Code uint8

// The codes.
const (
	Session Code = 0x00 // carries a PPP frame
	PADO    Code = 0x07
	PADI    Code = 0x09
	PADR    Code = 0x19
	PADS    Code = 0x65
	PADT    Code = 0xa7
)

// String returns the code's name in RFC 2516.
func (c Code) String() string {
	switch c {
	case Session:
		return "session"
	case PADO:
		return "PADO"
	case PADI:
		return "PADI"
	case PADR:
		return "PADR"
	case PADS:
		return "PADS"
	case PADT:
		return "PADT"
	}
	return fmt.Sprintf("code 0x%02x", uint8(c))
}

// TagType says what a tag is (RFC 2516 appendix A, RFC 4638 3).
type TagType uint16

// The tags.
const (
	EndOfList        TagType = 0x0000
	ServiceName      TagType = 0x0101
	ACName           TagType = 0x0102
	HostUniq         TagType = 0x0103
	ACCookie         TagType = 0x0104
	VendorSpecific   TagType = 0x0105
	RelaySessionID   TagType = 0x0110
	MaxPayload       TagType = 0x0120
	ServiceNameError TagType = 0x0201
	ACSystemError    TagType = 0x0202
	GenericError     TagType = 0x0203
)

// Tag is one tag of a discovery packet.
type Tag struct {
	Type  TagType
	Value []byte
}

// Frame is an Ethernet frame of PPPoE, of either type.
type Frame struct {
	To, From  MAC
	Ether     uint16 // EtherDiscovery or EtherSession
	Code      Code
	SessionID uint16
	Payload   []byte // tags, or a PPP frame
}

// Sizes of headers, in bytes.
const (
	etherHeader = 14
	header      = 6
	tagHeader   = 4
)

// versionType is the first byte of PPPoE: version 1, type 1 (RFC 2516 4).
const versionType = 0x11

// What makes a frame none of PPPoE.
var (
	ErrShort   = errors.New("a length does not fit the frame")
	ErrVersion = errors.New("not version 1, type 1 of PPPoE")
	ErrEther   = errors.New("not an Ethernet frame of PPPoE")
)

// Parse reads an Ethernet frame without VLAN tag. What is behind its length is padding.
func Parse(b []byte) (Frame, error) {
	if len(b) < etherHeader+header {
		return Frame{}, ErrShort
	}
	f := Frame{To: MAC(b[:6]), From: MAC(b[6:12]), Ether: binary.BigEndian.Uint16(b[12:])}
	if f.Ether != EtherDiscovery && f.Ether != EtherSession {
		return Frame{}, ErrEther
	}
	if b[etherHeader] != versionType {
		return Frame{}, ErrVersion
	}
	f.Code, f.SessionID = Code(b[etherHeader+1]), binary.BigEndian.Uint16(b[etherHeader+2:])
	length := int(binary.BigEndian.Uint16(b[etherHeader+4:]))
	rest := b[etherHeader+header:]
	if length > len(rest) {
		return Frame{}, ErrShort
	}
	f.Payload = rest[:length]
	return f, nil
}

// Append appends the frame to b.
func (f Frame) Append(b []byte) []byte {
	b = append(append(b, f.To[:]...), f.From[:]...)
	b = binary.BigEndian.AppendUint16(b, f.Ether)
	b = append(b, versionType, byte(f.Code))
	b = binary.BigEndian.AppendUint16(b, f.SessionID)
	b = binary.BigEndian.AppendUint16(b, uint16(len(f.Payload)))
	return append(b, f.Payload...)
}

// ParseTags reads the tags of a discovery packet, up to End-Of-List if there is one.
func ParseTags(b []byte) ([]Tag, error) {
	var tags []Tag
	for len(b) > 0 {
		if len(b) < tagHeader {
			return nil, ErrShort
		}
		t, length := TagType(binary.BigEndian.Uint16(b)), int(binary.BigEndian.Uint16(b[2:]))
		if t == EndOfList {
			break
		}
		if length > len(b)-tagHeader {
			return nil, ErrShort
		}
		tags = append(tags, Tag{t, b[tagHeader : tagHeader+length]})
		b = b[tagHeader+length:]
	}
	return tags, nil
}

// AppendTags appends tags to b.
func AppendTags(b []byte, tags []Tag) []byte {
	for _, t := range tags {
		b = binary.BigEndian.AppendUint16(b, uint16(t.Type))
		b = binary.BigEndian.AppendUint16(b, uint16(len(t.Value)))
		b = append(b, t.Value...)
	}
	return b
}

// Find returns the value of the first tag of a type.
func Find(tags []Tag, t TagType) (value []byte, ok bool) {
	for _, tag := range tags {
		if tag.Type == t {
			return tag.Value, true
		}
	}
	return nil, false
}

// FindError returns what the first error tag says (RFC 2516 appendix A): the name of the
// error and its text, which is the other end's and not to be trusted.
func FindError(tags []Tag) (name string, text []byte, ok bool) {
	names := map[TagType]string{
		ServiceNameError: "Service-Name-Error", ACSystemError: "AC-System-Error", GenericError: "Generic-Error",
	}
	for _, tag := range tags {
		if name, ok := names[tag.Type]; ok {
			return name, tag.Value, true
		}
	}
	return "", nil, false
}

// Terminate makes a PADT (RFC 2516 5.5).
func Terminate(to, from MAC, session uint16) Frame {
	return Frame{To: to, From: from, Ether: EtherDiscovery, Code: PADT, SessionID: session}
}
