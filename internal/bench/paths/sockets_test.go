package paths

import (
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"weir/internal/bench/testbed"
	"weir/internal/lab"
	"weir/internal/testenv"
)

// exchange sends a word from one host to another over TCP and back.
func exchange(l *lab.Lab, from, to, addr string) error {
	var server net.Listener
	err := l.Do(to, func() (err error) {
		server, err = net.Listen("tcp", addr+":7777")
		return err
	})
	if err != nil {
		return err
	}
	defer server.Close()
	go func() {
		c, err := server.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		_, _ = io.Copy(c, c) // the client sees the error
	}()
	var client net.Conn
	err = l.Do(from, func() (err error) {
		client, err = net.DialTimeout("tcp", addr+":7777", 2*time.Second)
		return err
	})
	if err != nil {
		return err
	}
	defer client.Close()
	if err := client.SetDeadline(time.Now().Add(2 * time.Second)); err != nil {
		return err
	}
	if _, err := client.Write([]byte("word")); err != nil {
		return err
	}
	_, err = io.ReadFull(client, make([]byte, 4))
	return err
}

// TestStartForSockets starts the kernel's path with a second pair of hosts, and changes
// the offloads. Nothing is forwarded once it has stopped.
func TestStartForSockets(t *testing.T) {
	testenv.NeedRoot(t)
	topology := lab.Gateway()
	topology.Hosts = append(topology.Hosts, lab.Host{Name: testbed.LAN2})
	b, err := testbed.Open(t.Context(), testbed.Options{Name: "weir-test-sockets", Topology: topology})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		testenv.NothingLeft(t, "weir-test-sockets")
	}()
	second := lab.End{Host: testbed.LAN2, Device: "eth0", MAC: "02:77:65:00:00:03", Addresses: []netip.Prefix{netip.MustParsePrefix("192.168.1.11/24")}}
	route := lab.Route{To: netip.MustParsePrefix("0.0.0.0/0"), Via: netip.MustParseAddr("192.168.1.1")}
	if err := b.Lab.Share(lab.LAN, "eth0", second, route); err != nil {
		t.Fatal(err)
	}
	back := netip.MustParsePrefix("192.168.1.0/24")
	if err := b.Lab.AddRoute(lab.WAN, "eth0", back, netip.MustParseAddr("203.0.113.2")); err != nil {
		t.Fatal(err)
	}
	for _, offloads := range []lab.Offloads{lab.OffloadsOn, lab.OffloadsOff} {
		if err := b.SetOffloads(offloads); err != nil {
			t.Fatal(err)
		}
		stop, err := StartForSockets(t.Context(), b, Kernel, SocketOptions{GRO: offloads == lab.OffloadsOff})
		if err != nil {
			t.Fatal(err)
		}
		for _, from := range []string{lab.LAN, testbed.LAN2} {
			if err := exchange(b.Lab, from, lab.WAN, "203.0.113.1"); err != nil {
				t.Errorf("offloads %v, from %s: %v", offloads, from, err)
			}
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	}
	if err := exchange(b.Lab, lab.LAN, lab.WAN, "203.0.113.1"); err == nil {
		t.Error("the firewall forwards though its path has stopped")
	}
	if _, err := StartForSockets(t.Context(), b, Redirect, SocketOptions{}); err == nil {
		t.Error("the bare redirect was started for sockets")
	}
}
