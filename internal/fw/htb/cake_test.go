package htb_test

import (
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weir/internal/fw/htb"
	"weir/internal/fw/shaper"
	"weir/internal/testenv"
)

// modem sets wan0 and modem0 up, and returns a socket for packets to each.
func modem(t *testing.T) (wan, modem int, to *unix.SockaddrLinklayer) {
	t.Helper()
	var sockets []int
	for _, name := range []string{"wan0", "modem0"} {
		link, err := netlink.LinkByName(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := netlink.LinkSetUp(link); err != nil {
			t.Fatal(err)
		}
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Close(fd) })
		sockets = append(sockets, fd)
		// What a host sends waits in its queue, never in the socket.
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, 1<<24); err != nil {
			t.Fatal(err)
		}
		if to != nil { // the last one only receives
			if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: swapped(unix.ETH_P_IP), Ifindex: link.Attrs().Index}); err != nil {
				t.Fatal(err)
			}
			copy(to.Addr[:], link.Attrs().HardwareAddr)
			continue
		}
		to = &unix.SockaddrLinklayer{Protocol: swapped(unix.ETH_P_IP), Ifindex: link.Attrs().Index, Halen: 6}
	}
	return sockets[0], sockets[1], to
}

func swapped(n uint16) uint16 { return n<<8 | n>>8 }

// datagram is an IPv4 packet of 500 bytes from a host and port to one destination.
func datagram(host byte, port uint16) []byte {
	b := make([]byte, 500)
	copy(b, []byte{0x45, 0, 500 >> 8, 500 & 0xff, 0, 0, 0, 0, 64, unix.IPPROTO_UDP, 0, 0, 192, 0, 2, host, 203, 0, 113, 1})
	binary.BigEndian.PutUint16(b[20:], port)
	binary.BigEndian.PutUint16(b[22:], 443)
	binary.BigEndian.PutUint16(b[24:], 480)
	return b
}

// shareOf has host 1 send from one port and host 2 from eight, each as much as it can, through a
// class. It returns which part of what arrives is host 1's.
func shareOf(t *testing.T, c shaper.Class, kind string) float64 {
	t.Helper()
	d := inNamespace(t)
	wan, far, to := modem(t)
	c.Default = true
	leaves, err := htb.Set(d, htb.PlanOf(&shaper.Shaper{Uplink: true, Classes: []shaper.Class{c}}, 1500, false))
	if err != nil {
		t.Fatal(err)
	}
	if htb.Names(leaves) != kind {
		testenv.SkipOutside(t, "this kernel has %s instead of %s; the emulated one has both", htb.Names(leaves), kind)
	}
	received, begin := [3]int{}, time.Now()
	buffer := make([]byte, 64)
	// Each round offers three times what the class lets through in the time since the last one, however late it is.
	const warmUp, enough = 400, 800 // packets
	for last, total := time.Now(), 0; total < warmUp+enough; {
		time.Sleep(10 * time.Millisecond)
		rounds := max(1, int(3*float64(c.Max.Bytes)*time.Since(last).Seconds()/(16*500)))
		last = time.Now()
		for i := range uint16(8 * rounds) {
			i %= 8
			for _, packet := range [][]byte{datagram(1, 1000), datagram(2, 2000+i)} {
				if err := unix.Sendto(wan, packet, unix.MSG_DONTWAIT, to); err != nil && err != unix.EAGAIN && err != unix.ENOBUFS {
					t.Fatal(err)
				}
			}
		}
		for {
			n, _, err := unix.Recvfrom(far, buffer, unix.MSG_DONTWAIT)
			if err != nil {
				break
			}
			if host := buffer[15]; n >= 20 && int(host) < len(received) {
				if total++; total > warmUp {
					received[host]++
				}
			}
		}
		if time.Since(begin) > time.Minute {
			t.Fatalf("only %d packets have arrived", total)
		}
	}
	stats, err := htb.Classes(d.Index)
	if err != nil || len(stats) != 1 || stats[0].Drops == 0 || stats[0].Flows < 2 {
		t.Errorf("the class counts %+v (%v); want drops, and packets of several that wait", stats, err)
	}
	t.Logf("host 1: %d packets, host 2: %d", received[1], received[2])
	return float64(received[1]) / float64(received[1]+received[2])
}

// Where the file asks for fairness among hosts, CAKE gives a host with eight connections no more than one with one.
func TestCakeSharesAmongHosts(t *testing.T) {
	const rate = 150_000 // 300 packets a second
	c := class(-1, 1, most(rate))
	if part := shareOf(t, c, "fq_codel"); part > 0.2 {
		t.Errorf("with fq_codel a host with one connection of nine has %.2f of the class: the test shows nothing", part)
	}
	c.FairSaid = true
	for _, fair := range []shaper.Fairness{shaper.FairHostFlow, shaper.FairHost} {
		c.Fair = fair
		if part := shareOf(t, c, "cake"); part < 0.45 || part > 0.55 {
			t.Errorf("with CAKE and fairness %d one of two hosts has %.2f of the class, want half", fair, part)
		}
	}
}

// Another kind of queue takes the place of that of a class, and classes with other queues go on.
func TestCakeTakesThePlace(t *testing.T) {
	d := inNamespace(t)
	tree := &shaper.Shaper{Uplink: true, Classes: []shaper.Class{class(-1, 1, most(1_250_000), above(1, 2)), class(0, 1), class(0, 1)}}
	set(t, d, htb.PlanOf(tree, 1500, false))
	handle := func() string { return strings.Fields(tc(t, "qdisc show dev wan0 parent 7766:2"))[2] }
	before := handle()
	tree.Classes[2].FairSaid = true
	leaves, err := htb.Set(d, htb.PlanOf(tree, 1500, false))
	if err != nil {
		t.Fatal(err)
	}
	if leaves[2] != "cake" {
		testenv.SkipOutside(t, "this kernel has no CAKE; the emulated one has")
	}
	if text := tc(t, "qdisc show dev wan0 parent 7766:3"); !strings.Contains(text, "cake") || !strings.Contains(text, "dual-srchost") || !strings.Contains(text, "besteffort") || !strings.Contains(text, "rtt 100ms") || !strings.Contains(text, "bandwidth unlimited") {
		t.Errorf("the queue is\n%s", text)
	}
	tree.Classes[2].FairSaid = false
	set(t, d, htb.PlanOf(tree, 1500, false))
	if text := tc(t, "qdisc show dev wan0 parent 7766:3"); !strings.Contains(text, "fq_codel") {
		t.Errorf("the queue is\n%s", text)
	}
	if now := handle(); now != before {
		t.Errorf("the queue %s of the other class is %s: packets in it are lost", before, now)
	}
}
