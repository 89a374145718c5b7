package pcp

import (
	"context"
	"encoding/binary"
	"errors"
	"net/netip"
	"slices"

	"weir/internal/portmap/mapping"
)

// answerPCP answers a request with another version than 0.
func (s *Server) answerPCP(ctx context.Context, request []byte, from netip.Addr) []byte {
	if request[0] != versionPCP {
		return s.failure(request, UnsupportedVersion)
	}
	m, failed := parse(request)
	if failed != Success {
		return s.failure(request, failed)
	}
	if m.client != from {
		return s.failure(request, AddressMismatch)
	}
	if m.opcode == opAnnounce {
		return s.announce(request, &m)
	}
	r, failed := parseMap(&m)
	if failed != Success {
		return s.failure(request, failed)
	}
	answer := s.answerMap
	if m.opcode == opPeer {
		answer = s.answerPeer
	}
	b, failed := answer(ctx, &m, &r)
	if failed != Success {
		return s.failure(request, failed)
	}
	return b
}

// head returns the head of a response (RFC 6887, 7.2).
func (s *Server) head(opcode byte, result Result, lifetime uint32) []byte {
	b := []byte{versionPCP, response | opcode, 0, byte(result)}
	b = binary.BigEndian.AppendUint32(b, lifetime)
	b = binary.BigEndian.AppendUint32(b, s.epoch())
	return append(b, make([]byte, 12)...)
}

