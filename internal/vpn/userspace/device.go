package userspace

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"weir/internal/vpn/tunnel"
)

// flags are those of the tunnel's tun device. It has several queues from the beginning, because that
// cannot change while it is there.
const flags = unix.IFF_TUN | unix.IFF_NO_PI | unix.IFF_VNET_HDR | unix.IFF_MULTI_QUEUE

// openTun opens the tun device of a name, and makes it if there is none. It outlives the process.
func openTun(name string) (*os.File, error) {
	there, err := tunnel.Find(name, "tuntap")
	if err != nil {
		return nil, err
	}
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open /dev/net/tun: %w", err)
	}
	request, err := unix.NewIfreq(name)
	if err == nil {
		request.SetUint16(flags)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	}
	if err == nil && there == nil {
		if err = tunnel.Mark(name); err == nil { // else it vanishes with the file
			err = unix.IoctlSetInt(fd, unix.TUNSETPERSIST, 1)
		}
	}
	if err != nil {
		unix.Close(fd) //nolint:errcheck // it has failed already
		return nil, fmt.Errorf("make %s: %w", name, err)
	}
	// The runtime begins to poll the file here, which is too early before it has a device.
	return os.NewFile(uintptr(fd), "/dev/net/tun"), nil
}
