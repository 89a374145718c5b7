package dataplane

import (
	"fmt"
	"net/netip"
	"sync/atomic"
)

// Limits of capture (bpf/observe/capture.h).
const (
	// CaptureBytes is how much of a frame is captured at most: a jumbo frame.
	CaptureBytes = 9216
	// CaptureFilters is how many alternatives all readers' filters may have together.
	CaptureFilters = 64
	// CaptureReaders is how many readers there may be at a time.
	CaptureReaders = 16
)

// Bits of xdpCaptureFilter.Flags (bpf/observe/capture.h).
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

// A CaptureFilter is one alternative of what readers want to see. It selects a
// packet that fits as it came or as it leaves; a zero field asks nothing.
type CaptureFilter struct {
	Readers uint32 // 1 << n for each reader n
	Ifindex int    // where the packet came or leaves
	All     bool   // also what is not IP; nothing below is asked
	Family  uint8  // 4 or 6
	Proto   uint8
	Src     CaptureEnd
	Dst     CaptureEnd
}

// A CaptureEnd is what is asked of one side of a packet.
type CaptureEnd struct {
	Prefix   netip.Prefix // not valid: not asked
	Not      bool         // not in Prefix
	Ports    bool         // PortLow to PortHigh is asked
	PortsNot bool         // not among them
	PortLow  uint16
	PortHigh uint16
}

// SetCapture has packets captured that one of the filters selects, snap bytes of
// each at most; without filters none. It holds for interfaces that are told of
// later too, until it is called again.
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

// flagCapture sends the packets of every interface through the programs that
// capture, or past them.
func (d *Dataplane) flagCapture() {
	for i := range d.tables.shared.Interfaces {
		raw := &d.tables.shared.Interfaces[i]
		flags := InterfaceFlags(atomic.LoadUint32(&raw.Flags))
		if flags&InterfacePresent != 0 {
			d.setFlags((*xdpInterface)(raw), flags)
		}
	}
}

// withCapture sets or clears the flag that flagCapture is about.
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

// prefix is the address and mask as the programs keep them, IPv4 as ::ffff:a.b.c.d.
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
