package kernel

import (
	"context"
	"time"

	"weir/internal/vpn/echo"
	"weir/internal/vpn/tunnel"
)

// Ask sends a request through the interface. The kernel's engine lets routers cut its messages over IPv4.
func (e *Engine) Ask(ctx context.Context, q *tunnel.Question) (took time.Duration, answered bool) {
	a, err := echo.Open(e.name, q.To)
	if err != nil {
		return 0, false
	}
	defer a.Close()
	return a.Ask(ctx, q.Size, q.Wait)
}

// Resize does nothing: the kernel knows its interface.
func (*Engine) Resize(int) {}

// Cut reports whether it can be chosen which messages are cut.
func (*Engine) Cut(bool) bool { return false }

// Beyond reports that a request has to fit into the interface's MTU.
func (*Engine) Beyond() bool { return false }
