package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/fw/rundir"
	"weir/internal/vpn/inquiry"
	"weir/internal/vpn/keeper"
	"weir/internal/vpn/key"
	"weir/internal/vpn/summary"
	"weir/pf/resolve"
)

func newVPNSummaryCommand(env *Env) *cobra.Command {
	var on string
	c := &cobra.Command{
		Use:   "summary PEER|INTERFACE",
		Short: "write what this end of a tunnel is configured as, signed for its peer",
		Long: `summary prints what the rules in force say of a tunnel and one of its peers: public keys, port, MTU,
addresses, allowed networks, endpoint, keepalive. The peer compares it with what it has:

    weir vpn summary branch >hq.json        here
    weir vpn check --with hq.json           at the branch

It is signed by a key that only the two ends can compute. It has no secret in it, and nothing of other
peers.

A tunnel of IPsec has one peer, so its interface is named; if a peer has the same name, --on tells which. There are identities, proposals, traffic
selectors, networks, MTU and lifetimes, signed by the preshared key or the certificate.`,
		Args: exactly(1, "name one peer, or the interface of a tunnel of IPsec"),
		RunE: func(_ *cobra.Command, args []string) error {
			folder, err := env.daemonFolder()
			if err != nil {
				return err
			}
			text, err := writeSummary(folder, on, args[0], time.Now())
			if err == nil {
				_, err = env.Stdout.Write(text)
			}
			return err
		},
	}
	c.Flags().StringVar(&on, "on", "", "the tunnel's `interface`, if several have a peer of that name")
	return c
}

// writeSummary returns the summary of a tunnel of IPsec, or of a peer.
func writeSummary(folder rundir.Folder, on, name string, now time.Time) ([]byte, error) {
	tunnels, err := readTunnels(folder)
	if err != nil {
		return nil, err
	}
	is := func(p *resolve.Peer) bool { return p.Name == name }
	for i := range tunnels.IKEv2 {
		t := &tunnels.IKEv2[i]
		if t.Name != name || on != "" && on != name {
			continue
		}
		for j := range tunnels.WireGuard {
			if w := &tunnels.WireGuard[j]; on == "" && slices.ContainsFunc(w.Peers, func(p resolve.Peer) bool { return is(&p) }) {
				return nil, fmt.Errorf("a tunnel of IPsec and a peer of %s have the name %s: name one with --on %s or --on %s", w.Name, name, name, w.Name)
			}
		}
		return summary.WriteSite(t, now)
	}
	e, err := findEnd(folder, on, "peer "+name, is)
	if err != nil {
		return nil, err
	}
	return e.Write(now)
}

// findEnd finds what the rules in force have of a peer, and reads the keys.
func findEnd(folder rundir.Folder, on, what string, is func(p *resolve.Peer) bool) (*summary.End, error) {
	tunnels, err := readTunnels(folder)
	if err != nil {
		return nil, err
	}
	all := tunnels.WireGuard
	var e *summary.End
	for i := range all {
		for j := range all[i].Peers {
			if !is(&all[i].Peers[j]) || on != "" && all[i].Name != on {
				continue
			}
			if e != nil {
				return nil, fmt.Errorf("%s and %s have a %s: name one with --on", e.Tunnel.Name, all[i].Name, what)
			}
			e = &summary.End{Tunnel: &all[i], Peer: &all[i].Peers[j]}
		}
	}
	if e == nil {
		return nil, fmt.Errorf("no tunnel of the rules in force has a %s", what)
	}
	if e.Private, err = key.ReadFile(e.Tunnel.KeyFile); err == nil && e.Peer.PSKFile != "" {
		e.Preshared, err = key.ReadFile(e.Peer.PSKFile)
	}
	return e, err
}

// summarize returns the summary of an end whose keys are known.
func summarize(t *resolve.WireGuard, p *resolve.Peer, private, preshared key.Secret) ([]byte, error) {
	e := summary.End{Tunnel: t, Peer: p, Private: private, Preshared: preshared}
	return e.Write(time.Now())
}

// compareFar compares what this end has with what a peer says, inside the tunnel, that it has.
func (env *Env) compareFar(ctx context.Context, name, on string) ([]inquiry.Finding, error) {
	folder, err := env.daemonFolder()
	if err != nil {
		return nil, err
	}
	f, err := findPeer(ctx, folder, name, on)
	if err != nil {
		return nil, err
	}
	targets := inquiry.Targets(f.Peer.Allowed)
	if len(targets) == 0 {
		return nil, fmt.Errorf("%s has no address to ask: there is no single one among its allowed networks", name)
	}
	for _, at := range targets {
		text, failed := keeper.AskSummary(ctx, f.Tunnel.Interface, at)
		if failed == nil { // else, or if this is no summary, another address may be the peer's own
			var found []inquiry.Finding
			if found, failed = compareText(folder, text, at.String(), f.Tunnel.Interface, []string{name}); failed == nil {
				return found, nil
			}
		}
		err = failed
	}
	return []inquiry.Finding{{Question: "summary", Answer: err.Error()}}, nil
}

// mostSummary is how many bytes of a summary are read.
const mostSummary = 1 << 20

// compareWith compares what this end has with the summary of the other end. Without a name the peer is the one with
// the summary's key.
func (env *Env) compareWith(path, on string, args []string) ([]inquiry.Finding, error) {
	r := env.Stdin
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("read a summary: %w", err)
		}
		defer f.Close()
		r = f
	}
	text, err := io.ReadAll(io.LimitReader(r, mostSummary))
	if err != nil {
		return nil, fmt.Errorf("read a summary: %w", err)
	}
	folder, err := env.daemonFolder()
	if err != nil {
		return nil, err
	}
	return compareText(folder, text, path, on, args)
}

// compareText likewise compares with the text of a summary, which came from path.
func compareText(folder rundir.Folder, text []byte, path, on string, args []string) ([]inquiry.Finding, error) {
	site, err := summary.ReadSite(text)
	if err == nil {
		return compareSite(folder, site, on, args)
	}
	var s *summary.Signed
	if errors.Is(err, summary.ErrNone) {
		s, err = summary.Read(text)
	}
	if err != nil {
		return nil, fmt.Errorf("read a summary: %s: %w", path, err)
	}
	if own, err := ownSummary(folder, s); err == nil && own && len(args) == 0 {
		return []inquiry.Finding{summary.Own()}, nil
	}
	what, is := "peer with the public key "+s.From.String(), func(p *resolve.Peer) bool { return p.Key == s.From.String() }
	if len(args) > 0 {
		what, is = "peer "+args[0], func(p *resolve.Peer) bool { return p.Name == args[0] }
	}
	e, err := findEnd(folder, on, what, is)
	if err != nil {
		return nil, err
	}
	return e.Compare(s, time.Now()), nil
}

// ownSummary reports whether a summary is that of a tunnel of this end.
func ownSummary(folder rundir.Folder, s *summary.Signed) (bool, error) {
	tunnels, err := readTunnels(folder)
	if err != nil {
		return false, err
	}
	for i := range tunnels.WireGuard {
		if k, err := key.ReadFile(tunnels.WireGuard[i].KeyFile); err == nil && k.Public() == s.From {
			return true, nil
		}
	}
	return false, nil
}

// oneOrWith wants the name of one peer, which may be left out with a summary.
func oneOrWith(with *string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 1 || len(args) == 0 && *with != "" {
			return nil
		}
		return errors.New("name one peer")
	}
}
