package netif

import (
	"encoding/binary"
	"fmt"
	"syscall"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// XDPRefusal returns a driver's message against an XDP program, "" if it has none. BPF
// links return only an error number, so XDPRefusal offers the program once more by
// netlink. If the driver accepts it this time, it removes it again.
func XDPRefusal(ifindex, program int) (string, error) {
	said, errno, err := setXDP(ifindex, program)
	if err != nil {
		return "", err
	}
	if errno == 0 {
		_, _, err = setXDP(ifindex, -1)
		return "", err
	}
	return said, nil
}

// setXDP sets an interface's native XDP program if there is none, or removes it (-1). If
// the kernel refuses, it returns the kernel's message and error number.
func setXDP(ifindex, program int) (said string, errno syscall.Errno, err error) {
	flags := uint32(nl.XDP_FLAGS_DRV_MODE)
	if program >= 0 {
		flags |= nl.XDP_FLAGS_UPDATE_IF_NOEXIST
	}
	message := nl.NewIfInfomsg(unix.AF_UNSPEC)
	message.Index = int32(ifindex)
	xdp := nl.NewRtAttr(unix.IFLA_XDP|unix.NLA_F_NESTED, nil)
	xdp.AddRtAttr(nl.IFLA_XDP_FD, nl.Uint32Attr(uint32(program)))
	xdp.AddRtAttr(nl.IFLA_XDP_FLAGS, nl.Uint32Attr(flags))
	request := nl.NewNetlinkRequest(unix.RTM_SETLINK, unix.NLM_F_ACK)
	request.AddData(message)
	request.AddData(xdp)
	answer, err := exchange(request.Serialize())
	if err != nil {
		return "", 0, fmt.Errorf("offer an XDP program to interface %d: %w", ifindex, err)
	}
	errno, said = readAck(answer)
	return said, errno, nil
}

// exchange sends one message and returns the reply, which describes an error in words.
func exchange(request []byte) ([]byte, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	for _, option := range []int{unix.NETLINK_EXT_ACK, unix.NETLINK_CAP_ACK} {
		if err := unix.SetsockoptInt(fd, unix.SOL_NETLINK, option, 1); err != nil {
			return nil, err
		}
	}
	if err := unix.Sendto(fd, request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, err
	}
	answer := make([]byte, 8192)
	n, _, err := unix.Recvfrom(fd, answer, 0)
	return answer[:max(n, 0)], err
}

// readAck reads a reply: the error number and its text.
func readAck(answer []byte) (syscall.Errno, string) {
	const head = unix.SizeofNlMsghdr + 4 // header and error number of the reply
	if len(answer) < head+unix.SizeofNlMsghdr {
		return 0, ""
	}
	errno := syscall.Errno(-int32(binary.NativeEndian.Uint32(answer[unix.SizeofNlMsghdr:])))
	attributes, err := nl.ParseRouteAttrAsMap(answer[head+unix.SizeofNlMsghdr:])
	if err != nil {
		return errno, ""
	}
	return errno, nl.BytesToString(attributes[unix.NLMSGERR_ATTR_MSG].Value)
}
