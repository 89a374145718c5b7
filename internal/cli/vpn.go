package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/fw/rundir"
	"weir/internal/fw/view"
	"weir/internal/units"
	"weir/internal/vpn/ipsec"
	"weir/internal/vpn/keeper"
	"weir/internal/vpn/key"
	"weir/internal/vpn/pathmtu"
	"weir/internal/vpn/tunnel"
)

func newVPNCommand(env *Env) *cobra.Command {
	c := &cobra.Command{
		Use:   "vpn",
		Short: "tunnels between sites, by WireGuard and IPsec: run them, show them, make keys",
		Long: `vpn is about the tunnels that the rules define:

    wireguard wg0 key file "/etc/weir/wg0.key" address 10.9.0.1/30
    peer branch on wg0 key "HIgo9xNz…=" endpoint branch.example.net allowed 10.2.0.0/16
    ikev2 ipsec0 peer partner.example.com psk file "/etc/weir/partner.psk" networks 10.3.0.0/16

"weir vpn run" keeps them up, beside the daemon. "weir vpn status" says which peers are there.
docs/vpn.md has more.`,
	}
	c.AddCommand(newVPNRunCommand(env), newVPNStatusCommand(env), newVPNLogCommand(env), newVPNCheckCommand(env), newVPNSummaryCommand(env), newVPNAffinityCommand(env), newVPNReconnectCommand(env), newVPNDownCommand(env), newVPNGenkeyCommand(env, "genkey"),
		newVPNGenkeyCommand(env, "genpsk"), newVPNPubkeyCommand(env), newVPNImportCommand(env), newVPNExportCommand(env))
	return c
}

// viciFlag adds the flag for charon's socket.
func viciFlag(c *cobra.Command, socket *string) {
	c.Flags().StringVar(socket, "vici", ipsec.Socket, "the `socket` of strongSwan's charon, for tunnels of IPsec")
}

func newVPNRunCommand(env *Env) *cobra.Command {
	var vici string
	c := &cobra.Command{
		Use:   "run",
		Short: "keep the tunnels up that the rules in force define",
		Long: `run keeps up the tunnels that the rules in force define, as weir run has recorded them, and
follows each load. It stays in the foreground. It needs no daemon to live: with or without one,
tunnels stay as the last load says.

The kernel's WireGuard does the work where the kernel has it; otherwise this process does. Tunnels of
IPsec are strongSwan's charon's, which has to run in the same network namespace. When this process
ends, by SIGKILL too, interfaces and routes stay. Nothing meant for a tunnel leaves in clear then: a
blackhole stands behind every route. "weir vpn down" removes all.

The process keeps no capabilities but CAP_NET_ADMIN, CAP_NET_BIND_SERVICE and CAP_NET_RAW.`,
		RunE: func(c *cobra.Command, _ []string) error {
			folder, err := env.daemonFolder()
			if err != nil {
				return err
			}
			return keeper.Run(c.Context(), keeper.Config{Folder: folder, Log: slog.New(newVoice(env.Stderr)), VICI: vici, State: os.Getenv("STATE_DIRECTORY"), Summarize: summarize})
		},
	}
	viciFlag(c, &vici)
	return c
}

func newVPNDownCommand(env *Env) *cobra.Command {
	var vici string
	c := &cobra.Command{
		Use:   "down",
		Short: "remove all tunnels, with their routes and the blackholes behind them, when weir vpn run has ended",
		RunE: func(c *cobra.Command, _ []string) error {
			folder, err := env.daemonFolder()
			if err != nil {
				return err
			}
			return keeper.Down(c.Context(), keeper.Config{Folder: folder, Log: slog.New(newVoice(env.Stderr)), VICI: vici})
		},
	}
	viciFlag(c, &vici)
	return c
}

func newVPNStatusCommand(env *Env) *cobra.Command {
	c := &cobra.Command{
		Use:   "status [INTERFACE]",
		Short: "show tunnels and their peers: handshakes, endpoints, bytes, what went wrong",
		Args:  cobra.MaximumNArgs(1),
	}
	return printing(env, c, env.tunnels, func(all []keeper.Status) error { return printTunnels(env.Stdout, all, time.Now()) })
}

