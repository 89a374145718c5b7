package resolve

import "weir/pf/ast"

const protoSCTP = 132

// hasPorts reports whether rules may have conditions on the ports of a protocol.
func hasPorts(proto uint8) bool {
	return proto == protoTCP || proto == protoUDP || proto == protoSCTP
}

// sctpPorts checks what a rule does to the ports of SCTP. Its checksum covers the whole
// packet (RFC 9260, 6.8), so translations do not change them.
func (r *resolver) sctpPorts(out *ast.Rule, rdr *ast.Pool) {
	if len(out.Protos) == 0 || out.Protos[0].Number != protoSCTP || rdr == nil || rdr.Port == nil || isPort(rdr.Port, out.To.Ports) {
		return
	}
	r.faults.UnenforcedBut(rdr.Port.Span, "another port for SCTP", "let the server listen at the port that the rule asks for")
}

// isPort reports whether the port of a pool is the one that a rule asks for.
func isPort(p *ast.PoolPort, asked []ast.Port) bool {
	return len(asked) == 1 && asked[0].Op == ast.PortEqual && !p.Range && !p.Star && p.Low.Value == asked[0].Low.Value
}