// failure returns an error with what the client has sent, as far as it fits.
func (s *Server) failure(request []byte, result Result) []byte {
	b := s.head(request[1], result, result.lifetime())
	if len(request) > headBytes {
		b = append(b, request[headBytes:min(len(request), MostBytes)]...)
	}
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

// announce answers the question whether the server has lost its mappings: the epoch says so.
func (s *Server) announce(request []byte, m *message) []byte {
	for _, o := range m.options {
		if o.code < optionOptional {
			return s.failure(request, UnsupportedOption)
		}
	}
	return s.head(opAnnounce, Success, 0)
}

// Announcement tells all hosts that the server has restarted or has another address
// (RFC 6887, 14.1.3).
func (s *Server) Announcement() []byte { return s.head(opAnnounce, Success, 0) }

// hostOf returns the host that a request is about.
func (s *Server) hostOf(m *message, r *mapRequest) (netip.Addr, Result) {
	switch {
	case !r.third.IsValid():
		return m.client, Success
	case !s.Others: // unless the administrator allows it, the option counts as unknown (RFC 6887, 13.1)
		return netip.Addr{}, UnsupportedOption
	case r.third == m.client:
		return netip.Addr{}, MalformedRequest
	case !s.Local(r.third):
		return netip.Addr{}, NotAuthorized
	}
	return r.third, Success
}

// answerMap makes, renews or ends a mapping.
func (s *Server) answerMap(ctx context.Context, m *message, r *mapRequest) ([]byte, Result) {
	host, failed := s.hostOf(m, r)
	if failed != Success {
		return nil, failed
	}
	if r.protocol == 0 && r.internal != 0 {
		return nil, MalformedRequest
	}
	if m.lifetime == 0 {
		return s.releaseMap(ctx, r, host)
	}
	return s.addMap(ctx, m, r, host)
}

// addMap makes or renews a mapping.
func (s *Server) addMap(ctx context.Context, m *message, r *mapRequest, host netip.Addr) ([]byte, Result) {
	protocol := mapping.Protocol(r.protocol)
	if protocol != mapping.TCP && protocol != mapping.UDP || r.internal == 0 {
		return nil, UnsupportedProtocol // also "all protocols" and "all ports"
	}
	address := s.assigned(host)
	if !address.IsValid() {
		return nil, NetworkFailure
	}
	if r.preferFailure && r.address.IsValid() && !r.address.IsUnspecified() && r.address != address {
		return nil, CannotProvideExternal
	}
	q := &mapping.Request{
		By: mapping.PCP, Protocol: protocol, Internal: netip.AddrPortFrom(host, r.internal), External: r.external,
		Exactly: r.preferFailure, Lease: mapping.Lease{Nonce: r.nonce},
	}
	lifetime := min(max(m.lifetime, s.Shortest), s.Longest)
	now, _ := s.Clock()
	q.Lease.Ends = now + int64(lifetime)
	var external uint16
	err := s.Change(ctx, func(t *mapping.Table) (err error) {
		if q.Filters, err = filters(t, q, r); err != nil {
			return err
		}
		made, err := t.Add(q)
		external = made.External
		return err
	})
	if err != nil {
		s.failed(host, err)
		return nil, resultOf(err, r)
	}
	return s.mapped(r, lifetime, external, address), Success
}

// filters returns those of a mapping after a request: what it had, unless that is cleared,
// and what the request adds.
func filters(t *mapping.Table, q *mapping.Request, r *mapRequest) (all []mapping.Filter, err error) {
	q.Filtered = r.filtered
	known, ok := t.Of(mapping.PCP, q.Protocol, q.Internal)
	if ok && known.Peer { // it was for single peers, which nobody has asked for as filters
		q.Filtered = true
	} else if ok && !r.clears {
		all = slices.Clone(known.Filters)
	}
	for _, f := range r.filters {
		if f.from.Addr().Is4() != q.Internal.Addr().Is4() {
			return nil, mapping.ErrFilters
		}
		if one := (mapping.Filter{From: f.from, Port: f.port}); !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	if len(all) > mapping.MostFilters {
		return nil, mapping.ErrFilters
	}
	return all, nil
}

// assigned returns the external address of a host's mappings. That of IPv6 is its own.
func (s *Server) assigned(host netip.Addr) netip.Addr {
	if host.Is6() {
		return host
	}
	return s.External()
}

// releaseMap ends a mapping; with port 0 all of the protocol, or of both, that the client
// has made with the same nonce. None is no error (RFC 6887, 15).
func (s *Server) releaseMap(ctx context.Context, r *mapRequest, host netip.Addr) ([]byte, Result) {
	is := func(m *mapping.Mapping) bool { return r.protocol == 0 || m.Protocol == mapping.Protocol(r.protocol) }
	err := s.Change(ctx, func(t *mapping.Table) error {
		return releaseOwn(t, netip.AddrPortFrom(host, r.internal), is, r.nonce)
	})
	if err != nil {
		s.failed(host, err)
		return nil, resultOf(err, r)
	}
	return s.mapped(r, 0, r.external, r.address), Success
}

// mapped returns the response of success.
func (s *Server) mapped(r *mapRequest, lifetime uint32, external uint16, address netip.Addr) []byte {
	b := s.head(r.opcode, Success, lifetime)
	b = append(b, r.nonce[:]...)
	b = append(b, r.protocol, 0, 0, 0)
	b = binary.BigEndian.AppendUint16(b, r.internal)
	b = binary.BigEndian.AppendUint16(b, external)
	a := address.As16()
	b = append(b, a[:]...)
	if r.opcode == opPeer {
		b = binary.BigEndian.AppendUint16(b, r.peer.Port())
		a = r.peer.Addr().As16()
		b = append(append(b, 0, 0), a[:]...)
	}
	for _, o := range r.done {
		b = append(b, o.raw...)
	}
	return b
}

func resultOf(err error, r *mapRequest) Result {
	switch {
	case errors.Is(err, mapping.ErrTaken):
		if r.preferFailure {
			return CannotProvideExternal
		}
		return NoResources
	case errors.Is(err, mapping.ErrNotAllowed), errors.Is(err, mapping.ErrOthers):
		return NotAuthorized
	case errors.Is(err, mapping.ErrFull):
		return NoResources
	case errors.Is(err, mapping.ErrQuota):
		return ExceedsQuota
	case errors.Is(err, mapping.ErrFilters):
		return ExcessiveRemotePeers
	}
	return NetworkFailure
}
