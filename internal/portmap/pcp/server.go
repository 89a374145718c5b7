package pcp

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"

	"weir/internal/portmap/mapping"
)

// Ports of NAT-PMP and PCP.
const (
	Port         = 5351 // of servers
	AnnouncePort = 5350 // of clients that listen for announcements
)

// A Server answers requests.
type Server struct {
	// Change changes the mappings and loads their rules. After an error nothing has changed.
	Change func(context.Context, func(*mapping.Table) error) error
	// Clock returns the second since boot, and the seconds since the mappings were lost.
	Clock func() (now int64, epoch uint32)
	// External returns the address that hosts are told; not valid: there is none.
	External func() netip.Addr
	// Connection returns how the other end sees a host's end of a connection, and the seconds
	// until it expires; ok is false if there is none.
	Connection func(p mapping.Protocol, host, peer netip.AddrPort) (seen netip.AddrPort, left uint32, ok bool)
	// Local reports whether a host may ask at all.
	Local    func(netip.Addr) bool
	Shortest uint32 // lifetime of PCP in seconds
	Longest  uint32 // lifetime of both in seconds
	Others   bool   // a host may map for another, by THIRD_PARTY
	Log      *slog.Logger
}

// MostBytes is how long a message may be (RFC 6887, 7).
const MostBytes = 1100

// Versions, in the first byte.
const (
	versionNATPMP = 0
	versionPCP    = 2
)

// response is the bit of an opcode that says that the message is none of a client. Servers
// that answered such messages could be made to talk to each other for ever.
const response = 0x80

// Answer returns the response to a request; nil if there is none.
func (s *Server) Answer(ctx context.Context, request []byte, from netip.Addr) []byte {
	if len(request) < 2 || request[1]&response != 0 || !s.Local(from) {
		return nil
	}
	if request[0] == versionNATPMP {
		if !from.Is4() {
			return nil
		}
		return s.answerNATPMP(ctx, request, from)
	}
	return s.answerPCP(ctx, request, from)
}

// epoch returns the seconds since the mappings were lost.
func (s *Server) epoch() uint32 {
	_, epoch := s.Clock()
	return epoch
}

func (s *Server) failed(from netip.Addr, err error) {
	if !errors.Is(err, context.Canceled) {
		s.Log.Warn("a mapping is refused", "host", from, "error", err)
	}
}
