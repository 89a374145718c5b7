package keeper

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/netip"
	"slices"

	"weir/internal/vpn/key"
	"weir/pf/resolve"
)

// A Summarize returns what an end of a tunnel is configured as, signed for one of its peers.
type Summarize func(t *resolve.WireGuard, p *resolve.Peer, private, preshared key.Secret) ([]byte, error)

// summarize tells a peer what this end is configured as for it.
func (t *teller) summarize(w http.ResponseWriter, tunnel string, of *resolve.Peer) {
	text, err := t.summary(tunnel, of.Key)
	if err != nil {
		http.Error(w, "there is no summary now", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(text) //nolint:errcheck // the other end has gone
}

// summary returns the summary of a tunnel for the peer with a public key, of the keys that are in use.
func (k *keeper) summary(tunnel, peer string) ([]byte, error) {
	k.mu.Lock()
	t := k.tunnels[tunnel]
	if t == nil || t.config == nil || k.Summarize == nil {
		k.mu.Unlock()
		return nil, errors.New("the tunnel is not up")
	}
	of, private := t.of, t.config.Private
	at := slices.IndexFunc(of.Peers, func(p resolve.Peer) bool { return p.Key == peer })
	var preshared key.Secret
	if public, err := key.ParsePublic(peer); err == nil {
		if is := t.before(public); is != nil {
			preshared = is.Preshared
		}
	}
	k.mu.Unlock()
	if at < 0 {
		return nil, fs.ErrNotExist
	}
	return k.Summarize(&of, &of.Peers[at], private, preshared)
}

// AskSummary asks a peer behind a tunnel's interface, at an address of its own, what its end is configured as. What it
// says is not to be trusted before its signature was checked.
func AskSummary(ctx context.Context, tunnel string, at netip.Addr) ([]byte, error) {
	return askPeer(ctx, tunnel, at, "/summary", ErrNoSummary)
}
