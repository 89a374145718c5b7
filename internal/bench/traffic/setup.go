package traffic

import (
	"net"
	"net/netip"

	"weir/internal/bench/testbed"
	"weir/internal/fw/bpfload"
	"weir/internal/lab"
)

// Effect is what a path does to frames.
type Effect struct {
	ToDoor     bool // frames end at the firewall's device
	Routes     bool // decrements the TTL
	Translates bool // replaces sources by the firewall's address
	Connects   bool // tracks connections
	HasEgress  bool // frames pass the egress hook when they leave
	Tagged     bool // frames have VLAN tags on both wires, [NearVLAN] and [FarVLAN]
	InSession  bool // IPv4: frames are in a PPPoE session on the far wire
	Normalises bool // clears DF of IPv4
	FromIPv6   bool // an IPv4 case's frames are IPv6 at the near end, and longer by its header
}

// Setup is one path in one case: where frames start, where they are seen again, and what
// has changed by then.
type Setup struct {
	Testbed *testbed.Testbed
	Case    Case
	Effect
	// Numbered says that frames of IPv4 have numbers, and that their order is checked where they are counted.
	Numbered bool
	// Grows says that generators make room for a part of each frame. The kernel then restores each frame for them, as it
	// does if a firewall has moved its start. So that is no difference between a path that does and one that does not.
	Grows bool
	// Session is the PPPoE session, and SessionAddr the firewall's address in it, if frames are in one.
	// Whoever starts the path sets both.
	Session     uint16
	SessionAddr netip.Addr

	answers *bpfload.Map // addresses and ports that the far end answers to; see MakeResults
}

// VLANs of the two wires if frames are tagged.
const (
	NearVLAN = 10
	FarVLAN  = 20
)

// tag returns the VLAN of the wire at one of the firewall's devices, or 0 if frames have
// no tag.
func (w *Setup) tag(door testbed.Place) uint16 {
	switch {
	case !w.Tagged:
		return 0
	case door == testbed.NearDoor:
		return NearVLAN
	}
	return FarVLAN
}

// begin returns the device that sends the frames.
func (w *Setup) begin(back bool) testbed.Place {
	if back {
		return testbed.FarEnd
	}
	return testbed.NearEnd
}

// Door returns the firewall's device that frames reach first.
func (w *Setup) Door(back bool) testbed.Place {
	if back {
		return testbed.FarDoor
	}
	return testbed.NearDoor
}

// end returns where frames are checked. They are counted there too, unless the sink is
// egress.
func (w *Setup) end(back bool) testbed.Place {
	switch {
	case w.ToDoor:
		return w.Door(back)
	case back:
		return testbed.NearEnd
	}
	return testbed.FarEnd
}

// exit returns the firewall's device that frames leave by.
func (w *Setup) exit(back bool) testbed.Place { return w.Door(!back) }

// egress reports whether frames are counted at the firewall's egress. A path
// that redirects in XDP has no egress hook.
func (w *Setup) egress() bool { return w.Case.Sink == Egress && w.HasEgress }

// ipv6 reports whether frames use IPv6 on one of the two wires.
func (w *Setup) ipv6(near bool) bool { return w.Case.IPv6() || near && w.FromIPv6 }

// sources returns the network of the hosts at the near end.
func (w *Setup) sources() netip.Addr {
	if w.Translates {
		return testbed.LANHosts.Addr(w.ipv6(true))
	}
	return testbed.RoutedHosts.Addr(w.ipv6(true))
}

// targets returns the network of the hosts at the far end, as it is on one of the two wires.
func (w *Setup) targets(near bool) netip.Addr {
	own := testbed.TargetNet.Addr(w.Case.IPv6())
	if !near || !w.FromIPv6 {
		return own
	}
	as16, as4 := netip.MustParseAddr("64:ff9b::").As16(), own.As4() // RFC 6052
	copy(as16[12:], as4[:])
	return netip.AddrFrom16(as16)
}

// router returns the address that the firewall translates sources to.
func (w *Setup) router() netip.Addr {
	if w.InSession {
		return w.SessionAddr
	}
	return w.Testbed.Lab.Addr(lab.FW, "wan0", w.Case.IPv6())
}

// outside returns the sources' network as the far end sees it.
func (w *Setup) outside() netip.Addr {
	if w.Translates {
		return w.router()
	}
	return w.sources()
}

// spec describes frames as they are sent.
func (w *Setup) spec(back bool, seg *segment, length int) (*frameSpec, error) {
	source, target, err := w.Testbed.MACs(w.begin(back), w.Door(back))
	if err != nil {
		return nil, err
	}
	if back {
		return w.newSpec(false, w.tag(w.Door(back)), seg, length, source, target, w.targets(false), w.outside()), nil
	}
	return w.newSpec(true, w.tag(w.Door(back)), seg, length, source, target, w.sources(), w.targets(true)), nil
}