// tunnels reads the tunnels, or only that of the name in args.
func (env *Env) tunnels(ctx context.Context, args []string) ([]keeper.Status, error) {
	folder, err := env.daemonFolder()
	if err != nil {
		return nil, err
	}
	all, err := keeper.Read(ctx, folder)
	if err != nil || len(args) == 0 {
		return all, err
	}
	for i := range all {
		if all[i].Interface == args[0] {
			return all[i : i+1], nil
		}
	}
	return nil, fmt.Errorf("the rules in force have no tunnel %s", args[0])
}

// engines returns which engines the tunnels of the rules in force have.
func engines(ctx context.Context, folder rundir.Folder) (all []view.Tunnel, err error) {
	wanted, err := readTunnels(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	running, unknown := keeper.Read(ctx, folder)
	add := func(name string) {
		t := view.Tunnel{Interface: name, Why: "weir vpn run does not have it yet"}
		if unknown != nil {
			t.Why = unknown.Error()
		}
		for i := range running {
			if s := &running[i]; s.Interface == name {
				t.Engine, t.Why = s.Engine, cmp.Or(s.Why, s.Problem, t.Why)
			}
		}
		all = append(all, t)
	}
	for i := range wanted.WireGuard {
		add(wanted.WireGuard[i].Name)
	}
	for i := range wanted.IKEv2 {
		add(wanted.IKEv2[i].Name)
	}
	return all, nil
}

func printTunnels(w io.Writer, all []keeper.Status, now time.Time) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "the rules in force have no tunnel")
		return err
	}
	for i := range all {
		t := &all[i]
		fmt.Fprintf(w, "%s: ", t.Interface)
		switch {
		case t.Engine == "":
			fmt.Fprintln(w, "it does not work")
		case t.Site != nil:
			fmt.Fprintf(w, "IPsec, MTU %d, engine %s (%s)\n", t.MTU, t.Engine, t.Why)
		case t.Key == nil:
			fmt.Fprintf(w, "engine %s (%s)\n", t.Engine, t.Why)
		default:
			fixed := ""
			if t.Fixed {
				fixed = ", as the rules say"
			}
			fmt.Fprintf(w, "port %d, MTU %d%s, engine %s (%s), public key %s\n", t.Port, t.MTU, fixed, t.Engine, t.Why, t.Key)
		}
		if t.Problem != "" {
			fmt.Fprintf(w, "  problem: %s\n", t.Problem)
		}
		for j := range t.Peers {
			printPeer(w, &t.Peers[j], now)
		}
		printStrangers(w, t.Strangers, now)
		if !t.Says.IsZero() {
			fmt.Fprintf(w, "  handshakes say %s, which is yet to come: this end's clock was ahead, or has gone back. Peers take it. Until then they take none from another program with this key (docs/vpn.md, Clocks)\n", t.Says.UTC().Format(time.RFC3339))
		}
		if t.Site != nil {
			printSite(w, t.Site, now)
		}
	}
	return nil
}

func printPeer(w io.Writer, p *keeper.Peer, now time.Time) {
	ago := func(t time.Time) string { return now.Sub(t).Round(time.Second).String() + " ago" }
	fmt.Fprintf(w, "  %s: ", p.Name)
	switch p.Session {
	case keeper.NoSession:
		fmt.Fprint(w, "no handshake yet")
	case keeper.OldSession:
		fmt.Fprintf(w, "no session: the last handshake was %s", ago(p.Handshake))
	default:
		fmt.Fprintf(w, "session, handshake %s", ago(p.Handshake))
	}
	if p.Endpoint.IsValid() {
		fmt.Fprintf(w, ", at %s", p.Endpoint)
	} else {
		fmt.Fprint(w, ", at an unknown address")
	}
	fmt.Fprintf(w, ", received %sB, sent %sB\n", units.Short(float64(p.Received)), units.Short(float64(p.Sent)))
	fmt.Fprintf(w, "    public key %s\n", p.Key)
	if len(p.Allowed) > 0 {
		var texts []string
		for _, a := range p.Allowed {
			texts = append(texts, a.String())
		}
		fmt.Fprintf(w, "    allowed %s\n", strings.Join(texts, " "))
	}
	for i := range p.Ways {
		printWay(w, &p.Ways[i], ago)
	}
	if p.Moved != nil {
		fmt.Fprintf(w, "    %s: it moved %s\n", ago(p.Moved.Time), p.Moved.Why)
	}
	if p.Wide != nil {
		printWide(w, p.Wide)
	}
	if p.Path != nil {
		fmt.Fprintf(w, "    path MTU %s\n", pathText(p.Path))
	}
	if r := p.Refused; r != nil {
		fmt.Fprintf(w, "    dropped %d packets that the peer may not send, the last %s from %s\n", r.Packets, ago(r.Time), r.Source)
	}
	if b := p.Behind; b != nil {
		fmt.Fprintf(w, "    refused %d handshakes of an earlier time than the last one, the last %s, %s earlier\n", b.Messages, ago(b.Time), b.Last.Sub(b.Theirs).Round(time.Millisecond))
	}
	if p.Error != "" {
		fmt.Fprintf(w, "    %s: %s\n", ago(p.ErrorTime), p.Error)
	}
}

