package cli

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/ftp"
)

// ftpTask holds the flags of ftp-proxy.
type ftpTask struct {
	listen         []string
	server, source string
	anchor         string
	most           int
	idle           time.Duration
	verbose        bool
}

func newFTPProxyCommand(env *Env) *cobra.Command {
	t := &ftpTask{}
	c := &cobra.Command{
		Use:   "ftp-proxy",
		Short: "pass FTP's data connections: a proxy for the control connections",
		Long: `ftp-proxy lets FTP through, active and passive, IPv4 and IPv6, with NAT. It reads the
control connections that the rules divert to it, and has rules loaded into an anchor for
each data connection. The data itself does not go through it. It runs until it is
interrupted, beside weir run.

    anchor "ftp-proxy/*"
    pass in quick on lan inet proto tcp to port 21 divert-to 127.0.0.1 port 8021
    pass in quick on lan inet6 proto tcp to port 21 divert-to ::1 port 8021
    pass out proto tcp from self to port 21

For a server behind the box, --server names it. Its clients' connections come in at the
box's address:

    pass in quick on wan inet proto tcp to (wan) port 21 divert-to 127.0.0.1 port 8022
    weir ftp-proxy --listen 127.0.0.1:8022 --server 192.168.1.10 --anchor ftp-in

If the ends begin to speak TLS (AUTH), nobody can read along: data connections then need
rules of their own.`,
		Args: exactly(0, "ftp-proxy takes only flags"),
		RunE: func(c *cobra.Command, _ []string) error { return env.ftpProxy(c.Context(), t) },
	}
	c.Flags().StringSliceVar(&t.listen, "listen", []string{"127.0.0.1:8021", "[::1]:8021"}, "where the rules divert to, as `ADDRESS:PORT`")
	c.Flags().StringVar(&t.server, "server", "", "the server of all sessions, as `ADDRESS` or ADDRESS:PORT; else the one that the client asked for")
	c.Flags().StringVar(&t.source, "source", "", "the box's `ADDRESS` that servers see")
	c.Flags().StringVar(&t.anchor, "anchor", "ftp-proxy", "`path` of the anchor below which each session has one")
	c.Flags().IntVar(&t.most, "sessions", 100, "most sessions at once")
	c.Flags().DurationVar(&t.idle, "idle", 24*time.Hour, "a session ends after this `time` of silence")
	c.Flags().BoolVarP(&t.verbose, "verbose", "v", false, "also log each data connection")
	return c
}

func (e *Env) ftpProxy(ctx context.Context, t *ftpTask) error {
	p := &ftp.Proxy{Anchor: t.anchor, Most: t.most, Idle: t.idle}
	if err := t.fill(p); err != nil {
		return &UsageError{err}
	}
	folder, err := e.daemonFolder()
	if err != nil {
		return err
	}
	p.Log = e.helperLog(t.verbose)
	p.Rules = newAnchorLoader(folder)
	p.Started = func() { p.Log.Info("ready", "listen", t.listen, "anchor", t.anchor) }
	return p.Run(ctx)
}

// fill reads the flags.
func (t *ftpTask) fill(p *ftp.Proxy) (err error) {
	if t.most < 1 {
		return errors.New("--sessions is a number from 1")
	}
	if t.idle < time.Second {
		return errors.New("--idle is a second or more")
	}
	if err := checkHelperAnchor(t.anchor); err != nil {
		return err
	}
	for _, word := range t.listen {
		at, err := netip.ParseAddrPort(word)
		if err != nil || at.Port() == 0 {
			return fmt.Errorf("--listen %q is no address with a port", word)
		}
		p.Listen = append(p.Listen, at)
	}
	if t.source != "" {
		if p.Source, err = netip.ParseAddr(t.source); err != nil {
			return fmt.Errorf("--source %q is no address", t.source)
		}
	}
	if t.server == "" {
		return nil
	}
	if p.Server, err = netip.ParseAddrPort(t.server); err == nil {
		return nil
	}
	addr, err := netip.ParseAddr(t.server)
	if err != nil {
		return fmt.Errorf("--server %q is no address", t.server)
	}
	p.Server = netip.AddrPortFrom(addr, 21)
	return nil
}
