package vpn

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os/exec"
	"strings"
	"time"

	"weir/internal/bench/iperf"
	"weir/internal/bench/testbed"
	"weir/internal/host/netif"
	"weir/internal/lab"
	"weir/internal/vpn/key"
)

// far is the host behind the far end of the tunnel, and its network.
var (
	farHost = netip.MustParseAddr("10.2.0.10")
	farNet  = netip.MustParsePrefix("10.2.0.0/24")
	lanNet  = netip.MustParsePrefix("192.168.1.0/24")
	// Where the two ends are.
	nearEnd = netip.MustParseAddr("203.0.113.2")
	farEnd  = netip.MustParseAddr("203.0.113.1")
)

// port is that of both ends.
const port = 51820

// topology is a gateway whose far end is one too:
//
//	lan ── fw ══ wan ── wan2
func topology() lab.Topology {
	t := lab.Gateway()
	for i := range t.Hosts {
		if t.Hosts[i].Name == lab.WAN {
			t.Hosts[i].Forwards = true
		}
	}
	t.Hosts = append(t.Hosts, lab.Host{Name: testbed.WAN2, Routes: []lab.Route{{To: netip.MustParsePrefix("0.0.0.0/0"), Via: netip.MustParseAddr("10.2.0.1")}}})
	t.Wires = append(t.Wires, lab.Wire{
		{Host: lab.WAN, Device: "far0", MAC: "02:77:65:00:02:01", Addresses: []netip.Prefix{netip.MustParsePrefix("10.2.0.1/24")}},
		{Host: testbed.WAN2, Device: "eth0", MAC: "02:77:65:00:02:02", Addresses: []netip.Prefix{netip.MustParsePrefix("10.2.0.10/24")}},
	})
	return t
}

// setFrames has the wires carry what a network card does: frames of 1,500 bytes, which whoever receives them puts
// together; or super-packets, as veth does by itself.
func (b *bench) setFrames(frames bool) error {
	if b.frames == frames {
		return nil
	}
	for _, w := range topology().Wires {
		for _, e := range w {
			err := b.bed.Lab.Do(e.Host, func() error {
				return netif.SetFeatures(e.Device, netif.Features{"tx-tcp-segmentation": !frames, "tx-tcp6-segmentation": !frames, "tx-tcp-ecn-segmentation": !frames,
					"tx-udp-segmentation": !frames, "rx-gro": true})
			})
			if err != nil {
				return err
			}
		}
	}
	b.frames = frames
	return nil
}

// process is a running end.
type process struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	said chan string // lines
	err  strings.Builder
}

// patience is how long an end may take to start, and the tunnel until it works.
const patience = 10 * time.Second

func (b *bench) startEnd(host string, e *End) (*process, error) {
	p := &process{cmd: exec.Command(b.bed.Program, "bench", EndCommand)}
	p.cmd.Stderr = &p.err
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := b.bed.Lab.Start(host, p.cmd); err != nil {
		return nil, err
	}
	p.said = make(chan string, 2)
	go func() {
		defer close(p.said)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			p.said <- lines.Text()
		}
	}()
	if err = json.NewEncoder(p.in).Encode(e); err == nil && p.ready() {
		return p, nil
	}
	p.stop() //nolint:errcheck // it has failed already
	return nil, fmt.Errorf("start the end in %s: %w: %s", host, errors.Join(err, errNotReady), p.err.String())
}

// ready waits until the end says that it is ready.
func (p *process) ready() bool {
	select {
	case line := <-p.said:
		return line == ready
	case <-time.After(patience):
		return false
	}
}

var errNotReady = errors.New("it did not begin to work")

// EndCommand is the subcommand of weir bench that runs an end.
const EndCommand = "vpn-end"

func (p *process) stop() error {
	p.in.Close()
	end := time.AfterFunc(patience, func() { p.cmd.Process.Kill() }) //nolint:errcheck // it has ended
	defer end.Stop()
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("an end of the tunnel: %w: %s", err, p.err.String())
	}
	return nil
}

// startTunnel starts both ends, and waits until packets come through.
func (b *bench) startTunnel(ctx context.Context, engine string, ports int) (ends []*process, stop func() error, err error) {
	near, distant := key.NewPrivate(), key.NewPrivate()
	stop = func() error {
		var errs []error
		for _, p := range ends {
			errs = append(errs, p.stop())
		}
		return errors.Join(errs...)
	}
	for _, host := range []string{lab.FW, lab.WAN} {
		if err := b.bed.Lab.Do(host, func() error { return netif.SetSysctl("net/ipv4/conf/all/forwarding", "1") }); err != nil {
			return nil, nil, err
		}
	}
	for _, one := range []struct {
		host string
		e    End
	}{
		{lab.FW, End{Engine: engine, Private: text(near), Peer: distant.Public().String(), Endpoint: netip.AddrPortFrom(farEnd, port), Port: port, Ports: ports,
			Allowed: []netip.Prefix{farNet}, Routes: []netip.Prefix{farNet}}},
		{lab.WAN, End{Engine: engine, Private: text(distant), Peer: near.Public().String(), Endpoint: netip.AddrPortFrom(nearEnd, port), Port: port, Ports: ports,
			Allowed: []netip.Prefix{lanNet}, Routes: []netip.Prefix{lanNet}}},
	} {
		p, err := b.startEnd(one.host, &one.e)
		if err != nil {
			return nil, nil, errors.Join(err, stop())
		}
		ends = append(ends, p)
	}
	for until := time.Now().Add(patience); ; {
		_, err := b.bed.Lab.Run(ctx, lab.LAN, "ping", "-n", "-c", "1", "-W", "1", farHost.String())
		if err == nil {
			for _, p := range ends {
				if ports > 1 && !p.ready() {
					return nil, nil, errors.Join(fmt.Errorf("a link of %d ports: %w", ports, errNotReady), stop())
				}
			}
			return ends, stop, nil
		}
		if time.Now().After(until) || ctx.Err() != nil {
			return nil, nil, errors.Join(fmt.Errorf("the tunnel of %s carries nothing: %w", engine, err), stop())
		}
		time.Sleep(100 * time.Millisecond) // ping fails at once if there is no route yet
	}
}

func text(k key.Secret) string { b := k.Reveal(); return base64.StdEncoding.EncodeToString(b[:]) }

// pair is the LAN's host and the one behind the far end.
func (b *bench) pair() iperf.Pair {
	return iperf.Pair{
		Address: farHost.String(),
		Client:  func(c *exec.Cmd) error { return b.bed.Lab.Start(lab.LAN, c) },
		Server:  func(c *exec.Cmd) error { return b.bed.Lab.Start(testbed.WAN2, c) },
		Await:   func(ctx context.Context, port uint16) error { return b.bed.Lab.AwaitListener(ctx, testbed.WAN2, port) },
	}
}
