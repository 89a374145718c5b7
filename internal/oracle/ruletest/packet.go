package ruletest

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"weir/pf/ast"
	"weir/pf/resolve"
)

// Protocol numbers.
const (
	protoICMP  = 1
	protoIGMP  = 2
	protoTCP   = 6
	protoUDP   = 17
	protoICMP6 = 58
	protoSCTP  = 132
)

// A Packet is the first packet of a connection, or one on its own, as text says:
//
//	tcp 192.0.2.1:4000 > [2001:db8::1]:80 SA
//	icmp 192.0.2.1 > 192.0.2.2 unreach port-unr
//	gre 192.0.2.1 > 192.0.2.2 tos 0x10 mark 0x2
type Packet struct {
	Proto        uint8
	Src, Dst     netip.Addr
	SPort, DPort uint16
	Flags        uint8 // of TCP
	Type, Code   uint8 // of ICMP and ICMPv6
	TOS          uint8 // of IPv4; the traffic class of IPv6
	Mark         Mark  // that it has when the rules see it
}

var errForm = errors.New(`a packet is "PROTOCOL SOURCE > DESTINATION", with :PORT after the addresses of tcp, udp and sctp`)

// ParsePacket reads a packet's text.
func ParsePacket(text string) (*Packet, error) {
	words := strings.Fields(text)
	if len(words) < 4 || words[2] != ">" {
		return nil, errForm
	}
	p := &Packet{}
	var err error
	if p.Proto, err = protocol(words[0]); err != nil {
		return nil, err
	}
	if p.Src, p.SPort, err = p.end(words[1]); err != nil {
		return nil, fmt.Errorf("source: %w", err)
	}
	if p.Dst, p.DPort, err = p.end(words[3]); err != nil {
		return nil, fmt.Errorf("destination: %w", err)
	}
	switch {
	case p.Src.Is4() != p.Dst.Is4():
		return nil, errors.New("the addresses are of different families")
	case p.Proto == protoICMP && !p.Src.Is4():
		return nil, errors.New("icmp is for IPv4; for IPv6 use icmp6")
	case p.Proto == protoICMP6 && p.Src.Is4():
		return nil, errors.New("icmp6 is for IPv6; for IPv4 use icmp")
	}
	tos, mark := uint64(0), uint64(0)
	if words, err = option(words[4:], "mark", 32, &mark); err != nil {
		return nil, err
	}
	if words, err = option(words, "tos", 8, &tos); err != nil {
		return nil, err
	}
	p.TOS, p.Mark = uint8(tos), Mark(mark)
	return p, p.details(words)
}

// option takes a name and its number of so many bits, as "tos 0x10", from the end of a
// packet's text.
func option(words []string, name string, size int, to *uint64) ([]string, error) {
	n := len(words) - 2
	if n < 0 || words[n] != name {
		return words, nil
	}
	number, err := strconv.ParseUint(words[n+1], 0, size)
	if err != nil {
		return nil, fmt.Errorf("%q is no %s: it is a number up to %d or %#x", words[n+1], name, uint64(1)<<size-1, uint64(1)<<size-1)
	}
	*to = number
	return words[:n], nil
}

// protocol reads a protocol's name or number.
func protocol(word string) (uint8, error) {
	if n, err := strconv.ParseUint(word, 10, 8); err == nil {
		return uint8(n), nil
	}
	n, ok := resolve.ProtocolNumber(word)
	if !ok {
		return 0, fmt.Errorf("there is no protocol %q", word)
	}
	return n, nil
}

// hasPorts reports whether packets of the protocol have ports in their first
// four bytes.
func hasPorts(proto uint8) bool {
	return proto == protoTCP || proto == protoUDP || proto == protoSCTP
}

// end reads an address, with a port if the protocol has ports.
func (p *Packet) end(word string) (netip.Addr, uint16, error) {
	if !hasPorts(p.Proto) {
		a, err := netip.ParseAddr(word)
		if err != nil {
			return a, 0, fmt.Errorf("%q is not an address", word)
		}
		return plain(a)
	}
	a, err := netip.ParseAddrPort(word)
	if err != nil {
		return netip.Addr{}, 0, fmt.Errorf("%q is not an address with a port, such as 192.0.2.1:80 or [2001:db8::1]:80", word)
	}
	addr, _, err := plain(a.Addr())
	return addr, a.Port(), err
}

// plain refuses addresses that no packet has.
func plain(a netip.Addr) (netip.Addr, uint16, error) {
	switch {
	case a.Zone() != "":
		return a, 0, fmt.Errorf("%s: the link is that of \"in\"; leave %%%s out", a, a.Zone())
	case a.Is4In6():
		return a, 0, fmt.Errorf("%s: write the IPv4 address, %s", a, a.Unmap())
	}
	return a, 0, nil
}

// details reads what follows the addresses: TCP flags, ICMP type and code.
func (p *Packet) details(words []string) error {
	var err error
	switch {
	case p.Proto == protoTCP && len(words) == 0:
		p.Flags = flagSYN
		return nil
	case p.Proto == protoTCP && len(words) == 1:
		p.Flags, err = flags(words[0])
		return err
	case p.isICMP() && len(words) == 0:
		return errors.New("icmp needs a type after the addresses, such as echoreq or 8, and optionally a code")
	case p.isICMP() && len(words) <= 2:
		return p.message(words)
	case len(words) > 0:
		return fmt.Errorf("unknown option %q", strings.Join(words, " "))
	}
	return nil
}

func (p *Packet) isICMP() bool { return p.Proto == protoICMP || p.Proto == protoICMP6 }

// Bits of the flags of TCP, in the order of flagLetters.
const (
	flagSYN     = 0x02
	flagLetters = "FSRPAUEW"
)

// flags reads the letters of pf.conf(5) for TCP's flags; "-" is none.
func flags(word string) (uint8, error) {
	var set uint8
	if word == "-" {
		return 0, nil
	}
	for _, letter := range word {
		bit := strings.IndexRune(flagLetters, letter)
		if bit < 0 {
			return 0, fmt.Errorf("%q is not a TCP flag; the flags are %s, and - for none", letter, flagLetters)
		}
		set |= 1 << bit
	}
	return set, nil
}

// message reads type and code: names, numbers, or both numbers as 3/3.
func (p *Packet) message(words []string) error {
	if kind, code, both := strings.Cut(words[0], "/"); both && len(words) == 1 {
		words = []string{kind, code}
	}
	family, name := ast.Inet, "icmp"
	if p.Proto == protoICMP6 {
		family, name = ast.Inet6, "icmp6"
	}
	var known bool
	if p.Type, known = byNumber(words[0]); !known {
		if p.Type, known = resolve.ICMPTypeNumber(family, words[0]); !known {
			return fmt.Errorf("%s has no type %q", name, words[0])
		}
	}
	if len(words) == 1 {
		return nil
	}
	if p.Code, known = byNumber(words[1]); !known {
		if p.Code, known = resolve.ICMPCodeNumber(family, p.Type, words[1]); !known {
			return fmt.Errorf("type %s of %s has no code %q", words[0], name, words[1])
		}
	}
	return nil
}

func byNumber(word string) (uint8, bool) {
	n, err := strconv.ParseUint(word, 10, 8)
	return uint8(n), err == nil
}
