package cli

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"weir/internal/fw/rundir"
	"weir/internal/host/netif"
	"weir/internal/vpn/inquiry"
	"weir/internal/vpn/keeper"
)

func newVPNCheckCommand(env *Env) *cobra.Command {
	var on, with string
	var to []string
	var asJSON, far bool
	c := &cobra.Command{
		Use:   "check PEER|INTERFACE",
		Short: "find out why nothing goes through a tunnel to a peer, or through one of IPsec; exit status 1 if something is wrong",
		Long: `check looks at what the tunnel's engine knows of a peer, and at the routes to its networks. Then it
sends echo requests through the tunnel: small ones, and if they are answered, packets as long as the
interface allows, which no router may cut. It asks the hosts among the peer's allowed networks, or
those that --to names.

It tells apart: no keys, no endpoint, no handshake, wrong routes, packets that the rules here block,
one way only, and packets that vanish because they are too long.

--with compares the rules in force with what the peer's "weir vpn summary" has written, and sends nothing:
keys, preshared keys, networks, ports, MTU, endpoints and keepalives. The tunnel need not be up for that.
--far does the same with a summary that it asks the peer for, inside the tunnel: if that is a weir whose
statement of this end has "show-summary", and its rules pass TCP port 51820 from here.
The peer is with --with the one with the summary's key, unless it is named. For tunnels of IPsec it compares
identities, preshared keys or certificates, proposals, traffic selectors, networks, MTU and who begins.

A tunnel of IPsec has one peer, so its interface is named. There it also tells apart: charon does not
run, the files of keys, what the peer has refused and what that means, networks that the peer left out.`,
		Args: func(c *cobra.Command, args []string) error {
			if far && len(args) == 0 {
				return errors.New("name one peer")
			}
			return oneOrWith(&with)(c, args)
		},
		RunE: func(c *cobra.Command, args []string) (err error) {
			var findings []inquiry.Finding
			switch {
			case far && (with != "" || to != nil):
				return &UsageError{errors.New("vpn check: --far asks the peer itself: without --with and --to")}
			case far:
				findings, err = env.compareFar(c.Context(), args[0], on)
			case with != "":
				findings, err = env.compareWith(with, on, args)
			default:
				findings, err = env.checkPeer(c.Context(), args[0], on, to)
			}
			if err != nil {
				return err
			}
			if asJSON {
				err = env.printJSON(findings)
			}
			wrong := false
			for _, f := range findings {
				wrong = wrong || !f.OK
				if mark := "ok   "; !asJSON {
					if !f.OK {
						mark = "wrong"
					}
					fmt.Fprintf(env.Stdout, "%s  %s: %s\n", mark, f.Question, f.Answer)
				}
			}
			if err == nil && wrong {
				return ErrSilent
			}
			return err
		},
	}
	c.Flags().StringVar(&on, "on", "", "the tunnel's `interface`, if several have a peer of that name")
	c.Flags().StringVar(&with, "with", "", "compare with the peer's summary in a `file`; - is standard input")
	c.Flags().BoolVar(&far, "far", false, "ask the peer for its summary through the tunnel, and compare")
	c.Flags().StringSliceVar(&to, "to", nil, "an `address` behind the peer to ask; may be given again")
	jsonFlag(c, &asJSON)
	return c
}

// checkPeer finds out about a peer.
func (e *Env) checkPeer(ctx context.Context, name, on string, to []string) ([]inquiry.Finding, error) {
	var targets []netip.Addr
	for _, text := range to {
		a, err := netip.ParseAddr(text)
		if err != nil {
			return nil, &UsageError{fmt.Errorf("--to %q is no address", text)}
		}
		targets = append(targets, a)
	}
	folder, err := e.daemonFolder()
	if err != nil {
		return nil, err
	}
	if t, err := findSite(ctx, folder, name); err != nil || t != nil {
		if err != nil {
			return nil, err
		}
		return checkSite(ctx, folder, t, targets)
	}
	f, err := findPeer(ctx, folder, name, on)
	if err != nil {
		return nil, err
	}
	if targets == nil {
		targets = inquiry.Targets(f.Peer.Allowed)
	}
	f.Routes = inquiry.Through(f.Peer.Routes)
	for _, target := range targets {
		p, err := probePeer(ctx, folder, name, target, f)
		if err == nil && p.Silent() {
			p, err = e.probeArrivals(ctx, folder, name, target, f, p)
		}
		if err != nil {
			return nil, err
		}
		f.Probes = append(f.Probes, *p)
	}
	f.Now = time.Now()
	return inquiry.Judge(f), nil
}

