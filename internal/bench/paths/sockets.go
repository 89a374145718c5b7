package paths

import (
	"context"
	"errors"
	"fmt"

	"weir/internal/bench/testbed"
	"weir/internal/bench/traffic"
)

// SocketOptions choose how a path is started for sockets.
type SocketOptions struct {
	Hook string // weir's hook: xdp or tcx
	// States is the number of connections that it has to hold. 0 means as many as in
	// the examples.
	States int
	// GRO makes frames enter the firewall by generic receive offload, which joins
	// frames of one connection before the kernel routes them.
	GRO bool
	// Detour has a device of the far host carry the packets of the sockets at DetourServer, as one does those of
	// a session.
	Detour bool
}

// StartForSockets starts a path that carries the traffic of sockets, which excludes
// generator and redirect. It returns the function that stops it.
func StartForSockets(ctx context.Context, b *testbed.Testbed, name string, o SocketOptions) (stop func() error, err error) {
	p, err := New(name, WeirOptions{Hook: o.Hook})
	if err != nil {
		return nil, err
	}
	var undo UndoList
	w := &traffic.Setup{Testbed: b, Effect: p.Effect, Case: traffic.Case{Flows: o.States, Family: 4, Protocol: traffic.TCP}}
	if o.GRO {
		err = enterGRO(w, &undo)
	}
	if err == nil && o.Detour && name != WeirNATPPPoE {
		err = startDetour(ctx, b, &undo)
	}
	if err == nil {
		err = p.carrySockets(ctx, w, &undo)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", name, err), undo.Run())
	}
	return undo.Run, nil
}

func (p *Path) carrySockets(ctx context.Context, w *traffic.Setup, undo *UndoList) error {
	switch p.Name {
	case Kernel:
		return turnOnForwarding(w, undo)
	case Nft, NftNAT:
		if err := turnOnForwarding(w, undo); err != nil {
			return err
		}
		return startNft(ctx, w, undo)
	case WeirNATPPPoE:
		return startSessionForSockets(ctx, w, undo)
	case Weir, WeirNAT:
		stop, err := startDaemon(ctx, w, WeirOptions{Hook: p.Hook})
		if err == nil {
			undo.Add(stop)
		}
		return err
	}
	return fmt.Errorf("path %s does not carry the traffic of sockets", p.Name)
}
