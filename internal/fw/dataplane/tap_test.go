package dataplane

import (
	"errors"
	"fmt"
	"net"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// taps holds the far ends of a network of tap devices, by name. What is written there
// comes in by the device, and has gone the whole way when the write returns.
type taps map[string]int

// newTapNet makes the network of newNet of taps.
func newTapNet(tb testing.TB) (*testNet, taps) {
	tb.Helper()
	all := make(taps)
	n := newNetOf(tb, func(tb testing.TB, name, mac, _ string, addrs ...string) int {
		tb.Helper()
		all[name] = openTap(tb, name)
		// The box must send nothing by itself.
		for _, quiet := range []string{"router_solicitations", "accept_dad", "autoconf"} {
			setSysctl(tb, "net/ipv6/conf/"+name+"/"+quiet, "0")
		}
		link := must(netlink.LinkByName(name))(tb)
		check(tb, netlink.LinkSetHardwareAddr(link, must(net.ParseMAC(mac))(tb)))
		return address(tb, link, addrs)
	})
	return n, all
}

// openTap makes a tap device, which goes with its file.
func openTap(tb testing.TB, name string) int {
	tb.Helper()
	fd := must(unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0))(tb)
	tb.Cleanup(func() { unix.Close(fd) })
	request := must(unix.NewIfreq(name))(tb)
	request.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, request); err != nil {
		tb.Fatalf("make %s: %v", name, err)
	}
	return fd
}

// send makes a frame come in by a device.
func (t taps) send(device string, frame []byte) error {
	if _, err := unix.Write(t[device], frame); err != nil {
		return fmt.Errorf("write %d bytes to %s: %w", len(frame), device, err)
	}
	return nil
}

// receive returns a frame that has left by a device, or nil if there is none.
func (t taps) receive(device string) ([]byte, error) {
	frame := make([]byte, 1<<12)
	n, err := unix.Read(t[device], frame)
	if errors.Is(err, unix.EAGAIN) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read from %s: %w", device, err)
	}
	return frame[:n], nil
}