// printStrangers prints who has begun handshakes of late, and is no peer.
func printStrangers(w io.Writer, all []tunnel.Stranger, now time.Time) {
	for _, s := range all {
		if ago := now.Sub(s.Time); s.Key != nil && ago < keeper.Noticed {
			fmt.Fprintf(w, "  no peer: %s has begun a handshake %s ago, and claims the public key %s\n", s.From, ago.Round(time.Second), s.Key)
		}
	}
}

// printWide prints the ports of a link.
func printWide(w io.Writer, l *tunnel.Wide) {
	fmt.Fprintf(w, "    wide: %d of %d ports in use", l.Used, l.Wanted)
	if l.Why != "" {
		fmt.Fprintf(w, ": %s", l.Why)
	}
	fmt.Fprintln(w)
	for _, p := range l.Ports {
		state := "works"
		if !p.Works {
			state = "not in use"
		}
		fmt.Fprintf(w, "      port %d", p.Port)
		if p.Endpoint.IsValid() {
			fmt.Fprintf(w, " to %s", p.Endpoint)
		}
		fmt.Fprintf(w, ": %s, received %sB, sent %sB\n", state, units.Short(float64(p.Received)), units.Short(float64(p.Sent)))
	}
}

func printWay(w io.Writer, way *keeper.Way, ago func(time.Time) string) {
	fmt.Fprintf(w, "    way %s", way.Endpoint)
	if way.Interface != "" {
		fmt.Fprintf(w, " on %s", way.Interface)
	}
	if way.Used {
		fmt.Fprint(w, ", in use")
	}
	fmt.Fprintf(w, ": %s", way.State)
	if !way.Answered.IsZero() {
		fmt.Fprintf(w, ", the last answer %s took %.1f ms", ago(way.Answered), way.RTT)
	}
	fmt.Fprintln(w)
}

// pathText says what is known of the path to a peer.
func pathText(p *keeper.PathMTU) string {
	at := p.At.Format(time.TimeOnly)
	switch {
	case p.By == pathmtu.Assumed:
		return fmt.Sprintf("%d, assumed at %s: the peer answers nothing that would tell, or other packets are always under way", p.Size, at)
	case p.Cut:
		return fmt.Sprintf("below %d, measured at %s: messages are cut outside the tunnel", p.Size, at)
	case p.Less:
		return fmt.Sprintf("below %d, measured at %s: longer packets vanish, as nobody cuts messages of IPv6", p.Size, at)
	case p.By == pathmtu.Keepalive:
		return fmt.Sprintf("%d, measured at %s by keepalives: in the direction to the peer only", p.Size, at)
	}
	return fmt.Sprintf("%d, measured at %s", p.Size, at)
}

func newVPNGenkeyCommand(_ *Env, use string) *cobra.Command {
	c := &cobra.Command{
		Use:   use + " FILE",
		Short: "make a private key in a new file, and print its public key",
		Args:  exactly(1, "name one file, which does not exist yet"),
	}
	make := key.NewPrivate
	if use == "genpsk" {
		make, c.Short = key.NewPreshared, "make a preshared key in a new file"
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		secret := make()
		if err := key.WriteFile(args[0], secret); err != nil || use == "genpsk" {
			return err
		}
		_, err := fmt.Fprintln(c.OutOrStdout(), secret.Public())
		return err
	}
	return c
}

func newVPNPubkeyCommand(env *Env) *cobra.Command {
	return &cobra.Command{
		Use:   "pubkey FILE|-",
		Short: "print the public key of the private key in a file, or in standard input",
		Args:  exactly(1, "name one file with a private key, or - for standard input"),
		RunE: func(_ *cobra.Command, args []string) (err error) {
			var secret key.Secret
			if args[0] == "-" {
				secret, err = key.Read(env.Stdin)
			} else {
				secret, err = key.ReadFile(args[0])
			}
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(env.Stdout, secret.Public())
			return err
		},
	}
}
