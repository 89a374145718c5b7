package ppp

import (
	"bytes"
	"fmt"
	"net/netip"
	"strings"
)

// Describe returns a PPP frame as one line for a log: protocol, code, identifier and
// options. It shows no password and no answer to a challenge.
func Describe(b []byte) string {
	protocol, body, err := ParseFrame(b)
	if err != nil {
		return "a frame that is too short"
	}
	p, err := ParsePacket(body)
	if err != nil {
		return protocol.String() + ": " + err.Error()
	}
	switch protocol {
	case PAP, CHAP:
		return fmt.Sprintf("%s %s %d%s", protocol, authName(protocol, p.Code), p.ID, authText(protocol, p))
	case LCP, IPCP, IPV6CP:
		line := fmt.Sprintf("%s %s %d", protocol, p.Code, p.ID)
		switch p.Code {
		case ConfigureRequest, ConfigureAck, ConfigureNak, ConfigureReject:
			line += optionsText(protocol, p.Data)
		case TerminateRequest, TerminateAck:
			line += reasonText(p.Data)
		case EchoRequest, EchoReply:
			line += fmt.Sprintf(" of %d bytes", len(p.Data))
		}
		return line
	}
	return protocol.String()
}

var authNames = map[Protocol][]string{
	PAP:  {"", "Request", "Ack", "Nak"},
	CHAP: {"", "Challenge", "Response", "Success", "Failure"},
}

func authName(protocol Protocol, c Code) string {
	if names := authNames[protocol]; int(c) < len(names) && c != 0 {
		return names[c]
	}
	return fmt.Sprintf("code %d", uint8(c))
}

// authText is who speaks, or what the verdict says.
func authText(protocol Protocol, p Packet) string {
	first, rest, ok := field(p.Data)
	switch {
	case protocol == CHAP && p.Code >= chapSuccess:
		return reasonText(withoutProof(p.Data))
	case !ok:
		return ""
	case protocol == CHAP:
		return " from " + Printable(rest)
	case p.Code == papRequest:
		return " from " + Printable(first)
	}
	return reasonText(first)
}

func optionsText(protocol Protocol, data []byte) string {
	options, err := ParseOptions(data)
	if err != nil {
		return ": " + err.Error()
	}
	var words strings.Builder
	for _, o := range options {
		words.WriteString(" " + optionText(protocol, o))
	}
	return words.String()
}

func optionText(protocol Protocol, o Option) string {
	address, isAddress := netip.AddrFromSlice(o.Data)
	switch {
	case protocol == LCP && o.Type == optionMRU && len(o.Data) == 2:
		return fmt.Sprintf("mru=%d", int(o.Data[0])<<8|int(o.Data[1]))
	case protocol == LCP && o.Type == optionAuth && parseMethod(o.Data) != 0:
		return "auth=" + parseMethod(o.Data).String()
	case protocol == LCP && o.Type == optionMagic:
		return fmt.Sprintf("magic=%x", o.Data)
	case protocol == IPCP && o.Type == optionAddress && isAddress:
		return "address=" + address.String()
	case protocol == IPCP && (o.Type == optionDNS1 || o.Type == optionDNS2) && isAddress:
		return "dns=" + address.String()
	case protocol == IPV6CP && o.Type == optionInterfaceID:
		return fmt.Sprintf("id=%x", o.Data)
	}
	return fmt.Sprintf("%d=%x", o.Type, o.Data)
}

// withoutProof leaves out what a Success or Failure of MS-CHAPv2 says besides its message: it would
// help to guess the password.
func withoutProof(b []byte) []byte {
	if !bytes.HasPrefix(b, []byte("S=")) && !bytes.HasPrefix(b, []byte("E=")) {
		return b
	}
	_, message, _ := bytes.Cut(b, []byte("M="))
	return message
}
