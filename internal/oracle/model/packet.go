package model

import (
	"weir/internal/fw/state"
	"weir/pf/resolve"
)

// Protocol numbers.
const (
	protoICMP   = 1
	protoIGMP   = 2
	protoTCP    = 6
	protoUDP    = 17
	protoICMPv6 = 58
	protoSCTP   = 132
)

// hasPorts reports whether a protocol has ports.
func hasPorts(proto uint8) bool { return translatesPorts(proto) || proto == protoSCTP }

// translatesPorts reports whether translation may change the ports of a protocol. The
// checksum of SCTP covers the whole packet: its ports stay.
func translatesPorts(proto uint8) bool { return proto == protoTCP || proto == protoUDP }

// Bits of a TCP header's flags.
const (
	flagFIN = 0x01
	flagSYN = 0x02
	flagRST = 0x04
	flagPSH = 0x08
	flagACK = 0x10
	flagURG = 0x20
)

// Fragment says which part of a fragmented packet is in a frame.
type fragment uint8

const (
	fragmentNone fragment = iota
	fragmentFirst
	fragmentLater
)

// A packet is a parsed frame.
type packet struct {
	frame []byte // the whole frame; rewriting changes it in place
	iface *Interface
	hook  Hook
	from  *Interface // where it came into the box; nil: a packet of the box itself

	l3      int // offset of the IP header
	l4      int // offset of the L4 header, or of a later fragment's payload
	end     int // offset behind the packet's last byte; padding follows
	family  int // 4 or 6
	ttl     uint8
	prio    uint8 // that it came with
	tagged  bool  // by XDP: the frame has tags, the last of which is tci
	tci     uint16
	tag     string // that ether rules have set
	tos     uint8  // for IPv6 without the congestion bits, as in pf
	tuple   state.Tuple
	mark    uint32       // of the packet in the stack; 0 under XDP
	arrived uint32       // the mark that it came with
	marks   resolve.Mark // that rules on the way in have set on a packet without a state
	steered uint32       // the mark that it is routed by
	// outMarks are set where a packet without a state leaves. They do not steer it.
	outMarks resolve.Mark
	chosen   *hop // the gateway that a rule has chosen for a packet without a state

	options   bool // IPv4 options, IPv6 hop-by-hop or destination options
	group     bool // the frame is for a group MAC address
	icmpError bool // quotes another packet, at l4+8

	pieces          bool // fragments meet the rules each for itself: all of them are later ones
	fragment        fragment
	fragmentID      uint32
	fragmentOffset  int // bytes
	fragmentPayload int // bytes of the whole packet in this fragment
	more            bool
	fragmentProto   uint8 // part of the key of a packet's fragments; 0 in IPv6 (RFC 8200, 4.5)

	icmpType, icmpCode uint8 // of ICMP and ICMPv6
	tcp                segment
	losesFIN           bool // a SYN whose FIN is cleared when it goes on

	path Path // what it counts under if it has no state

	came      []byte // the IP packet before anything was rewritten
	scrub     scrub
	newID     uint16       // what random-id gives it
	qos       qos          // by the rules, and by what its connection keeps of them
	recorded  *packetQoS   // what it had when it went up; nil: there is no record
	carrier   *connection  // the packet's connection; nil: none
	direction int          // of carrier
	anew      [2]*crossing // in and out, if its packet meets rules although it has a carrier
	to        uint32       // carrier's packet: index of the interface that it would leave by; 0: none
	crossed   [2]*crossing // in and out, if it has made its carrier
	met       *crossing    // the first crossing, if its rules were evaluated already
	replaces  *connection  // the one that ends if the packet makes one; nil: none
	records   []Record
}

// A segment is a TCP header.
type segment struct {
	flags    uint8
	header   int // bytes
	payload  int // bytes of data
	seq, ack uint32
	window   uint32 // unscaled
}

// alone reports whether the packet is a fragment that meets the rules for itself.
func (p *packet) alone() bool { return p.pieces && p.fragment == fragmentLater }

// standAlone makes a fragment one that meets the rules for itself.
func (p *packet) standAlone() {
	p.pieces, p.fragment = true, fragmentLater
	p.tuple.SPort, p.tuple.DPort = 0, 0
	p.icmpError, p.losesFIN, p.tcp, p.icmpType, p.icmpCode = false, false, segment{}, 0, 0
}

// length returns the bytes of the whole IP packet.
func (p *packet) length() int { return p.end - p.l3 }

// isICMP reports whether the packet is ICMP of its own family.
func (p *packet) isICMP() bool { return isICMP(p.family, p.tuple.Proto) }

func isICMP(family int, proto uint8) bool {
	return family == 4 && proto == protoICMP || family == 6 && proto == protoICMPv6
}

// egress reports whether the packet is seen where it leaves the box.
func (p *packet) egress() bool { return p.hook == TCXEgress }
