package pflow

import (
	"encoding/binary"
	"net/netip"
	"time"
)

// An element is an information element of IANA's registry (RFC 7012) and its length.
type element struct{ id, length uint16 }

// Elements.
var (
	src4        = element{8, 4}    // sourceIPv4Address
	dst4        = element{12, 4}   // destinationIPv4Address
	src6        = element{27, 16}  // sourceIPv6Address
	dst6        = element{28, 16}  // destinationIPv6Address
	newSrc4     = element{225, 4}  // postNATSourceIPv4Address
	newDst4     = element{226, 4}  // postNATDestinationIPv4Address
	newSrc6     = element{281, 16} // postNATSourceIPv6Address
	newDst6     = element{282, 16} // postNATDestinationIPv6Address
	srcPort     = element{7, 2}    // sourceTransportPort
	dstPort     = element{11, 2}   // destinationTransportPort
	newSrcPort  = element{227, 2}  // postNAPTSourceTransportPort
	newDstPort  = element{228, 2}  // postNAPTDestinationTransportPort
	icmpType4   = element{32, 2}   // icmpTypeCodeIPv4
	icmpType6   = element{139, 2}  // icmpTypeCodeIPv6
	protocol    = element{4, 1}    // protocolIdentifier
	ingress     = element{10, 4}   // ingressInterface
	egress      = element{14, 4}   // egressInterface
	octets      = element{1, 8}    // octetDeltaCount
	packetCount = element{2, 8}    // packetDeltaCount
	start       = element{152, 8}  // flowStartMilliseconds
	end         = element{153, 8}  // flowEndMilliseconds
)

// Sizes and numbers of RFC 7011.
const (
	ipfixHead     = 16
	setHead       = 4
	templateSet   = 2
	firstTemplate = 256
)

// Bits of a template's number: what a flow has.
const (
	has6    = 1 << iota // addresses of IPv6
	hasNew4             // it leaves with other addresses, of IPv4
	hasNew6             // the same, of IPv6
	hasICMP             // a type of ICMP instead of ports
)

// ipfix makes datagrams of IPFIX. A template goes before the first flow that needs it, and
// again after Refresh: what a collector hears by UDP may be lost, and it may start anew.
type ipfix struct {
	clock    Clock
	known    map[uint16]bool
	sets     []byte
	set      int    // where the set that grows begins in sets
	template uint16 // that set's; 0: none
	count    uint32 // records in sets
	sequence uint32 // records sent before
}

func (x *ipfix) Refresh() { clear(x.known) }

// kind returns the bits of the template for a flow.
func (f *Flow) kind() (kind uint16) {
	if f.Src.Is6() {
		kind |= has6
	}
	if f.NewSrc.Is4() {
		kind |= hasNew4
	}
	if f.NewSrc.Is6() {
		kind |= hasNew6
	}
	if f.isICMP() {
		kind |= hasICMP
	}
	return kind
}

// elements returns the elements of a template.
func elements(kind uint16) []element {
	all := []element{src4, dst4}
	if kind&has6 != 0 {
		all = []element{src6, dst6}
	}
	switch {
	case kind&hasICMP == 0:
		all = append(all, srcPort, dstPort)
	case kind&has6 != 0:
		all = append(all, icmpType6)
	default:
		all = append(all, icmpType4)
	}
	all = append(all, protocol, ingress, egress, packetCount, octets, start, end)
	if kind&hasNew4 != 0 {
		all = append(all, newSrc4, newDst4)
	}
	if kind&hasNew6 != 0 {
		all = append(all, newSrc6, newDst6)
	}
	if kind&(hasNew4|hasNew6) != 0 && kind&hasICMP == 0 {
		all = append(all, newSrcPort, newDstPort)
	}
	return all
}

// Add adds a flow, behind its template if that has to be told.
func (x *ipfix) Add(f *Flow) (full [][]byte) {
	kind := f.kind()
	all := elements(kind)
	need := setHead + 2*setHead + 4*len(all)
	for _, e := range all {
		need += int(e.length)
	}
	if ipfixHead+len(x.sets)+need > maxDatagram {
		full = append(full, x.Flush())
	}
	number := firstTemplate + kind
	if !x.known[number] {
		x.known[number] = true
		x.begin(templateSet)
		x.sets = binary.BigEndian.AppendUint16(x.sets, number)
		x.sets = binary.BigEndian.AppendUint16(x.sets, uint16(len(all)))
		for _, e := range all {
			x.sets = binary.BigEndian.AppendUint16(x.sets, e.id)
			x.sets = binary.BigEndian.AppendUint16(x.sets, e.length)
		}
		x.finish()
	}
	if x.template != number {
		x.begin(number)
	}
	for _, e := range all {
		x.sets = f.append(x.sets, e)
	}
	x.count++
	return full
}

// begin ends the set that grows, and begins another one.
func (x *ipfix) begin(number uint16) {
	x.finish()
	x.set, x.template = len(x.sets), number
	x.sets = binary.BigEndian.AppendUint16(x.sets, number)
	x.sets = append(x.sets, 0, 0)
}

// finish writes the length of the set that grows.
func (x *ipfix) finish() {
	if x.template != 0 {
		binary.BigEndian.PutUint16(x.sets[x.set+2:], uint16(len(x.sets)-x.set))
	}
	x.template = 0
}

func (f *Flow) append(to []byte, e element) []byte {
	switch e {
	case src4, src6:
		return appendAddr(to, f.Src)
	case dst4, dst6:
		return appendAddr(to, f.Dst)
	case newSrc4, newSrc6:
		return appendAddr(to, f.NewSrc)
	case newDst4, newDst6:
		return appendAddr(to, f.NewDst)
	case srcPort:
		return binary.BigEndian.AppendUint16(to, f.SrcPort)
	case dstPort:
		return binary.BigEndian.AppendUint16(to, f.DstPort)
	case newSrcPort:
		return binary.BigEndian.AppendUint16(to, f.NewSrcPort)
	case newDstPort:
		return binary.BigEndian.AppendUint16(to, f.NewDstPort)
	case icmpType4, icmpType6:
		return append(to, f.ICMPType, 0)
	case protocol:
		return append(to, f.Proto)
	case ingress:
		return binary.BigEndian.AppendUint32(to, f.In)
	case egress:
		return binary.BigEndian.AppendUint32(to, f.Out)
	case packetCount:
		return binary.BigEndian.AppendUint64(to, f.Packets)
	case octets:
		return binary.BigEndian.AppendUint64(to, f.Bytes)
	case start:
		return appendTime(to, f.First)
	}
	return appendTime(to, f.Last)
}

func appendAddr(to []byte, a netip.Addr) []byte { return append(to, a.AsSlice()...) }

func appendTime(to []byte, t time.Time) []byte {
	return binary.BigEndian.AppendUint64(to, uint64(t.UnixMilli()))
}

// Flush returns the datagram of what waits. Templates do not count in its sequence number.
func (x *ipfix) Flush() []byte {
	if len(x.sets) == 0 {
		return nil
	}
	x.finish()
	now, _ := x.clock()
	to := make([]byte, 0, ipfixHead+len(x.sets))
	to = binary.BigEndian.AppendUint16(to, 10)
	to = binary.BigEndian.AppendUint16(to, uint16(ipfixHead+len(x.sets)))
	to = binary.BigEndian.AppendUint32(to, uint32(now.Unix()))
	to = binary.BigEndian.AppendUint32(to, x.sequence)
	to = append(to, 0, 0, 0, 0) // observation domain: the box as a whole
	to = append(to, x.sets...)
	x.sequence += x.count
	x.sets, x.count = x.sets[:0], 0
	return to
}
