package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/fw/rundir"
	"weir/internal/vpn/inquiry"
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

A tunnel of IPsec has one peer, so its interface is named. There are identities, proposals, traffic
selectors, networks, MTU and lifetimes, signed by the preshared key or the certificate.`,
		Args: exactly(1, "name one peer, or the interface of a tunnel of IPsec"),
		RunE: func(_ *cobra.Command, args []string) error {
			folder, err := env.daemonFolder()
			if err != nil {
				return err
			}
			if text, err := siteSummary(folder, args[0]); err != nil || text != nil {
				if err == nil {
					_, err = env.Stdout.Write(text)
				}
				return err
			}
			e, err := findEnd(folder, on, "peer "+args[0], func(p *resolve.Peer) bool { return p.Name == args[0] })
			if err != nil {
				return err
			}
			text, err := e.Write(time.Now())
			if err == nil {
				_, err = env.Stdout.Write(text)
			}
			return err
		},
	}
	c.Flags().StringVar(&on, "on", "", "the tunnel's `interface`, if several have a peer of that name")
	return c
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
	if s, err := summary.ReadSite(text); err == nil {
		return compareSite(folder, s, args)
	}
	s, err := summary.Read(text)
	if err != nil {
		return nil, fmt.Errorf("read a summary: %s: %w", path, err)
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

// oneOrWith wants the name of one peer, which may be left out with a summary.
func oneOrWith(with *string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 1 || len(args) == 0 && *with != "" {
			return nil
		}
		return errors.New("name one peer")
	}
}
