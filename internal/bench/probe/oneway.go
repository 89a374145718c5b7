package probe

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// OneWay measures one-way delays of UDP datagrams between hosts, such as those of a call.
type OneWay struct {
	From, To Place
	Source   netip.Addr     // IPv4; the zero Addr: the route chooses
	Target   netip.AddrPort // IPv4; the receiver opens a socket on it
	Interval time.Duration
	Count    int
	Length   int       // bytes of data in a datagram, at least 16
	Until    time.Time // nothing is sent after this; zero: no limit
}

// leastLength has room for a datagram's number and the mark.
const leastLength = 16

// datagramMark keeps strangers' datagrams from being counted.
const datagramMark = 0x776569722d75_6470 // "weir-udp"

// Run sends the datagrams and waits for them. It returns an error if none arrives.
func (o *OneWay) Run(ctx context.Context) (*Delays, error) {
	what := "measure the way to " + o.Target.String()
	if o.Length < leastLength {
		return nil, fmt.Errorf("%s: datagrams of %d bytes: %d at least", what, o.Length, leastLength)
	}
	var from, to *socket
	err := o.To(func() (err error) {
		to, err = open(unix.AF_INET, unix.SOCK_DGRAM, 0, o.Target)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	err = o.From(func() (err error) {
		from, err = open(unix.AF_INET, unix.SOCK_DGRAM, 0, netip.AddrPortFrom(o.Source, 0))
		return err
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", what, err), to.close())
	}
	defer from.close()
	series := newSeries(o.Count)
	receiver := series.collect(ctx, to, datagramNumber)
	message := make([]byte, o.Length)
	binary.BigEndian.PutUint64(message, datagramMark)
	sent, err := pace(o.Count, o.Interval, o.Until, func(i int) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		binary.BigEndian.PutUint64(message[8:], uint64(i))
		series.sent[i] = clock()
		if err := unix.Sendto(from.fd, message, 0, sockaddr(o.Target)); err != nil && !errors.Is(err, unix.ENOBUFS) {
			return fmt.Errorf("send: %w", err)
		}
		return nil
	})
	return series.finish(what, to, receiver, sent, err)
}

func datagramNumber(data []byte) (int, bool) {
	if len(data) < leastLength || binary.BigEndian.Uint64(data) != datagramMark {
		return 0, false
	}
	return int(binary.BigEndian.Uint64(data[8:])), true
}
