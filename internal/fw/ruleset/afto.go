package ruleset

import (
	"net/netip"

	"weir/pf/ast"
	"weir/pf/resolve"
)

// maxEmbedding is the longest IPv6 prefix that an IPv4 address can follow, and noEmbedding a
// length behind which none can (RFC 6052, 2.2).
const (
	maxEmbedding = 96
	noEmbedding  = 1
)

// afTo adds a translation to the other address family to a rule's action.
func (c *compiler) afTo(r *resolve.Rule, a *Rule) (err error) {
	t := r.AfTo
	a.Family = 4
	if t.Family == ast.Inet6 {
		a.Family = 6
	}
	if t.From.StaticPort {
		a.Flags |= StaticPort
	}
	a.NatLow, a.NatHigh = t.From.PortLow, max(t.From.PortLow, t.From.PortHigh)
	a.NatStride, a.NatBlock = t.From.Stride, t.From.Block
	if t.To != nil {
		a.RdrLow = t.To.PortLow
	}
	if a.NatPool, a.SrcBits, err = c.family(t.From); err != nil {
		return err
	}
	switch {
	case t.To != nil:
		a.RdrPool, a.DstBits, err = c.family(t.To)
	case a.Family == 4:
		a.DstBits = maxEmbedding
		if p := r.To.Addr.Prefix; p.IsValid() {
			a.DstBits = embedding(p.Bits())
		}
	case len(t.From.Addrs) == 0: // a table without addresses of the family
	case t.From.Addrs[0].Kind == resolve.InterfaceAddress: // the network of the address that the pool gives
		bits, _ := t.SourceNetwork()
		a.DstBits = embedding(bits)
	default: // the network of the source
		p := t.From.Addrs[0].Prefix
		bits := min(p.Bits(), maxEmbedding)
		a.RdrPool, err = c.network(netip.PrefixFrom(p.Addr(), bits))
		a.DstBits = embedding(bits)
	}
	return err
}

// family appends a pool of the new family. bits: its one network holds IPv4 addresses; 0: it
// has addresses of its own.
func (c *compiler) family(t *resolve.Translation) (number uint32, bits uint8, err error) {
	if n, ok := t.Embedding(); ok {
		number, err = c.network(t.Addrs[0].Prefix)
		return number, embedding(n), err
	}
	number, err = c.pool(targetsOf(t))
	return number, 0, err
}

// network appends a pool of the first address of a network alone.
func (c *compiler) network(p netip.Prefix) (uint32, error) {
	first := p.Masked().Addr()
	return c.pool(targetsOf(&resolve.Translation{Addrs: []resolve.Address{
		{Kind: resolve.PrefixAddress, Prefix: netip.PrefixFrom(first, first.BitLen())},
	}}))
}

// embedding returns the length of a prefix as rules have it.
func embedding(bits int) uint8 {
	switch bits {
	case 32, 40, 48, 56, 64, maxEmbedding:
		return uint8(bits)
	}
	return noEmbedding
}
