package dataplane

import (
	"fmt"
	"net/netip"
	"sync/atomic"
)

// Limits of capture (bpf/observe/capture_filter.h).
const (
	// CaptureBytes is the most that is captured of a frame: a jumbo frame.
	CaptureBytes = 9216
	// CaptureFilters is the most alternatives that the filters of all readers may
	// have together.
	CaptureFilters = 64
	// CaptureReaders is the most readers at a time.
	CaptureReaders = 16
)

// Bits of xdpCaptureFilter.Flags (bpf/observe/capture_filter.h).
const (
	filterAll = 1 << iota
	filterProto
	filterSport
	filterDport
	filterNotSrc
	filterNotDst
	filterNotSport
	filterNotDport
)

// A CaptureFilter is one alternative of the readers' filters. It selects a packet that
// matches as it came in or as it leaves. A zero field matches everything.
type CaptureFilter struct {
	Readers uint32 // 1 << n for each reader n
	Ifindex int    // interface that the packet came in or leaves by
	All     bool   // also match packets that are not IP; the fields below are ignored
	Family  uint8  // 4 or 6
	Proto   uint8
	Src     CaptureEnd
	Dst     CaptureEnd
}

// A CaptureEnd is the condition on one end of a packet.
type CaptureEnd struct {
	Prefix   netip.Prefix // if not valid: any address
	Not      bool         // match addresses outside Prefix
	Ports    bool         // compare with PortLow to PortHigh
	PortsNot bool         // match ports outside that range
	PortLow  uint16
	PortHigh uint16
}

// SetCapture captures packets that one of the filters selects, up to snap bytes of each.
// Without filters it captures none. It also covers interfaces that are added later, until
// the next call.
func (d *Dataplane) SetCapture(snap int, filters []CaptureFilter) error {
	if len(filters) > CaptureFilters {
		return fmt.Errorf("capture: %d alternatives in all filters, at most %d", len(filters), CaptureFilters)
	}
	if len(filters) == 0 {
		d.SetRecording(CaptureRing, false)
		d.flagCapture()
		return nil
	}
	raw := xdpCaptureSetting{Snap: uint32(min(snap, CaptureBytes)), Count: uint32(len(filters))}
	for i := range filters {
		raw.Filter[i] = filters[i].raw()
	}
	if err := d.needCapture(); err != nil {
		return err
	}
	if err := d.tables.maps[mapCaptureFilters].Put(uint32(0), &raw); err != nil {
		return fmt.Errorf("set what is captured: %w", err)
	}
	d.SetRecording(CaptureRing, true)
	d.flagCapture()
	return nil
}

// flagCapture switches the capture programs on or off for the packets of every interface.
func (d *Dataplane) flagCapture() {
	for i := range d.tables.shared.Interfaces {
		raw := &d.tables.shared.Interfaces[i]
		flags := InterfaceFlags(atomic.LoadUint32(&raw.Flags))
		if flags&InterfacePresent != 0 {
			d.setFlags((*xdpInterface)(raw), flags)
		}
	}
}

// withCapture sets or clears that flag.
func (d *Dataplane) withCapture(flags InterfaceFlags) InterfaceFlags {
	if atomic.LoadUint32(&d.tables.shared.Recording)&(1<<CaptureRing) != 0 {
		return flags | interfaceCapture
	}
	return flags &^ interfaceCapture
}

func (f *CaptureFilter) raw() xdpCaptureFilter {
	raw := xdpCaptureFilter{Readers: f.Readers, Ifindex: uint32(f.Ifindex), Family: f.Family, Proto: f.Proto}
	if f.All {
		raw.Flags = filterAll
		return raw
	}
	if f.Proto != 0 {
		raw.Flags |= filterProto
	}
	raw.Src, raw.SrcMask = f.Src.prefix()
	raw.Dst, raw.DstMask = f.Dst.prefix()
	raw.SportLow, raw.SportHigh = f.Src.PortLow, f.Src.PortHigh
	raw.DportLow, raw.DportHigh = f.Dst.PortLow, f.Dst.PortHigh
	raw.Flags |= f.Src.flags(filterSport, filterNotSrc, filterNotSport) | f.Dst.flags(filterDport, filterNotDst, filterNotDport)
	return raw
}

// prefix returns the address and mask as the programs keep them, IPv4 as ::ffff:a.b.c.d.
func (e *CaptureEnd) prefix() (address, mask xdpAddr) {
	if !e.Prefix.IsValid() {
		return address, mask
	}
	bits := e.Prefix.Bits()
	if e.Prefix.Addr().Is4() {
		bits += 96
	}
	var bytes [16]byte
	for i := range bits {
		bytes[i/8] |= 0x80 >> (i % 8)
	}
	return rawAddr(e.Prefix.Addr()), rawAddr(netip.AddrFrom16(bytes))
}

func (e *CaptureEnd) flags(ports, notAddress, notPorts uint8) uint8 {
	var flags uint8
	if e.Ports {
		flags |= ports
	}
	if e.Not {
		flags |= notAddress
	}
	if e.PortsNot {
		flags |= notPorts
	}
	return flags
}
