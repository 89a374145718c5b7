package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/fw/control"
	"weir/internal/fw/pktrecord"
	"weir/internal/pppoe/line"
)

func newPPPoECommand(env *Env) *cobra.Command {
	c := &cobra.Command{
		Use:   "pppoe",
		Short: "show PPPoE sessions; make one anew, or end it",
		Long: `pppoe is about the sessions of the interfaces that the rules define:

    pppoe ppp0 on eth0.7 user "me@isp" password file "/etc/weir/ppp0.password"

"weir pppoe status" says which are up, and why the others are not. "weir pppoe log" prints what
was said to the concentrator, step by step. docs/pppoe.md has more.`,
	}
	c.AddCommand(newPPPoEStatusCommand(env), newPPPoELogCommand(env), newPPPoEDialCommand(env, false), newPPPoEDialCommand(env, true))
	return c
}

// sessions reads the PPPoE interfaces, or only that of the name in args.
func (env *Env) sessions(ctx context.Context, args []string) ([]control.PPPoE, error) {
	folder, err := env.daemonFolder()
	if err != nil {
		return nil, err
	}
	all, err := control.NewClient(folder).PPPoE(ctx)
	if err != nil || len(args) == 0 {
		return all, err
	}
	for i := range all {
		if all[i].Interface == args[0] {
			return all[i : i+1], nil
		}
	}
	return nil, fmt.Errorf("the rules in force have no pppoe %s", args[0])
}

func newPPPoEStatusCommand(env *Env) *cobra.Command {
	c := &cobra.Command{
		Use:   "status [INTERFACE]",
		Short: "show which PPPoE sessions are up, and why the others are not",
		Args:  cobra.MaximumNArgs(1),
	}
	return printing(env, c, env.sessions, func(all []control.PPPoE) error { return printSessions(env.Stdout, all, time.Now()) })
}

func newPPPoELogCommand(env *Env) *cobra.Command {
	var file string
	c := &cobra.Command{
		Use:   "log [INTERFACE]",
		Short: "print what was said to the concentrators, step by step, without secrets",
		Args:  cobra.MaximumNArgs(1),
	}
	c.Long = c.Short + `.

-w writes the frames of the last attempts and sessions as pcapng for Wireshark: discovery and the
control protocols, with passwords and answers to challenges left out. - is standard output.`
	c = printing(env, c, env.sessions, func(all []control.PPPoE) error { return printSessionLogs(env.Stdout, all) })
	lines := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		if file == "" {
			return lines(c, args)
		}
		return env.writeFrames(c.Context(), file, args)
	}
	c.Flags().StringVarP(&file, "write", "w", "", "write the frames as pcapng to `file`; - is standard output")
	return c
}

func newPPPoEDialCommand(env *Env, down bool) *cobra.Command {
	c := &cobra.Command{
		Use:   "reconnect INTERFACE",
		Short: "end a PPPoE session and make a new one; the password is read again",
		Args:  cobra.ExactArgs(1),
	}
	if down {
		c.Use, c.Short = "down INTERFACE", "end a PPPoE session until weir pppoe reconnect, or a new start of the daemon"
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		folder, err := env.daemonFolder()
		if err != nil {
			return err
		}
		return control.NewClient(folder).DialPPPoE(c.Context(), &control.PPPoERequest{Interface: args[0], Down: down})
	}
	return c
}

func printSessions(w io.Writer, all []control.PPPoE, now time.Time) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "the rules in force have no pppoe interface")
		return err
	}
	for i := range all {
		p := &all[i]
		fmt.Fprintf(w, "%s on %s: %s", p.Interface, p.On, p.State)
		if !p.Since.IsZero() {
			fmt.Fprintf(w, " for %s", now.Sub(p.Since).Round(time.Second))
		}
		if p.Step != "" {
			fmt.Fprintf(w, ", at %s", p.Step)
		}
		if p.Why != "" {
			fmt.Fprintf(w, ": %s", p.Why)
		}
		if !p.Retry.IsZero() {
			fmt.Fprintf(w, "; next attempt in %s", max(p.Retry.Sub(now), 0).Round(time.Second))
		}
		fmt.Fprintln(w)
		if p.Small != "" {
			fmt.Fprintf(w, "  %s\n", p.Small)
		}
		for _, quirk := range p.Quirks {
			fmt.Fprintf(w, "  the provider: %s\n", quirk)
		}
		if p.State != control.PPPoEUp {
			continue
		}
		fmt.Fprintf(w, "  session %s of %s (%s), %s, MTU %d, MRU %d\n", p.Session, p.AC, p.Peer, p.Auth, p.MTU, p.MRU)
		if p.IPv4.IsValid() {
			fmt.Fprintf(w, "  IPv4 %s, peer %s\n", p.IPv4, p.PeerIPv4)
		}
		if p.IPv6.IsValid() {
			fmt.Fprintf(w, "  IPv6 %s, peer %s\n", p.IPv6, p.PeerIPv6)
		}
		for _, a := range p.DNS {
			fmt.Fprintf(w, "  name server %s\n", a)
		}
		if p.Prefix != nil {
			printPrefix(w, p.Prefix, now)
		}
	}
	if e := all[0].Ended; e != (line.Ends{}) {
		fmt.Fprintf(w, "sessions that concentrators have ended: %d by a PADT, %d by LCP\n", e.PADT, e.Terminate)
	}
	if d := all[0].Drops; d != (line.Drops{}) {
		fmt.Fprintf(w, "dropped frames: %d not from the concentrator, %d with contradicting lengths, %d that no session could send, %d of a session that was over, %d too many echo requests, %d too many ends, %d without memory\n",
			d.Peer, d.Length, d.Out, d.Over, d.Echo, d.Ends, d.Kernel)
	}
	return nil
}

