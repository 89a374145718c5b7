package userspace

import (
	"context"
	"time"

	"weir/internal/vpn/device"
	"weir/internal/vpn/tunnel"
)

// Ask sends a request past the interface, so that neither its MTU nor the rules there count.
func (e *Engine) Ask(ctx context.Context, q *tunnel.Question) (took time.Duration, answered bool) {
	p := e.device.LookupPeer(device.NoisePublicKey(q.Peer))
	if p == nil {
		return 0, false
	}
	took, answered, _ = e.path.Ask(ctx, p, q.From, q.To, q.Size, q.Wait) //nolint:errcheck // what cannot be sent is not answered
	return took, answered
}

// Resize says how large the interface's packets are now.
func (e *Engine) Resize(mtu int) { e.device.SetMTU(mtu) }

// Cut has messages over IPv4 be cut that are too long for the path.
func (e *Engine) Cut(on bool) bool {
	e.path.Cut(on)
	return true
}

// Beyond reports that the interface's MTU does not count.
func (*Engine) Beyond() bool { return true }
