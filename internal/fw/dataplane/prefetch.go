package dataplane

import (
	"errors"
	"fmt"
	"iter"
	"net"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"weir/internal/fw/bpfload"
	"weir/internal/killpoint"
)

// programPrefetch does the second pass (bpf/path/prefetch.h).
const programPrefetch = "weir_xdp_prefetch"

// hintsInLine is HINTS of bpf/state/hint.h.
const hintsInLine = uint32(len(xdpHints{}.Word))

// withdraw makes packets of a state take one pass only.
func (t *tables) withdraw(index uint32) {
	atomic.StoreUint32(&t.hints[index/hintsInLine].Word[index%hintsInLine], 0)
}

// Prefetch switches prefetching on or off: whether the states of several packets are
// fetched from memory together. Calling it again includes interfaces that were added
// later. If it returns an error, packets are not prefetched.
func (d *Dataplane) Prefetch(on bool) error {
	return d.place.Do(func() error {
		if !on || d.objects.Programs[entryXDP.name] == nil {
			return d.tables.stopPrefetch()
		}
		err := d.startPrefetch()
		if err != nil {
			err = errors.Join(fmt.Errorf("prefetch: %w", err), d.tables.stopPrefetch())
		}
		return err
	})
}

// PrefetchCounts returns how many packets have taken two passes since the programs were
// loaded, and how many of known connections were spared the second one because their core had seen the
// tuple lately. Packets that are neither count as neither: they had no hint, or no state.
func (d *Dataplane) PrefetchCounts() (queued, spared uint64, err error) {
	m := d.objects.Maps[mapPrefetches]
	if m == nil {
		return 0, 0, nil
	}
	values, err := newPerCPU[xdpPrefetch]()
	if err != nil {
		return 0, 0, err
	}
	if err := m.Lookup(uint32(0), values); err != nil {
		return 0, 0, fmt.Errorf("read what was prefetched: %w", err)
	}
	for i := range values {
		queued += values[i].Queued
		spared += values[i].Spared
	}
	return queued, spared, nil
}

// Prefetching reports whether packets are prefetched.
func (d *Dataplane) Prefetching() bool { return d.tables.prefetching() }

func (t *tables) prefetching() bool {
	return t != nil && t.shared != nil && atomic.LoadUint32(&t.shared.Prefetch) != 0
}

// startPrefetch first routes everything that goes to an interface through its prefetch
// device. It allows first passes once no packet is under way that bypasses the device.
// The kernel runs a devmap program over all frames that a poll sends to a device, or over
// none. A frame with only a first pass would otherwise leave unfinished.
func (d *Dataplane) startPrefetch() error {
	if err := d.need(programPrefetch); err != nil {
		return err
	}
	var waiting []*xdpInterface
	for ifindex, raw := range d.tables.interfaces() {
		if !raw.has(InterfaceTarget) || raw.has(interfacePrefetch) {
			continue
		}
		added, err := d.addPrefetchDevice(ifindex)
		if err != nil {
			return err
		}
		if added {
			raw.change(interfaceDevmap, 0)
			killpoint.Done("redirect to interface %d by its prefetch device", ifindex)
			waiting = append(waiting, raw)
		}
	}
	if len(waiting) > 0 {
		if err := waitForRuns(); err != nil {
			for _, raw := range waiting { // no packet has had only a first pass on its way there
				raw.change(0, interfaceDevmap)
			}
			return err
		}
	}
	for _, raw := range waiting {
		raw.change(interfacePrefetch, 0)
	}
	if !d.tables.prefetching() {
		d.BumpRoutes() // older hints may be wrong: nothing kept them up to date
		atomic.StoreUint32(&d.tables.shared.Prefetch, 1)
		killpoint.Done("prefetch packets")
	}
	return nil
}

// addPrefetchDevice makes the prefetch device of an interface. It returns false if the
// interface is gone.
func (d *Dataplane) addPrefetchDevice(ifindex int) (bool, error) {
	err := bpfload.PutDevmap(d.objects.Maps[mapPrefetchDevices], uint32(ifindex), uint32(ifindex), d.objects.Programs[programPrefetch])
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENODEV) {
		if _, none := net.InterfaceByIndex(ifindex); none != nil {
			return false, nil
		}
	}
	return err == nil, err
}

// keepPrefetchDevices makes the prefetch devices of this generation if the previous one
// has them, because for a moment the programs of both use the same interfaces. With
// different tables they would not agree on what goes through a prefetch device. The
// previous generation then makes one pass from now on.
func (d *Dataplane) keepPrefetchDevices() error {
	for _, o := range d.origins() {
		if err := o.stopPrefetch(); err != nil {
			return err
		}
	}
	if !d.tables.hasPrefetchDevices() {
		return nil
	}
	if err := d.need(programPrefetch); err != nil {
		return err
	}
	for ifindex, raw := range d.tables.interfaces() {
		if !raw.has(interfaceDevmap) {
			continue
		}
		if _, err := d.addPrefetchDevice(ifindex); err != nil {
			return err
		}
	}
	return nil
}

// stopPrefetch ends prefetching in the opposite order. It also cleans up if a killed
// daemon had only half started or stopped it.
func (t *tables) stopPrefetch() error {
	if !t.prefetching() && !t.hasPrefetchDevices() {
		return nil
	}
	return stopPrefetch(&t.shared.Prefetch, func(yield func(*uint32) bool) {
		for _, raw := range t.interfaces() {
			if !yield(&raw.Flags) {
				return
			}
		}
	})
}

// stopPrefetch clears the word that switches prefetching on, and the interfaces' flags.
func stopPrefetch(prefetch *uint32, interfaces iter.Seq[*uint32]) error {
	atomic.StoreUint32(prefetch, 0)
	for flags := range interfaces {
		changeFlags(flags, 0, interfacePrefetch)
	}
	killpoint.Done("stop prefetching")
	if err := waitForRuns(); err != nil {
		return err
	}
	for flags := range interfaces {
		changeFlags(flags, 0, interfaceDevmap)
	}
	killpoint.Done("redirect without prefetch devices")
	return nil
}

// hasPrefetchDevices reports whether packets to an interface go through its prefetch
// device.
func (t *tables) hasPrefetchDevices() bool {
	for _, raw := range t.interfaces() {
		if raw.has(interfaceDevmap | interfacePrefetch) {
			return true
		}
	}
	return false
}

// waitForRuns is bpfload.WaitForRuns. Tests make it fail.
var waitForRuns = bpfload.WaitForRuns

// interfaces yields the interfaces that the programs know, by index.
func (t *tables) interfaces() iter.Seq2[int, *xdpInterface] {
	return func(yield func(int, *xdpInterface) bool) {
		for i := range t.shared.Interfaces {
			raw := (*xdpInterface)(&t.shared.Interfaces[i])
			if raw.has(InterfacePresent) && !yield(i, raw) {
				return
			}
		}
	}
}

// has reports whether an interface has one of the flags.
func (raw *xdpInterface) has(flags InterfaceFlags) bool {
	return InterfaceFlags(atomic.LoadUint32(&raw.Flags))&flags != 0
}

// change calls changeFlags for an interface.
func (raw *xdpInterface) change(set, clear InterfaceFlags) {
	changeFlags(&raw.Flags, set, clear)
}

// changeFlags sets and clears flags of an interface. No one else may change these flags.
func changeFlags(flags *uint32, set, clear InterfaceFlags) {
	for {
		was := atomic.LoadUint32(flags)
		now := (was | uint32(set)) &^ uint32(clear)
		if was == now || atomic.CompareAndSwapUint32(flags, was, now) {
			return
		}
	}
}
