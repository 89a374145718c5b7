package vpn

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"

	"github.com/vishvananda/netlink"
	"golang.zx2c4.com/wireguard/conn"
	released "golang.zx2c4.com/wireguard/device"
	"golang.zx2c4.com/wireguard/tun"

	"weir/internal/vpn/key"
	"weir/internal/vpn/tunnel"
	"weir/internal/vpn/userspace"
)

// Engines that are measured.
const (
	Weir     = "weir"
	Released = "wireguard-go"
)

// End is one end of a tunnel, which a process of its own runs in its network namespace.
type End struct {
	Engine   string
	Private  string // made for this run
	Peer     string
	Endpoint netip.AddrPort
	Port     uint16
	Ports    int // of the link; less than 2: one
	Allowed  []netip.Prefix
	Routes   []netip.Prefix
}

// device is the interface of a tunnel.
const device = "wg0"

// mtu is that of a tunnel over IPv4 or IPv6 with 1,500 bytes.
const mtu = 1420

// ready is what an end says when packets may come.
const ready = "ready"

// RunEnd runs the end that is described on in, until in ends.
func RunEnd(ctx context.Context, in io.Reader, out io.Writer) error {
	reader := json.NewDecoder(in)
	var e End
	if err := reader.Decode(&e); err != nil {
		return fmt.Errorf("read what end this is: %w", err)
	}
	states, stop, err := e.start()
	if err != nil {
		return err
	}
	defer stop()
	if err := e.up(); err != nil {
		return err
	}
	fmt.Fprintln(out, ready)
	if e.Ports > 1 {
		if err := e.awaitPorts(ctx, states); err != nil {
			return err
		}
		fmt.Fprintln(out, ready)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		io.Copy(io.Discard, in) //nolint:errcheck // its end is all that matters
	}()
	select {
	case <-ctx.Done():
	case <-ended:
	}
	return nil
}

// awaitPorts waits until the link uses all of its ports.
func (e *End) awaitPorts(ctx context.Context, states func() ([]tunnel.State, error)) error {
	for until := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		all, err := states()
		if err != nil {
			return err
		}
		if len(all) == 1 && all[0].Wide != nil && all[0].Wide.Used == e.Ports {
			return nil
		}
		if time.Now().After(until) || ctx.Err() != nil {
			return fmt.Errorf("a link of %d ports: %+v", e.Ports, all)
		}
	}
}

func (e *End) start() (states func() ([]tunnel.State, error), stop func(), err error) {
	if e.Engine == Released {
		stop, err = e.startReleased()
		return nil, stop, err
	}
	engine, err := userspace.Open(device, mtu, func(string) {})
	if err != nil {
		return nil, nil, err
	}
	stop = func() {
		engine.Close()
		if l, err := netlink.LinkByName(device); err == nil {
			netlink.LinkDel(l) //nolint:errcheck // the namespace is removed
		}
	}
	peer, err := key.ParsePublic(e.Peer)
	private, bad := key.ParseSecret(e.Private)
	if err = cmp.Or(err, bad); err == nil {
		err = engine.Apply(&tunnel.Config{Private: private, Port: e.Port, Peers: []tunnel.Peer{{Key: peer, Endpoint: e.Endpoint, Allowed: e.Allowed, Wide: e.Ports}}})
	}
	if err != nil {
		stop()
		return nil, nil, err
	}
	return engine.States, stop, nil
}

func (e *End) startReleased() (stop func(), err error) {
	t, err := tun.CreateTUN(device, mtu)
	if err != nil {
		return nil, err
	}
	peer, err := key.ParsePublic(e.Peer)
	private, bad := key.ParseSecret(e.Private)
	if err = cmp.Or(err, bad); err != nil {
		return nil, err
	}
	d := released.NewDevice(t, conn.NewDefaultBind(), released.NewLogger(released.LogLevelSilent, ""))
	raw := private.Reveal()
	text := fmt.Sprintf("private_key=%s\nlisten_port=%d\npublic_key=%s\nendpoint=%s\n", hex.EncodeToString(raw[:]), e.Port, peer.Hex(), e.Endpoint)
	for _, a := range e.Allowed {
		text += fmt.Sprintf("allowed_ip=%s\n", a)
	}
	if err := d.IpcSet(text); err != nil {
		d.Close()
		return nil, err
	}
	if err := d.Up(); err != nil {
		d.Close()
		return nil, err
	}
	return d.Close, nil
}

// up sets the interface up, with its routes.
func (e *End) up() error {
	l, err := netlink.LinkByName(device)
	if err != nil {
		return fmt.Errorf("find %s: %w", device, err)
	}
	if err := netlink.LinkSetMTU(l, mtu); err != nil {
		return fmt.Errorf("set the MTU of %s: %w", device, err)
	}
	if err := netlink.LinkSetUp(l); err != nil {
		return fmt.Errorf("set %s up: %w", device, err)
	}
	for _, r := range e.Routes {
		to := &net.IPNet{IP: r.Addr().AsSlice(), Mask: net.CIDRMask(r.Bits(), r.Addr().BitLen())}
		if err := netlink.RouteReplace(&netlink.Route{LinkIndex: l.Attrs().Index, Dst: to}); err != nil {
			return fmt.Errorf("route to %s: %w", r, err)
		}
	}
	return nil
}
