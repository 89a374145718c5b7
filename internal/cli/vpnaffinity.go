package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"weir/internal/host/doctor"
	"weir/internal/vpn/inquiry"
	"weir/internal/vpn/keeper"
)

// newVPNAffinityCommand makes `weir vpn affinity`.
func newVPNAffinityCommand(env *Env) *cobra.Command {
	var from string
	var far bool
	interval := time.Second
	c := &cobra.Command{
		Use:   "affinity",
		Short: "show which worker, queue and core carries what of the tunnels, and what limits them",
		Long: `affinity watches the tunnels of "weir vpn run" for a moment and prints tables. The first lists
their workers: threads that encrypt what comes from their queue of the tunnel's interface, and
decrypt in turn what comes by the port. It has the cores that each may run on, the one it ran on
last, how much of that core's time it took, and what it carried and lost, inside the tunnel. The
second lists the queues of the cards that the encrypted packets come by, with their interrupts and
cores. The third is the reverse: each core with the queues and the workers on it.

Then it names what limits each tunnel: a full core, with what shares it; a full link, or member of
a link aggregation group. "set" moves a worker to other cores at once; no packet is lost by that.

With --far it also asks the peers, inside the tunnels, and prints what they say of their ends. A
peer answers if it is a weir whose statement of this end has "show-load", and its rules pass TCP
port 51820 from here. Of its allowed networks, single addresses are asked.`,
		Example: `  weir vpn affinity
  weir vpn affinity --far
  weir vpn affinity set wg0:1=3 --confirm 60s
  weir vpn affinity --from box.bundle --json`,
	}
	c.Flags().DurationVar(&interval, "interval", interval, "`time` to watch")
	c.Flags().StringVar(&from, "from", "", "read a `file` of weir doctor --collect instead of this machine; -: standard input")
	c.Flags().BoolVar(&far, "far", false, "also ask the peers what limits their ends")
	set := newAffinitySetCommand(env)
	set.Short = "assign cores to a worker, or to a queue of a card"
	c.AddCommand(set, newAffinityConfirmCommand(env), newAffinityRevertCommand(env))
	return printing(env, c, func(ctx context.Context, _ []string) (*bothEnds, error) {
		if interval < leastInterval || interval > longestInterval {
			return nil, &UsageError{fmt.Errorf("vpn affinity: --interval %s: want %s to %s", interval, leastInterval, longestInterval)}
		}
		if far && from != "" {
			return nil, &UsageError{errors.New("vpn affinity: a file has no peers to ask: --far or --from")}
		}
		var asked func() []farEnd
		if far {
			var err error
			if asked, err = env.askPeers(ctx); err != nil {
				return nil, err
			}
		}
		s, err := env.tunnelSnapshot(ctx, from, interval)
		if err != nil {
			return nil, err
		}
		all := &bothEnds{VPN: doctor.Tunnels(s)}
		if far {
			all.Far = asked()
		}
		return all, nil
	}, func(all *bothEnds) error { return all.print(env.Stdout) })
}

// bothEnds is what is known of the tunnels here, and at their other ends.
type bothEnds struct {
	*doctor.VPN
	Far []farEnd `json:"far,omitempty"`
}

// farEnd is what a peer says of its end.
type farEnd struct {
	Peer   string      `json:"peer"`
	Tunnel string      `json:"tunnel"` // here
	Says   *doctor.VPN `json:"says,omitempty"`
	Error  string      `json:"error,omitempty"`
}

func (b *bothEnds) print(w io.Writer) error {
	if err := b.VPN.Print(w); err != nil {
		return err
	}
	for i := range b.Far {
		f := &b.Far[i]
		if _, err := fmt.Fprintf(w, "\nThe other end, %s of %s:\n", f.Peer, f.Tunnel); err != nil {
			return err
		}
		if f.Says == nil {
			if _, err := fmt.Fprintln(printable{w}, f.Error); err != nil {
				return err
			}
			continue
		}
		if err := f.Says.Print(printable{w}); err != nil {
			return err
		}
	}
	return nil
}

// printable writes what another machine has said: it may not control a terminal.
type printable struct{ w io.Writer }

func (p printable) Write(b []byte) (int, error) {
	text := strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return '.'
	}, string(b))
	if _, err := io.WriteString(p.w, text); err != nil {
		return 0, err
	}
	return len(b), nil
}

// askPeers begins to ask all peers. The returned function waits for their answers.
func (e *Env) askPeers(ctx context.Context) (func() []farEnd, error) {
	folder, err := e.daemonFolder()
	if err != nil {
		return nil, err
	}
	tunnels, err := keeper.Read(ctx, folder)
	if err != nil {
		return nil, err
	}
	ends := []farEnd{}
	var targets [][]netip.Addr
	for i := range tunnels {
		for j := range tunnels[i].Peers {
			p := &tunnels[i].Peers[j]
			ends = append(ends, farEnd{Peer: p.Name, Tunnel: tunnels[i].Interface})
			targets = append(targets, inquiry.Targets(p.Allowed))
		}
	}
	var all sync.WaitGroup
	for i := range ends {
		all.Go(func() { ends[i].ask(ctx, targets[i]) })
	}
	return func() []farEnd {
		all.Wait()
		return ends
	}, nil
}

// ask asks the addresses of a peer in turn.
func (f *farEnd) ask(ctx context.Context, at []netip.Addr) {
	if len(at) == 0 {
		f.Error = "it has no address to ask: there is no single one among its allowed networks"
	}
	for _, a := range at {
		says, err := keeper.AskLoad(ctx, f.Tunnel, a)
		if err == nil {
			f.Says, f.Error = says, ""
			return
		}
		f.Error = err.Error()
	}
}

// tunnelSnapshot reads a bundle, or this machine, where weir vpn run has to run.
func (e *Env) tunnelSnapshot(ctx context.Context, from string, interval time.Duration) (*doctor.Snapshot, error) {
	if from != "" {
		return interruptible(ctx, func() (*doctor.Snapshot, error) { return e.readSnapshot(from) })
	}
	folder, err := e.daemonFolder()
	if err != nil {
		return nil, err
	}
	if _, err := keeper.ReadWork(ctx, folder); err != nil {
		return nil, tellOlder(err)
	}
	return e.snapshot(ctx, interval)
}

// tunnelWork returns what the tunnels of weir vpn run have carried; nil if it does not run.
func (e *Env) tunnelWork(ctx context.Context) ([]doctor.VPNCount, error) {
	folder, err := e.folder()
	if err != nil {
		return nil, err
	}
	all, err := keeper.ReadWork(ctx, folder)
	if errors.Is(err, keeper.ErrNotRunning) || errors.Is(err, fs.ErrPermission) {
		return nil, nil
	}
	return all, tellOlder(err)
}

// tellOlder tells of a process that does not know the question.
func tellOlder(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("weir vpn run is of an older version: restart it")
	}
	return err
}
