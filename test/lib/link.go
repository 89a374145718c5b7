package lib

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"weir/internal/lab"
	"weir/internal/lab/delayline"
)

// IP runs ip commands in a host, one after the other.
func (b *Box) IP(host string, commands ...string) {
	b.Helper()
	for _, c := range commands {
		b.Run(host, "ip", strings.Fields(c)...)
	}
}

// Address gives a device addresses and sets it up.
func (b *Box) Address(host, device string, addresses ...string) {
	b.Helper()
	for _, a := range addresses {
		command := "address replace " + a + " dev " + device
		if strings.Contains(a, ":") {
			command += " nodad"
		}
		b.IP(host, command)
	}
	b.IP(host, "link set "+device+" up")
}

// Wire joins fw to another host by a new veth pair, with the offloads of the story's
// hook.
func (b *Box) Wire(device, peer, peerDevice string) {
	b.Helper()
	b.IP(lab.FW, "link add "+device+" type veth peer name "+peerDevice+" netns "+b.Namespace(peer))
	if b.Hook != "xdp" {
		return
	}
	for _, e := range []struct{ host, device, gro string }{{lab.FW, device, "off"}, {peer, peerDevice, "on"}} {
		b.Run(e.host, "ethtool", "-K", e.device, "tx", "off", "rx", "off", "sg", "off", "tso", "off",
			"gso", "off", "txvlan", "off", "rxvlan", "off", "gro", e.gro)
	}
}

// Tunnel joins two hosts by a pair of tun devices, like a VPN program. This process
// carries the packets between them until the story ends.
func (b *Box) Tunnel(host, device, peer, peerDevice string) {
	b.Helper()
	b.carry(host, device, peer, peerDevice, unix.IFF_TUN)
}

// Taps is Tunnel with tap devices, like a virtual machine's host: with an Ethernet
// header.
func (b *Box) Taps(host, device, peer, peerDevice string) {
	b.Helper()
	b.carry(host, device, peer, peerDevice, unix.IFF_TAP)
}

// DelayLine is Tunnel with a delay for what peer sends. So a round trip takes that long, and
// only acknowledgements of what host sends have to wait here.
func (b *Box) DelayLine(host, device, peer, peerDevice string, delay time.Duration) {
	b.Helper()
	b.carryBy(host, device, peer, peerDevice, unix.IFF_TUN, func(from, to *os.File) error {
		return delayline.Hold(from, to, func([]byte) time.Duration { return delay })
	})
}

// SlowLine gives what a host sends by a device a rate, in Mbit/s, and a queue of so many bytes, as a
// modem does. It replaces the one before, whose packets stay.
func (b *Box) SlowLine(host, device string, rate float64, queue int) {
	b.Helper()
	b.Run(host, "tc", "qdisc", "replace", "dev", device, "root", "handle", "1:", "tbf",
		"rate", fmt.Sprintf("%.0fkbit", rate*1000), "burst", "16kb", "limit", strconv.Itoa(queue))
}

// carry joins two hosts by a pair of devices that are files of this process.
func (b *Box) carry(host, device, peer, peerDevice string, kind uint16) {
	b.Helper()
	b.carryBy(host, device, peer, peerDevice, kind, carry)
}

// carryBy is carry, where back brings what peer sends.
func (b *Box) carryBy(host, device, peer, peerDevice string, kind uint16, back func(from, to *os.File) error) {
	b.Helper()
	near, far := b.tun(host, device, kind), b.tun(peer, peerDevice, kind)
	done := make(chan error, 2)
	go func() { done <- carry(near, far) }()
	go func() { done <- back(far, near) }()
	b.Cleanup(func() {
		near.Close()
		far.Close()
		for range cap(done) {
			if err := <-done; err != nil && !errors.Is(err, os.ErrClosed) {
				b.Errorf("tunnel between %s and %s: %v", host, peer, err)
			}
		}
	})
}

// tun makes a tun or tap device in a host; it disappears when the file is closed.
func (b *Box) tun(host, device string, kind uint16) *os.File {
	b.Helper()
	var file *os.File
	err := b.Do(host, func() (err error) {
		file, err = delayline.Device(device, kind)
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return file
}

// carry carries packets until a file is closed. A device that is down takes none.
func carry(from, to *os.File) error {
	packet := make([]byte, 1<<16)
	for {
		n, err := from.Read(packet)
		if err != nil {
			return err
		}
		if _, err := to.Write(packet[:n]); err != nil && !errors.Is(err, unix.EIO) {
			return err
		}
	}
}

// Netkit joins fw to another host by a netkit pair, like the network of a container. The
// kernel leaves the marks of its packets as they are. The error is that of creating it:
// not every kernel can.
func (b *Box) Netkit(device, peer, peerDevice string) error {
	b.Helper()
	return b.Do(lab.FW, func() error {
		there, err := netns.GetFromName(b.Namespace(peer))
		if err != nil {
			return fmt.Errorf("open the namespace of %s: %w", peer, err)
		}
		defer there.Close()
		pair := &netlink.Netkit{LinkAttrs: netlink.NewLinkAttrs(), Mode: netlink.NETKIT_MODE_L2, Scrub: netlink.NETKIT_SCRUB_NONE, PeerScrub: netlink.NETKIT_SCRUB_NONE}
		pair.Name = device
		other := netlink.NewLinkAttrs()
		other.Name, other.Namespace = peerDevice, netlink.NsFd(int(there))
		pair.SetPeerAttrs(&other)
		if err := netlink.LinkAdd(pair); err != nil {
			return fmt.Errorf("add netkit %s: %w", device, err)
		}
		return nil
	})
}
