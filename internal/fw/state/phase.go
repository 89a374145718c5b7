package state

import "fmt"

// A Phase is a connection's progress, which determines the timeout. The numbers are those
// of enum phase in bpf/state/state.h, the names those of "set timeout".
type Phase uint8

// Phases.
const (
	TCPFirst Phase = iota
	TCPOpening
	TCPEstablished
	TCPClosing
	TCPFinWait
	TCPClosed
	UDPFirst
	UDPSingle
	UDPMultiple
	ICMPFirst
	ICMPError
	OtherFirst
	OtherSingle
	OtherMultiple
	PhaseCount
)

var phaseNames = [PhaseCount]string{
	"tcp.first", "tcp.opening", "tcp.established", "tcp.closing", "tcp.finwait", "tcp.closed",
	"udp.first", "udp.single", "udp.multiple",
	"icmp.first", "icmp.error",
	"other.first", "other.single", "other.multiple",
}

// String returns the name of the phase's timeout.
func (p Phase) String() string {
	if p >= PhaseCount {
		return fmt.Sprintf("phase-%d", uint8(p))
	}
	return phaseNames[p]
}

// ParsePhase returns the phase of that name.
func ParsePhase(name string) (Phase, error) {
	for p := range PhaseCount {
		if phaseNames[p] == name {
			return p, nil
		}
	}
	return 0, fmt.Errorf("unknown phase %q", name)
}

// A Peer is the progress of one end of a connection. The numbers are those of enum peer
// in bpf/state/state.h.
type Peer uint8

// Peers. UDP and the other protocols use the first three: no traffic, one
// packet, answered.
const (
	PeerClosed Peer = iota
	PeerSynSent
	PeerEstablished
	PeerClosing
	PeerFinWait2
	PeerTimeWait
)

// name returns pfctl's word for the peer of a connection of that protocol.
func (p Peer) name(proto uint8) string {
	names := []string{"NO_TRAFFIC", "SINGLE", "MULTIPLE"}
	switch proto {
	case protoTCP:
		names = []string{"CLOSED", "SYN_SENT", "ESTABLISHED", "CLOSING", "FIN_WAIT_2", "TIME_WAIT"}
	case protoICMP, protoICMPv6:
		return "0" // queries have no levels; pf prints their numbers, which never change
	}
	if int(p) >= len(names) {
		return fmt.Sprint(uint8(p))
	}
	return names[p]
}

// Flags are the bits STATE_* of bpf/state/state.h.
type Flags uint8

// Flags of a state.
const (
	In          Flags = 1 << iota // direction 0 crossed rules "in" and may enter
	Out                           // direction 0 crossed rules "out" and may leave
	NAT                           // the two tuples are not each other's mirror
	EvaluateIn                    // the in crossing keeps no state: rules are evaluated for every packet
	EvaluateOut                   // likewise the out crossing
	Options                       // packets with IP options may pass
	Log                           // rules log all packets (Logs) or count them (max-pkt-rate)
	Marked                        // rules have set bits of the mark: Mark
)

// FlowFlags are the bits FLOW_* of bpf/state/state.h.
type FlowFlags uint8

// Flags of a flow.
const (
	FlowSeen    FlowFlags = 1 << iota // SeqLo and SeqHi are valid
	FlowGranted                       // Grant is valid
	FlowScaled                        // this end offered a window scale
	FlowMapped                        // UDP, of direction 0: its source has one address and port for all destinations
	FlowCopied                        // with Log: copies of what crosses this side are sent
	FlowPooled                        // of direction 0: it counts at addresses of pools with least-states
	FlowProgram                       // with FlowCopied: the packets themselves go to a program
	FlowNormal                        // of direction 0: rules with scrub (reassemble tcp) apply to the connection

	FlowExported = FlowPooled // of direction 1: a rule with pflow has made the state
)
