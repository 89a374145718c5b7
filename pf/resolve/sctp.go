package resolve

import "weir/pf/ast"

const protoSCTP = 132

// hasPorts reports whether rules may have conditions on the ports of a protocol.
func hasPorts(proto uint8) bool {
	return proto == protoTCP || proto == protoUDP || proto == protoSCTP
}

// sctpPorts notes a rule with SCTP ports, which FreeBSD allows.
func (r *resolver) sctpPorts(out *ast.Rule) {
	if len(out.Protos) == 0 || out.Protos[0].Number != protoSCTP {
		return
	}
	for _, ports := range [][]ast.Port{out.From.Ports, out.To.Ports} {
		if len(ports) > 0 {
			r.faults.Unenforced(ports[0].Span, "port of SCTP")
		}
	}
}
