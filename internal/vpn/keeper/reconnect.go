package keeper

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"weir/internal/fw/rundir"
	"weir/internal/vpn/key"
	"weir/pf/resolve"
)

// Reconnect asks the process that keeps the tunnels to agree on other keys with a peer. on names the tunnel's interface; empty: one tunnel
// has a peer of that name.
func Reconnect(ctx context.Context, f rundir.Folder, peer, on string) error {
	return ask(ctx, f, http.MethodPost, "/reconnect?"+url.Values{"peer": {peer}, "on": {on}}.Encode(), nil, nil)
}

func (k *keeper) serveReconnect(mux *http.ServeMux) {
	mux.HandleFunc("POST /reconnect", func(w http.ResponseWriter, r *http.Request) {
		if err := k.reconnect(r.FormValue("peer"), r.FormValue("on")); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	})
}

// reconnect has other keys be agreed on with a peer.
func (k *keeper) reconnect(peer, on string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	var found *running
	var public string
	for name, t := range k.tunnels {
		at := slices.IndexFunc(t.of.Peers, func(p resolve.Peer) bool { return p.Name == peer })
		if at < 0 || on != "" && on != name {
			continue
		}
		if found != nil {
			return fmt.Errorf("several tunnels have a peer %s: name one by its interface (--on)", peer)
		}
		found, public = t, t.of.Peers[at].Key
	}
	switch {
	case found == nil:
		return fmt.Errorf("no WireGuard tunnel of the rules in force has a peer %s", peer)
	case found.engine == nil:
		return errors.New("no engine works for the tunnel")
	}
	of, err := key.ParsePublic(public)
	if err != nil {
		return err
	}
	if err := found.engine.Renew(of); err != nil {
		return err
	}
	found.note(OfHandshake, peer, "a handshake is asked for by command")
	return nil
}
