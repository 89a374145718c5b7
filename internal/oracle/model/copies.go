package model

import (
	"weir/internal/fw/state"
	"weir/pf/resolve"
)

// leavesToTCX reports whether XDP leaves a packet that meets rules, follows a first fragment, or
// belongs to a connection with copies: XDP cannot copy it. The copies themselves are not
// modelled.
func (m *Model) leavesToTCX(p *packet) bool { return m.box.Copies && p.hook == XDP }

// isCopied reports whether copies of the connection's packets are sent.
func (c *connection) isCopied() bool {
	return (c.Flow[0].Flags|c.Flow[1].Flags)&state.FlowCopied != 0
}

// noteCopies notes the sides whose rules ask for copies.
func (c *connection) noteCopies(in, out *crossing) {
	for side, cr := range []*crossing{in, out} {
		if !cr.copied {
			continue
		}
		c.Flags |= state.Log
		if cr.copies || cr.rule.State != resolve.KeepState { // without state, packets are copied one by one
			c.Flow[side].Flags |= state.FlowCopied
		}
	}
}
