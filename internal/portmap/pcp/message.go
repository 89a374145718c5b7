package pcp

import (
	"encoding/binary"
	"net/netip"
)

// Opcodes of PCP.
const (
	opAnnounce = 0
	opMap      = 1
	opPeer     = 2
)

// Options of PCP. Those below 128 must be processed, or the request fails.
const (
	optionThirdParty    = 1
	optionPreferFailure = 2
	optionFilter        = 3
	optionOptional      = 128
)

// A Result is a result code of PCP (RFC 6887, 7.4).
type Result uint8

// Result codes.
const (
	Success               Result = 0
	UnsupportedVersion    Result = 1
	NotAuthorized         Result = 2
	MalformedRequest      Result = 3
	UnsupportedOpcode     Result = 4
	UnsupportedOption     Result = 5
	MalformedOption       Result = 6
	NetworkFailure        Result = 7
	NoResources           Result = 8
	UnsupportedProtocol   Result = 9
	ExceedsQuota          Result = 10
	CannotProvideExternal Result = 11
	AddressMismatch       Result = 12
	ExcessiveRemotePeers  Result = 13
)

// lifetime returns how long clients should expect the same error, in seconds.
func (r Result) lifetime() uint32 {
	switch r {
	case NetworkFailure, NoResources, ExceedsQuota, CannotProvideExternal:
		return 30
	}
	return 30 * 60
}

// Lengths in bytes.
const (
	headBytes = 24
	mapBytes  = 36
	peerBytes = 56
)

// A message is a request that is well-formed so far.
type message struct {
	opcode   byte
	lifetime uint32
	client   netip.Addr
	data     []byte // of the opcode
	options  []option
}

type option struct {
	code byte
	data []byte
	raw  []byte // with head and padding, for the response
}

// parse reads a request's head and options.
func parse(b []byte) (m message, failed Result) {
	if len(b) < headBytes || len(b) > MostBytes || len(b)%4 != 0 {
		return m, MalformedRequest
	}
	m.opcode = b[1]
	m.lifetime = binary.BigEndian.Uint32(b[4:])
	m.client = netip.AddrFrom16([16]byte(b[8:24])).Unmap()
	size := 0
	switch m.opcode {
	case opAnnounce:
	case opMap:
		size = mapBytes
	case opPeer:
		size = peerBytes
	default:
		return m, UnsupportedOpcode
	}
	b = b[headBytes:]
	if len(b) < size {
		return m, MalformedRequest
	}
	m.data, b = b[:size], b[size:]
	m.options, failed = parseOptions(b)
	return m, failed
}

func parseOptions(b []byte) (all []option, failed Result) {
	for len(b) > 0 { // its length is a multiple of 4
		length := int(binary.BigEndian.Uint16(b[2:]))
		padded := 4 + (length+3)/4*4
		if padded > len(b) {
			return nil, MalformedOption
		}
		all = append(all, option{code: b[0], data: b[4 : 4+length], raw: b[:padded]})
		b = b[padded:]
	}
	return all, Success
}

// A mapRequest is the data of MAP or PEER with its options.
type mapRequest struct {
	opcode        byte
	peer          netip.AddrPort // of PEER: the other end of the connection
	nonce         [12]byte
	protocol      byte
	internal      uint16
	external      uint16
	address       netip.Addr // that the client would like
	third         netip.Addr // whom the mapping is for; not valid: for the client
	preferFailure bool
	filtered      bool // it has filters
	clears        bool // they replace those before
	filters       []filter
	done          []option // those that are in the response
}

type filter struct {
	from netip.Prefix
	port uint16
}

func parseMap(m *message) (r mapRequest, failed Result) {
	r.opcode = m.opcode
	r.nonce = [12]byte(m.data)
	r.protocol = m.data[12]
	r.internal = binary.BigEndian.Uint16(m.data[16:])
	r.external = binary.BigEndian.Uint16(m.data[18:])
	r.address = netip.AddrFrom16([16]byte(m.data[20:36])).Unmap()
	if m.opcode == opPeer {
		r.peer = netip.AddrPortFrom(netip.AddrFrom16([16]byte(m.data[40:56])).Unmap(), binary.BigEndian.Uint16(m.data[36:]))
	}
	for _, o := range m.options {
		if failed := r.take(&o); failed != Success {
			return r, failed
		}
	}
	return r, Success
}

// take reads an option. PREFER_FAILURE and FILTER are MAP's alone.
func (r *mapRequest) take(o *option) Result {
	switch {
	case r.opcode == opPeer && (o.code == optionPreferFailure || o.code == optionFilter):
		return UnsupportedOption
	case o.code == optionThirdParty:
		if len(o.data) != 16 || r.third.IsValid() {
			return MalformedOption
		}
		r.third = netip.AddrFrom16([16]byte(o.data)).Unmap()
	case o.code == optionPreferFailure:
		if len(o.data) != 0 || r.preferFailure {
			return MalformedOption
		}
		r.preferFailure = true
	case o.code == optionFilter:
		if !r.takeFilter(o.data) {
			return MalformedOption
		}
	case o.code >= optionOptional:
		return Success // it is ignored, and not in the response
	default:
		return UnsupportedOption
	}
	r.done = append(r.done, *o)
	return Success
}

// takeFilter reads a filter (RFC 6887, 13.3). With a prefix length of 0 it removes those
// before it.
func (r *mapRequest) takeFilter(data []byte) bool {
	if len(data) != 20 || data[1] > 128 {
		return false
	}
	r.filtered = true
	bits := int(data[1])
	address := netip.AddrFrom16([16]byte(data[4:]))
	if bits == 0 {
		r.clears, r.filters = true, nil
		return true
	}
	if address.Is4In6() {
		if bits < 96 {
			return false
		}
		address, bits = address.Unmap(), bits-96
	}
	r.filters = append(r.filters, filter{netip.PrefixFrom(address, bits).Masked(), binary.BigEndian.Uint16(data[2:])})
	return true
}
