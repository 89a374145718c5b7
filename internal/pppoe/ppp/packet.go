package ppp

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Protocol is the first field of a PPP frame (RFC 1661 2).
type Protocol uint16

// The protocols that pass over PPPoE. From 0x8021 on they control the session; those below
// carry packets.
const (
	IPv4   Protocol = 0x0021
	IPv6   Protocol = 0x0057
	IPCP   Protocol = 0x8021
	IPV6CP Protocol = 0x8057
	LCP    Protocol = 0xc021
	PAP    Protocol = 0xc023
	CHAP   Protocol = 0xc223
)

// String returns the protocol's name, or its number.
func (p Protocol) String() string {
	switch p {
	case IPv4:
		return "IPv4"
	case IPv6:
		return "IPv6"
	case IPCP:
		return "IPCP"
	case IPV6CP:
		return "IPV6CP"
	case LCP:
		return "LCP"
	case PAP:
		return "PAP"
	case CHAP:
		return "CHAP"
	}
	return fmt.Sprintf("protocol 0x%04x", uint16(p))
}

// Code says what a packet of a control protocol is (RFC 1661 5).
type Code uint8

// The codes of LCP. The other protocols of negotiation use those up to CodeReject.
const (
	ConfigureRequest Code = 1
	ConfigureAck     Code = 2
	ConfigureNak     Code = 3
	ConfigureReject  Code = 4
	TerminateRequest Code = 5
	TerminateAck     Code = 6
	CodeReject       Code = 7
	ProtocolReject   Code = 8
	EchoRequest      Code = 9
	EchoReply        Code = 10
	DiscardRequest   Code = 11
)

var codeNames = [...]string{
	ConfigureRequest: "Configure-Request", ConfigureAck: "Configure-Ack", ConfigureNak: "Configure-Nak",
	ConfigureReject: "Configure-Reject", TerminateRequest: "Terminate-Request", TerminateAck: "Terminate-Ack",
	CodeReject: "Code-Reject", ProtocolReject: "Protocol-Reject", EchoRequest: "Echo-Request",
	EchoReply: "Echo-Reply", DiscardRequest: "Discard-Request",
}

// String returns the code's name in RFC 1661, or its number.
func (c Code) String() string {
	if int(c) < len(codeNames) && codeNames[c] != "" {
		return codeNames[c]
	}
	return fmt.Sprintf("code %d", uint8(c))
}

// ErrShort says that a length in a packet is not one that the packet has room for.
var ErrShort = errors.New("a length does not fit the packet")

// Packet is a packet of a control protocol, of authentication too (RFC 1661 5, RFC 1334 2.2,
// RFC 1994 4).
type Packet struct {
	Code Code
	ID   uint8  // of the request; an answer has its request's
	Data []byte // at most 65,531 bytes
}

// packetHeader is code, identifier and length.
const packetHeader = 4

// ParsePacket reads a packet. What is behind its length is padding and left out (RFC 1661 5).
func ParsePacket(b []byte) (Packet, error) {
	if len(b) < packetHeader {
		return Packet{}, ErrShort
	}
	length := int(binary.BigEndian.Uint16(b[2:]))
	if length < packetHeader || length > len(b) {
		return Packet{}, ErrShort
	}
	return Packet{Code: Code(b[0]), ID: b[1], Data: b[packetHeader:length]}, nil
}

// Append appends the packet to b.
func (p Packet) Append(b []byte) []byte {
	b = append(b, byte(p.Code), p.ID)
	b = binary.BigEndian.AppendUint16(b, uint16(packetHeader+len(p.Data)))
	return append(b, p.Data...)
}

// ParseFrame reads a frame's protocol and returns what follows. The protocol field has two
// bytes, as its compression is never agreed to (RFC 2516 7).
func ParseFrame(b []byte) (Protocol, []byte, error) {
	if len(b) < 2 {
		return 0, nil, ErrShort
	}
	return Protocol(binary.BigEndian.Uint16(b)), b[2:], nil
}

// frame makes a frame of a packet.
func frame(protocol Protocol, p Packet) []byte {
	b := make([]byte, 0, 2+packetHeader+len(p.Data))
	return p.Append(binary.BigEndian.AppendUint16(b, uint16(protocol)))
}

// Option is one option of a Configure packet (RFC 1661 5).
type Option struct {
	Type uint8
	Data []byte // at most 253 bytes
}

// ParseOptions reads the options of a Configure packet.
func ParseOptions(b []byte) ([]Option, error) {
	var options []Option
	for len(b) > 0 {
		if len(b) < 2 || b[1] < 2 || int(b[1]) > len(b) {
			return nil, ErrShort
		}
		options = append(options, Option{Type: b[0], Data: b[2:b[1]]})
		b = b[b[1]:]
	}
	return options, nil
}

// AppendOptions appends options to b.
func AppendOptions(b []byte, options []Option) []byte {
	for _, o := range options {
		b = append(append(b, o.Type, byte(2+len(o.Data))), o.Data...)
	}
	return b
}
