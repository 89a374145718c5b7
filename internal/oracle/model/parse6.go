package model

import (
	"encoding/binary"

	"weir/internal/fw/reason"
)

// IPv6 extension headers (RFC 8200, 4; RFC 4302 for AH).
const (
	nextHopByHop    = 0
	nextRouting     = 43
	nextFragment    = 44
	nextAuth        = 51
	nextDestination = 60

	maxExtensions     = 8
	maxExtensionBytes = 512
)

// extensionChain is a walk through the extension headers of a packet.
type extensionChain struct {
	first      bool
	fragmented bool // a fragment header was seen
	count      int
	bytes      int
}

// parseExtensions moves l4 behind the chain and sets the protocol to what
// follows it.
func (p *packet) parseExtensions() *reason.Reason {
	chain := extensionChain{first: true}
	for isExtension(p.tuple.Proto) {
		if chain.count == maxExtensions {
			return reasonFor(reason.ExtensionChain)
		}
		if why := p.parseExtension(&chain); why != nil {
			return why
		}
		if p.fragment == fragmentLater {
			break
		}
	}
	return nil
}

func isExtension(next uint8) bool {
	switch next {
	case nextHopByHop, nextRouting, nextFragment, nextAuth, nextDestination:
		return true
	}
	return false
}

// extensionSize returns the bytes of an extension header from its length field.
func extensionSize(kind, length uint8) int {
	switch kind {
	case nextFragment:
		return 8
	case nextAuth:
		return (int(length) + 2) * 4
	}
	return (int(length) + 1) * 8
}

// parseExtension steps over one header.
func (p *packet) parseExtension(chain *extensionChain) *reason.Reason {
	x := p.frame[p.l4:p.end]
	if len(x) < 8 {
		return p.short()
	}
	kind, size := p.tuple.Proto, extensionSize(p.tuple.Proto, x[1])
	switch kind {
	case nextHopByHop:
		if !chain.first {
			return reasonFor(reason.Malformed)
		}
		p.options = true
	case nextDestination:
		p.options = true
	case nextRouting:
		if x[2] == 0 {
			return reasonFor(reason.RoutingHeader)
		}
	case nextFragment:
		if chain.fragmented {
			return reasonFor(reason.Malformed)
		}
		chain.fragmented = true
	}
	chain.first = false
	chain.count++
	chain.bytes += size
	if kind == nextFragment {
		if why := p.parseFragmentHeader(x); why != nil {
			return why
		}
	}
	if size > len(x) {
		return p.short()
	}
	if chain.bytes > maxExtensionBytes {
		return reasonFor(reason.ExtensionChain)
	}
	p.tuple.Proto = x[0]
	p.l4 += size
	return nil
}

// parseFragmentHeader reads a fragment header; an atomic one (RFC 6946) leaves
// the packet whole.
func (p *packet) parseFragmentHeader(x []byte) *reason.Reason {
	field := binary.BigEndian.Uint16(x[2:])
	offset, more := int(field&^7), field&1 != 0
	if offset == 0 && !more {
		return nil
	}
	p.fragmentID = binary.BigEndian.Uint32(x[4:])
	return p.parseFragment(offset, len(x)-8, more)
}
