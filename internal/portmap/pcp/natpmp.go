package pcp

import (
	"context"
	"encoding/binary"
	"errors"
	"net/netip"

	"weir/internal/portmap/mapping"
)

// Opcodes of NAT-PMP.
const (
	pmpAddress = 0
	pmpMapUDP  = 1
	pmpMapTCP  = 2
)

// Result codes of NAT-PMP (RFC 6886, 3.5).
const (
	pmpSuccess           = 0
	pmpNotAuthorized     = 2
	pmpNetworkFailure    = 3
	pmpOutOfResources    = 4
	pmpUnsupportedOpcode = 5
)

// answerNATPMP answers a request with version 0.
func (s *Server) answerNATPMP(ctx context.Context, request []byte, from netip.Addr) []byte {
	switch request[1] {
	case pmpAddress:
		return s.AddressNATPMP()
	case pmpMapUDP, pmpMapTCP:
		if len(request) < 12 {
			return nil
		}
		return s.mapNATPMP(ctx, request, from)
	}
	return s.headNATPMP(request[1], pmpUnsupportedOpcode)
}

func (s *Server) headNATPMP(opcode byte, result uint16) []byte {
	b := []byte{versionNATPMP, response | opcode}
	b = binary.BigEndian.AppendUint16(b, result)
	return binary.BigEndian.AppendUint32(b, s.epoch())
}

// AddressNATPMP is the response with the external address. It is also the announcement
// that the address has changed (RFC 6886, 3.2.1).
func (s *Server) AddressNATPMP() []byte {
	address := s.External()
	if !address.IsValid() {
		return append(s.headNATPMP(pmpAddress, pmpNetworkFailure), 0, 0, 0, 0)
	}
	a := address.As4()
	return append(s.headNATPMP(pmpAddress, pmpSuccess), a[:]...)
}

func (s *Server) mapNATPMP(ctx context.Context, request []byte, from netip.Addr) []byte {
	protocol := mapping.UDP
	if request[1] == pmpMapTCP {
		protocol = mapping.TCP
	}
	internal := netip.AddrPortFrom(from, binary.BigEndian.Uint16(request[4:]))
	lifetime := min(binary.BigEndian.Uint32(request[8:]), s.Longest)
	var external uint16
	var err error
	switch {
	case lifetime == 0:
		err = s.releaseNATPMP(ctx, protocol, internal)
	case internal.Port() == 0:
		err = mapping.ErrNotAllowed // "all ports" can only be deleted
	case !s.External().IsValid():
		err = errNoAddress
	default:
		external, err = s.add(ctx, &mapping.Request{
			By: mapping.PCP, Protocol: protocol, Internal: internal, External: binary.BigEndian.Uint16(request[6:]),
		}, lifetime)
	}
	if err != nil {
		s.failed(from, err)
		external, lifetime = 0, 0
	}
	b := s.headNATPMP(request[1], resultNATPMP(err))
	b = binary.BigEndian.AppendUint16(b, internal.Port())
	b = binary.BigEndian.AppendUint16(b, external)
	return binary.BigEndian.AppendUint32(b, lifetime)
}

var errNoAddress = errors.New("there is no external address")

// add makes or renews a mapping, and returns its external port.
func (s *Server) add(ctx context.Context, r *mapping.Request, lifetime uint32) (external uint16, err error) {
	now, _ := s.Clock()
	r.Lease.Ends = now + int64(lifetime)
	err = s.Change(ctx, func(t *mapping.Table) error {
		m, err := t.Add(r)
		external = m.External
		return err
	})
	return external, err
}

// releaseNATPMP ends a mapping, or with port 0 all of a host with a protocol. None is no
// error (RFC 6886, 3.4).
func (s *Server) releaseNATPMP(ctx context.Context, p mapping.Protocol, internal netip.AddrPort) error {
	return s.Change(ctx, func(t *mapping.Table) error {
		return releaseOwn(t, internal, func(m *mapping.Mapping) bool { return m.Protocol == p }, [12]byte{})
	})
}

// releaseOwn ends leases of a host: of one port, or with port 0 of all that have the nonce.
func releaseOwn(t *mapping.Table, internal netip.AddrPort, is func(*mapping.Mapping) bool, nonce [12]byte) error {
	strange := false
	t.Release(mapping.PCP, func(m *mapping.Mapping) bool {
		if m.Internal.Addr() != internal.Addr() || internal.Port() != 0 && m.Internal.Port() != internal.Port() || !is(m) {
			return false
		}
		own := m.Leases[mapping.PCP].Nonce == nonce
		strange = strange || !own
		return own
	})
	if strange && internal.Port() != 0 {
		return mapping.ErrOthers
	}
	return nil
}

func resultNATPMP(err error) uint16 {
	switch {
	case err == nil:
		return pmpSuccess
	case errors.Is(err, mapping.ErrNotAllowed), errors.Is(err, mapping.ErrOthers):
		return pmpNotAuthorized
	case errors.Is(err, mapping.ErrFull), errors.Is(err, mapping.ErrQuota), errors.Is(err, mapping.ErrTaken):
		return pmpOutOfResources
	}
	return pmpNetworkFailure
}
