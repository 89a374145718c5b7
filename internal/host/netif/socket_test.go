package netif_test

import (
	"context"
	"net"
	"net/netip"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"weir/internal/host/netif"
	"weir/internal/lab"
)

// TestConnections checks that both ends of a connection are listed, each with its own
// scale: that of a small receive buffer is 0. Listening sockets are not listed.
func TestConnections(t *testing.T) {
	inLab(t, lab.Options{Name: "sock"}, func(*lab.Lab) error {
		for _, address := range []string{"127.0.0.1", "::1"} {
			config := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) (err error) {
				set := raw.Control(func(fd uintptr) {
					err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, 8192)
				})
				if set != nil {
					return set
				}
				return err
			}}
			l, err := config.Listen(context.Background(), "tcp", net.JoinHostPort(address, "0"))
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			c, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			all, err := netif.Connections()
			if err != nil {
				t.Fatal(err)
			}
			server := netip.MustParseAddrPort(l.Addr().String())
			client := netip.MustParseAddrPort(c.LocalAddr().String())
			found := 0
			for _, s := range all {
				switch {
				case s.Local == server && s.Remote == client:
					found++
					if !s.Accepted || !s.Scaled || s.LocalScale != 0 || s.RemoteScale == 0 {
						t.Errorf("the listening end is told as %+v", s)
					}
				case s.Local == client && s.Remote == server:
					found++
					if s.Accepted || !s.Scaled || s.LocalScale == 0 || s.RemoteScale != 0 || s.RemoteWindow == 0 {
						t.Errorf("the end that opened it is told as %+v", s)
					}
				}
			}
			if found != 2 {
				t.Errorf("%d of the two ends are told: %+v", found, all)
			}
		}
		return nil
	})
}
