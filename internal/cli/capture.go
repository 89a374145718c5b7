package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"weir/internal/fw/control"
	"weir/internal/fw/dataplane"
	"weir/internal/fw/pktrecord"
	"weir/internal/fw/view"
	"weir/internal/host/netif"
)

// errDaemonEnded ends a command that reads a stream from the daemon.
var errDaemonEnded = errors.New("the daemon has ended, or another has taken over: ask again when weir info says that one is alive")

func newCaptureCommand(env *Env) *cobra.Command {
	var form packetForm
	var q control.CaptureRequest
	var limit uint64
	c := &cobra.Command{
		Use:   "capture INTERFACE|any [FILTER]",
		Short: "show packets before and after weir, with verdict, reason and rule",
		Long: `capture shows packets before and after weir: as they arrived, and as they leave, with
translation and output interface, or with the reason why they do not leave. tcpdump
cannot show this, because packets that XDP takes never reach it.

It shows packets that arrive or leave by INTERFACE and match FILTER, either as they
arrived or as they leave. FILTER is the part of a pf.conf rule with addresses and
ports:

    weir capture any inet proto tcp from 192.0.2.0/24 to any port { 80 443 }

Lists are alternatives; all running captures together may have 64 of them. A filter
selects one direction, like a rule; --replies adds the other one. An empty filter
selects everything, including malformed packets and packets that are not IP.

Without -w, each packet is a line in the form of tcpdump on pflog. -w writes pcapng
for tcpdump and Wireshark. The comments of a packet name verdict, reason, and the
rule with its file and line:

    weir capture any -w - | tcpdump -nr -
    weir capture wan proto icmp -w icmp.pcapng

Packets pass through a ring of 8 MiB. Packets that find no room are counted as lost.
Capturing never delays or drops a packet. It ends with the command, however the
command ends.`,
		Args: captureArgs,
		RunE: func(c *cobra.Command, args []string) error {
			q.Interface, q.Filter = args[0], strings.Join(args[1:], " ")
			if q.Snap < 1 || q.Snap > dataplane.CaptureBytes {
				return &UsageError{fmt.Errorf("-s %d: want 1 to %d bytes", q.Snap, dataplane.CaptureBytes)}
			}
			if err := form.check(env.Stdout); err != nil {
				return err
			}
			return env.capture(c.Context(), &q, &form, limit)
		},
	}
	formFlags(c, &form)
	c.Flags().IntVarP(&q.Snap, "snaplen", "s", dataplane.CaptureBytes, "show at most this number of `bytes` of a frame")
	c.Flags().Uint64VarP(&limit, "count", "c", 0, "stop after this number of records; a packet makes `two`")
	c.Flags().BoolVar(&q.Replies, "replies", false, "also show packets in the other direction")
	return c
}

func formFlags(c *cobra.Command, form *packetForm) {
	c.Flags().StringVarP(&form.file, "write", "w", "", "write pcapng to `file`; - is standard output")
	c.Flags().BoolVar(&form.json, "json", false, "print JSON, one object per line")
}

func captureArgs(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("name an interface, or %q", control.AnyInterface)
	}
	return nil
}

// capture prints captured packets until ctx ends.
func (e *Env) capture(ctx context.Context, q *control.CaptureRequest, form *packetForm, limit uint64) error {
	shown, err := shownInterfaces(q.Interface)
	if err != nil {
		return err
	}
	v := packetView{
		form: form, file: pktrecord.Form{Snap: q.Snap + etherHeader, Interfaces: shown}, limit: limit,
		begun: "capturing on " + q.Interface,
	}
	return e.show(ctx, &v, func(ctx context.Context, c *control.Client) (io.ReadCloser, error) {
		body, err := c.Capture(ctx, q)
		if refusal := new(control.RefusedError); errors.As(err, &refusal) && refusal.Faults {
			refusal.Text += "\n" + filterForm
		}
		return body, err
	})
}

// filterForm explains a wrong filter, because people know those of tcpdump.
const filterForm = "a filter is written as in pf.conf, not as for tcpdump: inet proto tcp from 192.0.2.0/24 to any port { 80 443 }"

// packetView says how to show a stream of packets.
type packetView struct {
	form  *packetForm
	file  pktrecord.Form
	limit uint64 // most records; 0: no limit
	begun string // message once no packet is missed any more

	wants func(*pktrecord.Record) bool // whether to show a record; nil: all
}

// show prints the packets of a stream until ctx ends.
func (e *Env) show(ctx context.Context, v *packetView, open func(context.Context, *control.Client) (io.ReadCloser, error)) error {
	folder, err := e.folder()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	body, err := open(ctx, control.NewClient(folder))
	if err != nil {
		return err
	}
	defer body.Close()
	f := &follower{stream: pktrecord.NewStream(body), limit: v.limit, wants: v.wants}
	if f.names, err = view.NewNames(folder); err != nil {
		return err
	}
	v.file.Application = "weir " + version()
	if f.to, err = v.form.printer(e.Stdout, &v.file); err != nil {
		return err
	}
	fmt.Fprintf(e.Stderr, "weir: %s\n", v.begun)
	err = errors.Join(f.follow(ctx), f.to.end(f.stream.Lost()))
	fmt.Fprintf(e.Stderr, "weir: %d records, %d lost\n", f.to.count, f.stream.Lost())
	return err
}

// etherHeader is how much a frame may grow in a file: a packet without an Ethernet header
// gets one.
const etherHeader = 14

// shownInterfaces returns the interfaces that a capture file begins with.
func shownInterfaces(name string) ([]string, error) {
	if name != control.AnyInterface {
		return []string{name}, nil
	}
	links, err := netif.Links()
	if err != nil {
		return nil, err
	}
	var all []string
	for _, l := range links {
		all = append(all, l.Name)
	}
	return all, nil
}

// follower prints a stream of packets.
type follower struct {
	stream *pktrecord.Stream
	names  *view.Names
	to     *packetPrinter
	limit  uint64 // most records; 0: no limit
	wants  func(*pktrecord.Record) bool
	boot   time.Time
}

// follow prints until ctx ends, which is no error, or until the stream ends.
func (f *follower) follow(ctx context.Context) error {
	for f.limit == 0 || f.to.count < f.limit {
		if !f.stream.Pending() {
			if err := f.to.flush(); err != nil {
				return ended(err)
			}
		}
		raw, err := f.stream.Next()
		if ctx.Err() != nil {
			return nil
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return errDaemonEnded
		}
		if err != nil {
			return err
		}
		if err := f.print(raw); err != nil {
			return ended(err)
		}
	}
	return nil
}

// ended returns an error of printing, or nil if the reader has gone.
func ended(err error) error {
	if errors.Is(err, unix.EPIPE) {
		return nil
	}
	return err
}

func (f *follower) print(raw []byte) error {
	r, err := dataplane.ParseRecord(raw)
	if err != nil {
		return err
	}
	if err := f.setBoot(); err != nil {
		return err
	}
	named := pktrecord.Name(&r, f.boot, f.names)
	if f.wants != nil && !f.wants(&named) {
		return nil
	}
	return f.to.print(&named)
}

// bootSlack is how far the wall clock may drift before the times of records follow it.
const bootSlack = time.Millisecond

// setBoot sets the time at which CLOCK_BOOTTIME was 0. It changes only if somebody sets
// the clock, so that differences between records stay right.
func (f *follower) setBoot() error {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return fmt.Errorf("read the clock: %w", err)
	}
	boot := time.Now().Round(0).Add(-time.Duration(now.Nano()))
	if boot.Sub(f.boot).Abs() > bootSlack {
		f.boot = boot
	}
	return nil
}
