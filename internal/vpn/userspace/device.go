package userspace

import (
	"fmt"

	"golang.org/x/sys/unix"

	"weir/internal/vpn/datapath"
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
func openTun(name string, queues int) (tun datapath.Tun, err error) {
	there, err := tunnel.Find(name, "tuntap")
	if err != nil {
		return tun, err
	}
	for i := range queues {
		fd, udp, err := openQueue(name)
		if err == nil {
			tun.Queues, tun.UDP = append(tun.Queues, fd), udp
		}
		if err == nil && there == nil && i == 0 {
			if err = tunnel.Mark(name); err == nil { // else it vanishes with the file
				err = unix.IoctlSetInt(fd, unix.TUNSETPERSIST, 1)
			}
		}
		if err != nil {
			closeAll(tun.Queues)
			return tun, fmt.Errorf("make %s: %w", name, err)
		}
	}
	return tun, nil
}

// openQueue opens a queue. udp says whether the kernel knows datagrams that are put together.
func openQueue(name string) (fd int, udp bool, err error) {
	fd, err = unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return -1, false, fmt.Errorf("open /dev/net/tun: %w", err)
	}
	request, err := unix.NewIfreq(name)
	if err == nil {
		request.SetUint16(flags)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	}
	if err == nil {
		udp = unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, offloads|offloadsUDP) == nil
	}
	if err == nil && !udp {
		err = unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, offloads)
	}
	if err != nil {
		unix.Close(fd) //nolint:errcheck // it has failed already
		return -1, false, err
	}
	return fd, udp, nil
}

func closeAll(fds []int) {
	for _, fd := range fds {
		unix.Close(fd) //nolint:errcheck // the device stays, and what is in its queues goes
	}
}
