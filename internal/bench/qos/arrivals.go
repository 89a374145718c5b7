package qos

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/bench/testbed"
	"weir/internal/fw/bpfload"
)

// flowCount is FLOWS of bpf/arrivals.bpf.c: the last one is for all other packets.
const flowCount = 64

// firstPort is that of the first iperf3 server. Each connection has a server of its own.
const firstPort = 5201

// counter counts what arrives at a host.
type counter struct {
	objects *bpfload.Objects
	link    *bpfload.Link
	memory  *bpfload.Memory
	cells   []arrivalsCell
}

// newCounter begins to count at a device, for a time. fromServer says that servers send
// what arrives there.
func newCounter(b *testbed.Testbed, at testbed.Place, fromServer bool, most time.Duration) (c *counter, err error) {
	object, err := loadArrivals()
	if err != nil {
		return nil, fmt.Errorf("read the program that counts: %w", err)
	}
	n := uint32(bins(most))
	server := uint8(0)
	if fromServer {
		server = 1
	}
	c = &counter{}
	c.objects, err = bpfload.Load([]*bpfload.Spec{object}, bpfload.Options{
		Entries: map[string]uint32{"cells": n * flowCount},
		Values: map[string]any{"begin": monotonic(), "bin_ns": uint64(bin.Nanoseconds()), "bins": n,
			"first_port": uint16(firstPort), "from_server": server}})
	if err != nil {
		return nil, fmt.Errorf("load the program that counts: %w", err)
	}
	if c.memory, err = bpfload.MapMemory(c.objects.Maps["cells"]); err == nil {
		c.cells, err = bpfload.Values[arrivalsCell](c.memory)
	}
	if err == nil {
		c.link, err = b.Attach(at, bpfload.Ingress, c.objects.Programs["count_arrival"])
	}
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// monotonic is the clock of BPF programs.
func monotonic() uint64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		return 0
	}
	return uint64(t.Nano())
}

func (c *counter) close() error {
	var errs []error
	if c.link != nil {
		errs = append(errs, testbed.Detach(c.link))
	}
	if c.memory != nil {
		errs = append(errs, c.memory.Close())
	}
	if c.objects != nil {
		errs = append(errs, c.objects.Close())
	}
	return errors.Join(errs...)
}

// arrivals is what a counter has counted.
type arrivals struct {
	flows  [flowCount]series
	frames [flowCount]float64
	marked [flowCount]float64
}

// read returns what has arrived so far.
func (c *counter) read() *arrivals {
	a := &arrivals{}
	n := len(c.cells) / flowCount
	for flow := range a.flows {
		a.flows[flow] = make(series, n)
		for i := range n {
			cell := &c.cells[i*flowCount+flow]
			a.flows[flow][i] = float64(cell.Bytes)
			a.frames[flow] += float64(cell.Frames)
			a.marked[flow] += float64(cell.Marked)
		}
	}
	return a
}

// all returns the bytes of all flows.
func (a *arrivals) all() series {
	total := make(series, len(a.flows[0]))
	for _, f := range a.flows {
		for i, v := range f {
			total[i] += v
		}
	}
	return total
}

// begin returns when the data of the flows began.
func (a *arrivals) begin(flows []int) time.Duration {
	sum := 0.0
	for i := range a.flows[0] {
		for _, f := range flows {
			sum += a.flows[f][i]
		}
		if sum > firstBytes {
			return time.Duration(i) * bin
		}
	}
	return 0
}

// cut returns the time from the beginning of the data, for as long as they were sent.
func (a *arrivals) cut(begin, length time.Duration) {
	for f := range a.flows {
		a.flows[f] = a.flows[f].between(begin, begin+length)
	}
}
