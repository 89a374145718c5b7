package lib

import (
	"fmt"
	"regexp"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/testenv"
)

// Ping pings an address; every packet must get a reply.
func (b *Box) Ping(host, to string, packets int) {
	b.Helper()
	out := b.Run(host, "ping", "-n", "-c", strconv.Itoa(packets), "-i", "0.1", "-W", "2", to)
	if sent, answered := pinged(out); sent != packets || answered != packets {
		b.Fatalf("ping %s from %s:\n%s", to, host, out)
	}
}

// pingSummary is the line that ping ends with.
var pingSummary = regexp.MustCompile(`(\d+) packets transmitted, (\d+) received`)

func pinged(out string) (sent, answered int) {
	m := pingSummary.FindStringSubmatch(out)
	if m == nil {
		return 0, 0
	}
	sent, _ = strconv.Atoi(m[1])     //nolint:errcheck // digits by the pattern
	answered, _ = strconv.Atoi(m[2]) //nolint:errcheck // digits by the pattern
	return sent, answered
}

// Scapy runs Python statements in a host, with all names of scapy; they must not raise an
// exception.
func (b *Box) Scapy(host, statements string) string {
	b.Helper()
	testenv.NeedProgram(b, "scapy")
	return b.Run(host, "/usr/bin/python3", "-c", "from scapy.all import *\n"+statements) // the Python that has scapy
}

// ManyUDP sends one packet from each of many sockets, at this rate per second: each is a
// connection of its own.
func (b *Box) ManyUDP(host, to string, port uint16, connections, rate int) {
	b.Helper()
	var destination unix.SockaddrInet4
	var a [4]int
	if _, err := fmt.Sscanf(to, "%d.%d.%d.%d", &a[0], &a[1], &a[2], &a[3]); err != nil {
		b.Fatal(err)
	}
	for i := range a {
		destination.Addr[i] = byte(a[i])
	}
	destination.Port = int(port)
	err := b.Do(host, func() error {
		turn := time.Now()
		for range connections {
			if err := sendOne(&destination); err != nil {
				return err
			}
			turn = turn.Add(time.Second / time.Duration(rate))
			if now := time.Now(); turn.Before(now) {
				turn = now // packets that a busy machine has delayed are not sent all at once
			}
			time.Sleep(time.Until(turn))
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

func sendOne(to unix.Sockaddr) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open a socket: %w", err)
	}
	defer unix.Close(fd)
	if err := unix.Sendto(fd, []byte("x"), 0, to); err != nil {
		return fmt.Errorf("send a packet: %w", err)
	}
	return nil
}
