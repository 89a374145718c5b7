package userspace

import (
	"fmt"

	"golang.org/x/sys/unix"

	"weir/internal/vpn/tunnel"
)

// flags are those of the tunnel's tun device. It has several queues from the beginning, because that
// cannot change while it is there.
const flags = unix.IFF_TUN | unix.IFF_NO_PI | unix.IFF_VNET_HDR | unix.IFF_MULTI_QUEUE

// offloads are what the kernel may leave to whoever reads the device: checksums, and to split what it has put
// together. Older kernels do not know UDP.
const (
	offloads    = unix.TUN_F_CSUM | unix.TUN_F_TSO4 | unix.TUN_F_TSO6
	offloadsUDP = unix.TUN_F_USO4 | unix.TUN_F_USO6
)

// openTun opens queues of the tun device of a name, and makes it if there is none. It outlives the process.
func openTun(name string, queues int) (all []int, err error) {
	there, err := tunnel.Find(name, "tuntap")
	if err != nil {
		return nil, err
	}
	for i := range queues {
		fd, err := openQueue(name)
		if err == nil {
			all = append(all, fd)
		}
		if err == nil && there == nil && i == 0 {
			if err = tunnel.Mark(name); err == nil { // else it vanishes with the file
				err = unix.IoctlSetInt(fd, unix.TUNSETPERSIST, 1)
			}
		}
		if err != nil {
			closeAll(all)
			return nil, fmt.Errorf("make %s: %w", name, err)
		}
	}
	return all, nil
}

func openQueue(name string) (int, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return -1, fmt.Errorf("open /dev/net/tun: %w", err)
	}
	request, err := unix.NewIfreq(name)
	if err == nil {
		request.SetUint16(flags)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	}
	if err == nil && unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, offloads|offloadsUDP) != nil {
		err = unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, offloads)
	}
	if err != nil {
		unix.Close(fd) //nolint:errcheck // it has failed already
		return -1, err
	}
	return fd, nil
}

func closeAll(fds []int) {
	for _, fd := range fds {
		unix.Close(fd) //nolint:errcheck // the device stays, and what is in its queues goes
	}
}
