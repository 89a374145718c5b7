package pcp

import (
	"context"
	"net/netip"
	"slices"

	"weir/internal/portmap/mapping"
)

// answerPeer tells a host how the other end of a connection sees it, and keeps that so (RFC
// 6887, 12). If the port has a mapping, or the connection exists, it is what these have. Else the
// host gets a mapping that lets this peer in alone, so that its next connection has that port.
func (s *Server) answerPeer(ctx context.Context, m *message, r *mapRequest) ([]byte, Result) {
	host, failed := s.hostOf(m, r)
	if failed != Success {
		return nil, failed
	}
	protocol := mapping.Protocol(r.protocol)
	switch peer := r.peer.Addr(); {
	case r.protocol == 0 || r.internal == 0 || r.peer.Port() == 0 || peer.IsUnspecified() || peer.Is4() != host.Is4():
		return nil, MalformedRequest
	case protocol != mapping.TCP && protocol != mapping.UDP:
		return nil, UnsupportedProtocol
	}
	address := s.assigned(host)
	if !address.IsValid() {
		return nil, NetworkFailure
	}
	now, _ := s.Clock()
	lifetime := min(max(m.lifetime, s.Shortest), s.Longest)
	seen := netip.AddrPortFrom(address, r.external)
	q := &mapping.Request{
		By: mapping.PCP, Protocol: protocol, Internal: netip.AddrPortFrom(host, r.internal), External: r.external,
		Lease: mapping.Lease{Nonce: r.nonce, Ends: now + int64(lifetime)}, Peer: true,
	}
	peer := mapping.Filter{From: netip.PrefixFrom(r.peer.Addr(), r.peer.Addr().BitLen()), Port: r.peer.Port()}
	err := s.Change(ctx, func(t *mapping.Table) error {
		known, ok := t.Of(mapping.PCP, protocol, q.Internal)
		if ok {
			seen = netip.AddrPortFrom(address, known.External)
			l := known.Leases[mapping.PCP]
			if l == nil || l.Nonce != r.nonce { // another's: it is told, and not changed
				lifetime = min(lifetime, known.Left(now))
				return nil
			}
			lifetime = max(lifetime, l.Left(now)) // it never gets shorter
			q.Lease.Ends = now + int64(lifetime)
			q.Filters, q.Filtered = slices.Clone(known.Filters), known.Peer
		} else if end, left, ok := s.Connection(protocol, q.Internal, r.peer); ok {
			seen, lifetime = end, left
			return nil
		}
		if !slices.Contains(q.Filters, peer) && (!ok || known.Peer) {
			q.Filters = append(q.Filters, peer)
		}
		made, err := t.Add(q)
		seen = netip.AddrPortFrom(address, made.External)
		return err
	})
	if err != nil {
		s.failed(host, err)
		return nil, resultOf(err, r)
	}
	return s.mapped(r, lifetime, seen.Port(), seen.Addr()), Success
}
