package qos

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/lab"
)

const (
	// floodLength makes a datagram a full frame, fullFrame bytes of the line.
	floodLength = 1472
	fullFrame   = 1538
	// floodPause is the time between bursts: what a timer of a busy machine keeps.
	floodPause = time.Millisecond
	// firstSource is the first port that a flood comes from.
	firstSource = 20_000
)

// flood sends datagrams from many ports at a rate, until a moment. Nobody reads them.
func (n *network) flood(ctx context.Context, f flood, until time.Time) (err error) {
	to := netip.AddrPortFrom(n.server(-1), floodPort)
	var sockets []*net.UDPConn
	defer func() {
		for _, s := range sockets {
			err = errors.Join(err, s.Close())
		}
	}()
	err = n.bed.Lab.Do(lab.WAN, func() error {
		s, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(to))
		sockets = append(sockets, s)
		return err
	})
	if err != nil {
		return fmt.Errorf("flood: %w", err)
	}
	err = n.bed.Lab.Do(lab.LAN, func() error {
		for i := range f.ports {
			s, err := net.DialUDP("udp4", &net.UDPAddr{IP: f.host.AsSlice(), Port: firstSource + i}, net.UDPAddrFromAddrPort(to))
			if err != nil {
				return err
			}
			sockets = append(sockets, s)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("flood: %w", err)
	}
	datagram := make([]byte, floodLength)
	begun, sent := time.Now(), 0.0
	for i := 1; ; {
		now := time.Now()
		if !now.Before(until) || ctx.Err() != nil {
			return ctx.Err()
		}
		for due := now.Sub(begun).Seconds() * f.rate / 8; sent < due; sent += fullFrame {
			_, err := sockets[i].Write(datagram)
			if err != nil && !errors.Is(err, unix.ENOBUFS) && !errors.Is(err, unix.ECONNREFUSED) {
				return fmt.Errorf("flood: %w", err)
			}
			if i++; i == len(sockets) {
				i = 1
			}
		}
		time.Sleep(floodPause)
	}
}