// findSite finds the tunnel of IPsec with an interface, or nil.
func findSite(ctx context.Context, folder rundir.Folder, name string) (*keeper.Status, error) {
	all, err := keeper.Read(ctx, folder)
	if err != nil {
		return nil, err
	}
	for i := range all {
		if all[i].Interface == name && all[i].Site != nil {
			return &all[i], nil
		}
	}
	return nil, nil
}

// checkSite finds out about a tunnel of IPsec.
func checkSite(ctx context.Context, folder rundir.Folder, t *keeper.Status, targets []netip.Addr) ([]inquiry.Finding, error) {
	if targets == nil {
		targets = inquiry.Targets(t.Site.Networks)
	}
	f := &inquiry.SiteFacts{Tunnel: *t, Routes: inquiry.Through(t.Site.Routes)}
	if _, err := netif.CountersOf(t.Interface); err == nil { // else there is no way in, which the answers say
		for _, target := range targets {
			p, err := probeSite(ctx, t, target)
			if err != nil {
				return nil, err
			}
			f.Probes = append(f.Probes, *p)
		}
	}
	if now, err := findSite(ctx, folder, t.Interface); err != nil {
		return nil, err
	} else if now != nil {
		f.Tunnel = *now // packets have been sent meanwhile
	}
	f.Now = time.Now()
	return inquiry.JudgeSite(f), nil
}

// probeSite asks an address behind a tunnel of IPsec for echoes, and counts what went through it.
func probeSite(ctx context.Context, t *keeper.Status, target netip.Addr) (*inquiry.Probe, error) {
	before, err := netif.CountersOf(t.Interface)
	if err != nil {
		return nil, err
	}
	p, err := inquiry.Ask(ctx, t.Interface, target, t.MTU)
	if err != nil {
		return nil, err
	}
	after, err := netif.CountersOf(t.Interface)
	p.Out, p.In = after.BytesSent-before.BytesSent, after.BytesReceived-before.BytesReceived
	return &p, err
}

// probeTries is how often an address is asked, if handshakes come between.
const probeTries = 3

// probePeer asks an address behind a peer for echoes. The requests may make a session, which f is told of.
func probePeer(ctx context.Context, folder rundir.Folder, name string, target netip.Addr, f *inquiry.Facts) (*inquiry.Probe, error) {
	for try := 1; ; try++ {
		before := f.Peer
		p, err := inquiry.Ask(ctx, f.Tunnel.Interface, target, f.Tunnel.MTU)
		if err != nil {
			return nil, err
		}
		after, err := findPeer(ctx, folder, name, f.Tunnel.Interface)
		if err != nil {
			return nil, err
		}
		f.Tunnel, f.Peer = after.Tunnel, after.Peer
		if p.Count(&before, &after.Peer) || try == probeTries {
			return &p, nil
		}
	}
}

// probeArrivals asks once more, and counts the packets of the peer that come to the tunnel's port meanwhile. If the states
// cannot be read, it is as before.
func (e *Env) probeArrivals(ctx context.Context, folder rundir.Folder, name string, target netip.Addr, f *inquiry.Facts, before *inquiry.Probe) (*inquiry.Probe, error) {
	v, err := e.reader()
	if err != nil {
		return before, nil //nolint:nilerr // it is told without
	}
	defer v.Close()
	count := func() (uint64, error) {
		n, _, err := v.Arrivals(unix.IPPROTO_UDP, f.Peer.Endpoint, f.Tunnel.Port)
		return n, err
	}
	was, err := count()
	if err != nil {
		return before, nil //nolint:nilerr // likewise
	}
	p, err := probePeer(ctx, folder, name, target, f)
	if err != nil {
		return nil, err
	}
	is, err := count()
	if err != nil {
		return before, nil //nolint:nilerr // likewise
	}
	p.Arrived = is - min(was, is)
	return p, nil
}

// findPeer finds the peer of a name.
func findPeer(ctx context.Context, folder rundir.Folder, name, on string) (found *inquiry.Facts, err error) {
	all, err := keeper.Read(ctx, folder)
	if err != nil {
		return nil, err
	}
	for i := range all {
		for _, p := range all[i].Peers {
			if p.Name != name || on != "" && all[i].Interface != on {
				continue
			}
			if found != nil {
				return nil, fmt.Errorf("%s and %s have a peer %s: name one with --on", found.Tunnel.Interface, all[i].Interface, name)
			}
			found = &inquiry.Facts{Tunnel: all[i], Peer: p}
		}
	}
	if found == nil {
		return nil, fmt.Errorf("no tunnel of the rules in force has a peer %s", name)
	}
	return found, nil
}
