package delayline

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Flags of [Device].
const (
	Tun = unix.IFF_TUN
	Tap = unix.IFF_TAP
	// Super makes super-packets cross as they are. Packets then begin with the header
	// that says how to cut them ([HeaderLength] bytes).
	Super = unix.IFF_VNET_HDR
)

// HeaderLength is the length of struct virtio_net_hdr.
const HeaderLength = 10

// Device makes a tun or tap device in the network namespace of the calling thread. It
// disappears when the file is closed.
func Device(name string, flags uint16) (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open /dev/net/tun: %w", err)
	}
	request, err := unix.NewIfreq(name)
	if err == nil {
		request.SetUint16(flags | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	}
	if err == nil && flags&Super != 0 {
		err = unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, unix.TUN_F_CSUM|unix.TUN_F_TSO4|unix.TUN_F_TSO6)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make %s: %w", name, err), unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), name), nil // only after the device is there: only then can it be waited for
}

// Port opens a device of the calling thread's network namespace for frames that are
// written to it. They begin with the header of [Super].
func Port(ifindex int) (*os.File, error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0) // it receives nothing
	if err != nil {
		return nil, fmt.Errorf("open a packet socket: %w", err)
	}
	for _, err := range []error{
		unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1),
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, portBuffer),
		unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: ifindex}),
	} {
		if err != nil {
			return nil, errors.Join(fmt.Errorf("set up a packet socket: %w", err), unix.Close(fd))
		}
	}
	return os.NewFile(uintptr(fd), "packet socket"), nil
}

// portBuffer is room for what a device has not taken yet.
const portBuffer = 16 << 20