func printSessionLogs(w io.Writer, all []control.PPPoE) error {
	for i := range all {
		for _, l := range all[i].Log {
			if _, err := fmt.Fprintf(w, "%s %s %s\n", l.Time.Format("2006-01-02 15:04:05.000"), all[i].Interface, l.Text); err != nil {
				return err
			}
		}
	}
	return nil
}

// printPrefix prints what the provider has delegated, and to which links it goes.
func printPrefix(w io.Writer, p *control.PPPoEPrefix, now time.Time) {
	if len(p.Delegated) == 0 {
		fmt.Fprintf(w, "  no prefix yet: %s\n", cmp.Or(p.Why, "not asked for"))
	}
	for _, d := range p.Delegated {
		fmt.Fprintf(w, "  prefix %s, preferred %s, valid %s", d.Prefix, left(d.Preferred, now), left(d.Valid, now))
		if !p.Renew.IsZero() {
			fmt.Fprintf(w, ", asked again in %s", max(p.Renew.Sub(now), 0).Round(time.Second))
		}
		fmt.Fprintln(w)
	}
	for _, a := range p.DNS {
		fmt.Fprintf(w, "  name server %s for hosts\n", a)
	}
	for _, l := range p.Links {
		for _, prefix := range l.Prefixes {
			fmt.Fprintf(w, "  %s has %s\n", l.Interface, prefix)
		}
		for _, prefix := range l.Withdrawn {
			fmt.Fprintf(w, "  %s had %s: withdrawn\n", l.Interface, prefix)
		}
		if l.Why != "" {
			fmt.Fprintf(w, "  %s: %s\n", l.Interface, l.Why)
		}
	}
}

// left is for how long something goes on.
func left(until, now time.Time) string {
	switch {
	case until.IsZero():
		return "for ever"
	case !until.After(now):
		return "no more"
	}
	return "for " + until.Sub(now).Round(time.Second).String()
}

// writeFrames writes the frames of all PPPoE interfaces, or only of that in args.
func (env *Env) writeFrames(ctx context.Context, file string, args []string) error {
	folder, err := env.daemonFolder()
	if err != nil {
		return err
	}
	all, err := control.NewClient(folder).PPPoEFrames(ctx)
	if err != nil {
		return err
	}
	if len(args) > 0 {
		all = slices.DeleteFunc(all, func(f control.PPPoEFrames) bool { return f.Interface != args[0] })
	}
	if len(all) == 0 {
		return errors.New("the rules in force have no such pppoe interface")
	}
	if file == "-" {
		return printFrames(env.Stdout, all)
	}
	out, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(printFrames(out, all), out.Close())
}

// printFrames writes frames as pcapng. They were seen at the interface below.
func printFrames(w io.Writer, all []control.PPPoEFrames) error {
	form := pktrecord.Form{Snap: 1 << 16, Application: "weir " + version()}
	for i := range all {
		if !slices.Contains(form.Interfaces, all[i].On) {
			form.Interfaces = append(form.Interfaces, all[i].On)
		}
	}
	to, err := pktrecord.NewWriter(w, &form)
	if err != nil {
		return err
	}
	for i := range all {
		for _, f := range all[i].Frames {
			direction := "in"
			if f.Out {
				direction = "out"
			}
			err := to.Write(&pktrecord.Record{
				Time: f.Time, Interface: all[i].On, Direction: direction, Length: f.Length, Data: f.Data, Note: all[i].Interface + ": " + f.Text,
			})
			if err != nil {
				return err
			}
		}
	}
	return to.Close(0)
}
