package qos

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weir/internal/bench/iperf"
	"weir/internal/bench/probe"
	"weir/internal/bench/testbed"
	"weir/internal/host/netif"
	"weir/internal/lab"
	"weir/internal/lab/delayline"
)

// Hosts of the LAN. Packets to the prober do not go through the delay line, so its round
// trips are those of the box.
var (
	loader    = netip.MustParseAddr("192.168.1.10")
	secondary = netip.MustParseAddr("192.168.1.126")
	prober    = netip.MustParseAddr("192.168.1.127")
	lanHosts  = netip.MustParsePrefix("192.168.1.64/26")
	lanNet    = netip.MustParsePrefix("192.168.1.0/24")
	servers   = netip.MustParsePrefix("198.18.0.0/16") // each delay has an address
	gateway   = netip.MustParseAddr("203.0.113.2")
)

const (
	slow = "slow0" // the device by which wan's packets come into the delay line
	// mostBuffer is what a socket may hold: more than any line here needs.
	mostBuffer = "4096\t131072\t67108864"
)

// network is the lab with its delay line.
type network struct {
	bed    *testbed.Testbed
	delays []time.Duration // of the servers' addresses, in their order
	files  []*os.File
	held   chan error
}

// newNetwork adds a delay line to the lab, for these round-trip times.
func newNetwork(b *testbed.Testbed, delays []time.Duration) (*network, error) {
	n := &network{bed: b, delays: delays}
	if err := n.build(); err != nil {
		return nil, errors.Join(fmt.Errorf("build the delay line: %w", err), n.close())
	}
	return n, nil
}

func (n *network) build() error {
	l := n.bed.Lab
	if err := errors.Join(l.AddLocal(lab.WAN, servers), l.AddLocal(lab.LAN, lanHosts)); err != nil {
		return err
	}
	for _, host := range []string{lab.LAN, lab.WAN} {
		err := l.Do(host, func() error {
			return errors.Join(netif.SetSysctl("net/ipv4/tcp_no_metrics_save", "1"),
				netif.SetSysctl("net/ipv4/tcp_rmem", mostBuffer), netif.SetSysctl("net/ipv4/tcp_wmem", mostBuffer))
		})
		if err != nil {
			return err
		}
	}
	if err := l.Do(lab.WAN, n.addLine); err != nil {
		return err
	}
	n.held = make(chan error, 1)
	from, to := n.files[0], n.files[1]
	go func() { n.held <- delayline.Hold(from, to, n.delay) }()
	// Not through the line: packets to the prober.
	return l.AddRoute(lab.WAN, testbed.FarEnd.Device, netip.PrefixFrom(prober, 32), gateway)
}

// addLine makes the device of the line in wan, and routes to the LAN by it. What comes out
// of the line leaves by the wire.
func (n *network) addLine() error {
	in, err := delayline.Device(slow, delayline.Tap|delayline.Super)
	if err != nil {
		return err
	}
	n.files = append(n.files, in)
	out, err := delayline.Port(n.bed.Indexes[testbed.FarEnd])
	if err != nil {
		return err
	}
	n.files = append(n.files, out)
	wire, err := netlink.LinkByIndex(n.bed.Indexes[testbed.FarEnd])
	if err != nil {
		return fmt.Errorf("find the wire: %w", err)
	}
	link, err := netlink.LinkByName(slow)
	if err != nil {
		return fmt.Errorf("find %s: %w", slow, err)
	}
	_, peer := n.bed.Lab.MACs(testbed.FarEnd.Host, testbed.FarEnd.Device)
	for _, err := range []error{
		netif.SetSysctl("net/ipv6/conf/"+slow+"/disable_ipv6", "1"),
		netlink.LinkSetHardwareAddr(link, wire.Attrs().HardwareAddr),
		netlink.LinkSetTxQLen(link, 10_000),
		netlink.LinkSetUp(link),
		netlink.NeighSet(&netlink.Neigh{LinkIndex: link.Attrs().Index, IP: gateway.AsSlice(), HardwareAddr: mac(peer), State: netlink.NUD_PERMANENT}),
		netlink.RouteReplace(&netlink.Route{LinkIndex: link.Attrs().Index, Dst: ipNet(lanNet), Gw: gateway.AsSlice(), Flags: int(netlink.FLAG_ONLINK)}),
	} {
		if err != nil {
			return fmt.Errorf("set up %s: %w", slow, err)
		}
	}
	return nil
}

// ethernet is the length of the header of a frame.
const ethernet = 14

// delay returns how long a packet takes: its source is a server's address.
func (n *network) delay(packet []byte) time.Duration {
	const source = delayline.HeaderLength + ethernet + 12
	if len(packet) < source+4 || packet[source] != 198 || int(packet[source+2]) >= len(n.delays) {
		return 0
	}
	return n.delays[packet[source+2]]
}

// server returns the address of the servers that are this far away.
func (n *network) server(rtt time.Duration) netip.Addr {
	for i, d := range n.delays {
		if d == rtt {
			return netip.AddrFrom4([4]byte{198, 18, byte(i), 1})
		}
	}
	return netip.AddrFrom4([4]byte{198, 18, 255, 1}) // no delay
}

// pair returns a host of the LAN and a server as iperf3 needs them.
func (n *network) pair(host netip.Addr, rtt time.Duration) iperf.Pair {
	return iperf.Pair{
		Address: n.server(rtt).String(), Bind: host.String(),
		Client: func(c *exec.Cmd) error { return n.bed.Lab.Start(lab.LAN, c) },
		Server: func(c *exec.Cmd) error { return n.bed.Lab.Start(lab.WAN, c) },
		Await:  func(ctx context.Context, port uint16) error { return n.bed.Lab.AwaitListener(ctx, lab.WAN, port) },
	}
}

func (n *network) near() probe.Place {
	return func(f func() error) error { return n.bed.Lab.Do(lab.LAN, f) }
}

func (n *network) far() probe.Place {
	return func(f func() error) error { return n.bed.Lab.Do(lab.WAN, f) }
}

// setECN makes both ends ask for ECN, or only allow it, as Linux does.
func (n *network) setECN(on bool) error {
	value := "2"
	if on {
		value = "1"
	}
	set := func() error { return netif.SetSysctl("net/ipv4/tcp_ecn", value) }
	return errors.Join(n.bed.Lab.Do(lab.LAN, set), n.bed.Lab.Do(lab.WAN, set))
}

// run runs a shell script of this package in the firewall's namespace.
func (n *network) run(ctx context.Context, script string, args ...string) error {
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-s"}, args...)...)
	var stderr strings.Builder
	cmd.Stdin, cmd.Stderr = strings.NewReader(script), &stderr
	if err := n.bed.Lab.Start(lab.FW, cmd); err != nil {
		return err
	}
	if err := cmd.Wait(); err != nil {
		line, _, _ := strings.Cut(strings.TrimSpace(stderr.String()), "\n")
		return fmt.Errorf("%s queues of the kernel: %w: %s", strings.Join(args, " "), err, line)
	}
	return nil
}

func (n *network) close() error {
	for _, f := range n.files {
		f.Close()
	}
	if n.held == nil {
		return nil
	}
	if err := <-n.held; err != nil && !errors.Is(err, os.ErrClosed) && !errors.Is(err, unix.EBADFD) {
		return fmt.Errorf("delay line: %w", err)
	}
	return nil
}