// arrival describes the same frames at their far end.
func (w *Setup) arrival(back bool, seg *segment, length int) (*frameSpec, error) {
	from, to, tag := w.exit(back), w.end(back), w.tag(w.exit(back))
	if w.ToDoor {
		from, to, tag = w.begin(back), w.Door(back), w.tag(w.Door(back))
	}
	source, target, err := w.Testbed.MACs(from, to)
	if err != nil {
		return nil, err
	}
	if back {
		return w.newSpec(true, tag, seg, length, source, target, w.targets(true), w.sources()), nil
	}
	return w.newSpec(false, tag, seg, length, source, target, w.outside(), w.targets(false)), nil
}

// newSpec describes frames on one of the two wires. The length is that of the case, without
// their tag or session.
func (w *Setup) newSpec(near bool, tag uint16, seg *segment, length int, source, target net.HardwareAddr, from, to netip.Addr) *frameSpec {
	s := &frameSpec{ipv6: w.ipv6(near), tcp: seg, source: source, target: target, from: from, to: to, tag: tag}
	if w.InSession && !near {
		s.session = w.Session
	}
	s.length = length + s.tagLen()
	if near && w.FromIPv6 {
		s.length += ip6Len - ip4Len
	}
	s.fromIPv6 = !near && w.FromIPv6
	return s
}

// arrivalTTL returns the TTL or hop limit at the far end.
func (w *Setup) arrivalTTL() byte {
	if w.Routes {
		return hops - 1
	}
	return hops
}

// length returns the frames' length in memory.
func (w *Setup) length() int {
	if w.Case.Pattern == IMIX {
		return imixLongest - fcsLen
	}
	return w.Case.Frame - fcsLen
}

// Frame is one of the frames that open a connection.
type Frame struct {
	back   bool
	seg    *segment
	length int
}

// FirstFrames returns the frames that open a connection. After them it is open in both
// directions, and the windows of both sides are known.
func (w *Setup) FirstFrames() []Frame {
	if !w.Case.TCP() {
		return []Frame{{false, nil, w.length()}, {true, nil, w.length()}}
	}
	short := TrueSize(LeastFrame, w.Case.IPv6(), true) - fcsLen
	syn := max(short, plain(w.Case.IPv6(), true).headerLen()+len(tcpOptions))
	return []Frame{
		{false, &segment{flags: flagSYN, sequence: nearSequence, options: tcpOptions}, syn},
		{true, &segment{flags: flagSYN | flagACK, sequence: farSequence, ack: nearSequence + 1, options: tcpOptions}, syn},
		{false, w.data(false), short},
		{true, w.data(true), short},
	}
}

// data returns a segment of an open connection, or nil for UDP.
func (w *Setup) data(back bool) *segment {
	switch {
	case !w.Case.TCP():
		return nil
	case back:
		return &segment{flags: flagACK, sequence: farSequence + 1, ack: nearSequence + 1}
	}
	return &segment{flags: flagACK, sequence: nearSequence + 1, ack: farSequence + 1}
}

// Reset returns the frame with which a client ends an open connection.
func (w *Setup) Reset() Frame {
	short := TrueSize(LeastFrame, w.Case.IPv6(), true) - fcsLen
	sent := short - plain(w.Case.IPv6(), true).headerLen()
	return Frame{false, &segment{flags: flagRST | flagACK, sequence: nearSequence + 1 + uint32(sent), ack: farSequence + 1}, short}
}

// Steady returns a frame of an open connection.
func (w *Setup) Steady(back bool) Frame { return Frame{back, w.data(back), w.length()} }

// AllFlows returns the flows of the case, one after the other.
func (w *Setup) AllFlows() FlowRange { return FlowRange{Count: uint32(w.Case.Flows), Step: 1} }

// SteadyFlows returns the flows of the case for n generators, in its pattern. In all
// patterns but [Ordered] each is far from the one before it.
func (w *Setup) SteadyFlows(n int) []FlowRange {
	parts := FlowRange{Count: uint32(w.Case.Flows), Pattern: w.Case.Pattern}.Split(n)
	for i := range parts {
		parts[i].Step = Stride(parts[i].Count)
		if w.Case.Pattern == Ordered {
			parts[i].Step = 1
		}
	}
	return parts
}

// FreshFlows returns count flows that the case does not have, from number first on.
func FreshFlows(first, count uint32) FlowRange { return FlowRange{First: first, Count: count, Step: 1} }

// MakeResults makes the table in which the far end notes where answers go.
func (w *Setup) MakeResults() (*bpfload.Objects, error) {
	objects, err := load("the table of flows", loadCheck, bpfload.Options{
		Entries: map[string]uint32{"answers": uint32(w.Case.Flows)},
		Values:  map[string]any{"frame_len": uint32(LeastFrame - fcsLen)}, // without it the program is rejected
	})
	if err != nil {
		return nil, err
	}
	w.answers = objects.Maps["answers"]
	return objects, nil
}
