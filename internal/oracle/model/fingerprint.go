package model

import (
	"encoding/binary"
	"slices"

	"weir/pf/fingerprint"
)

// What a packet's system is if it is no position of a fingerprint.
const (
	unknownSystem = -1 // the packet is no SYN, or no fingerprint fits it
	noSystem      = -2 // it is not TCP
)

// matchesSystem tests the system that a packet comes from.
func (m *Model) matchesSystem(name string, a *ruleInput) bool {
	switch {
	case name == "":
		return true
	case a.tuple.Proto != protoTCP:
		return false
	case name == fingerprint.Unknown:
		return a.system == unknownSystem
	}
	return slices.Contains(m.rules.Fingerprints.Of(name), a.system)
}

// systemOf returns the position of the first fingerprint that fits a packet as it came.
func (m *Model) systemOf(p *packet) int {
	switch {
	case p.tuple.Proto != protoTCP:
		return noSystem
	case m.rules == nil || !p.tcp.has(flagSYN) || p.tcp.has(flagACK) || p.fragment != fragmentNone:
		return unknownSystem
	}
	s, ok := p.synOf()
	if !ok {
		return unknownSystem
	}
	return slices.IndexFunc(m.rules.Fingerprints, func(f fingerprint.Listed) bool { return s.fits(&f.Fingerprint) })
}

// A syn is what fingerprints ask about.
type syn struct {
	options          string
	window, mss, wsc int
	size, ttl        int
	df, zeroTime     bool
	six              bool // IPv6, which has no DF
}

// synOf reads the options of a SYN; false if no fingerprint has such.
func (p *packet) synOf() (s syn, ok bool) {
	s = syn{window: int(p.tcp.window), size: p.length(), ttl: int(p.ttl), six: p.family == 6}
	if s.six {
		s.size -= 20 // fingerprints are those of IPv4
	} else {
		s.df = p.frame[p.l3+6]&0x40 != 0
	}
	options := p.frame[p.l4+20 : p.l4+p.tcp.header]
	for len(options) > 0 && options[0] != 0 {
		size := 1
		if options[0] != 1 {
			if len(options) < 2 || options[1] < 2 || int(options[1]) > len(options) {
				return s, false
			}
			size = int(options[1])
		}
		option := options[:size]
		options = options[size:]
		letter, known := map[byte]string{1: "N", 2: "M", 3: "W", 4: "S", 8: "T"}[option[0]]
		if !known || len(s.options) == 20 {
			return s, false
		}
		s.options += letter
		switch {
		case letter == "M" && size >= 4:
			s.mss = int(binary.BigEndian.Uint16(option[2:]))
		case letter == "W" && size >= 3:
			s.wsc = int(option[2])
		case letter == "T" && size >= 10 && binary.BigEndian.Uint32(option[2:]) == 0:
			s.zeroTime = true
		}
	}
	return s, true
}

func (s *syn) fits(f *fingerprint.Fingerprint) bool {
	const hops = 40
	distance := int(f.TTL) - s.ttl
	return s.options == f.Options && (s.six || s.df == f.DF) && s.zeroTime == f.ZeroTime && distance >= 0 && distance <= hops &&
		s.is(f.Window, s.window) && s.is(f.Size, s.size) && s.is(f.MSS, s.mss) && s.is(f.Scale, s.wsc)
}

func (s *syn) is(n fingerprint.Number, is int) bool {
	const usualMSS, headers = 1460, 40
	want := int(n.N)
	switch n.Kind {
	case fingerprint.Any:
		return true
	case fingerprint.Multiple:
		return is%want == 0
	case fingerprint.TimesMSS:
		return s.mss != 0 && (is == want*s.mss || is == want*usualMSS)
	case fingerprint.TimesMTU:
		return s.mss != 0 && (is == want*(s.mss+headers) || is == want*(usualMSS+headers))
	}
	return is == want
}
