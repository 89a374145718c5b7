package resolve

import "weir/pf/ast"

// Default codes of the ICMP errors "unreachable" with which block rules answer: the port
// is unreachable (RFC 792, RFC 4443, 3.1).
const (
	portUnreachable4 = 3
	portUnreachable6 = 4
)

// The types of these errors.
const (
	unreachable4 = 3
	unreachable6 = 1
)

// blockReturn decides how a block rule answers: as the rule says, or by the policy that
// the file has set before it. Its codes get the names that are printed.
func (r *resolver) blockReturn(in *ast.Rule) *ast.Return {
	switch {
	case in.Action == ast.Pass && r.failReturn: // the sender of what the rule would pass and cannot
		return &ast.Return{Span: in.Span, Kind: ast.ReturnAll}
	case in.Action != ast.Block:
		return nil
	case in.Return == nil && r.policy != nil && r.policy.Policy.Text == "return":
		return &ast.Return{Span: in.Span, Kind: ast.ReturnAll}
	case in.Return == nil:
		return &ast.Return{Span: in.Span, Kind: ast.Drop}
	}
	out := *in.Return
	out.Code = r.returnCode(out.Code, ast.Inet, unreachable4)
	out.Code6 = r.returnCode(out.Code6, ast.Inet6, unreachable6)
	if out.Kind == ast.ReturnICMP {
		out.Code = orPort(out.Code, portUnreachable4)
		out.Code6 = orPort(out.Code6, portUnreachable6)
	}
	return &out
}

// orPort returns the code, or "port unreachable" if there is none.
func orPort(code *ast.Number, port uint16) *ast.Number {
	if code != nil {
		return code
	}
	return &ast.Number{Word: ast.Word{Text: "port-unr"}, Value: port}
}

// returnCode looks up a code of "unreachable". nil stays nil.
func (r *resolver) returnCode(code *ast.Number, family ast.Family, unreachable uint8) *ast.Number {
	if code == nil {
		return nil
	}
	t := ast.ICMP{
		Family: family, Code: code,
		Type: ast.Number{Word: ast.Word{Text: "unreach"}, Value: uint16(unreachable)},
	}
	if !r.icmpCode(&t) {
		return nil
	}
	return t.Code
}

// returnConsistent checks a block rule's answer against its protocol.
func (r *resolver) returnConsistent(out *ast.Rule, proto ast.Proto) {
	if out.Return != nil && out.Return.Kind == ast.ReturnRST && proto.Number != protoTCP {
		r.conflict(out.Return.Span, "return-rst needs proto tcp", proto.Span)
	}
}

// An Answer is what the sender of a packet gets that a block rule blocks, or that a pass rule
// passes but that cannot be passed (set fail-policy return).
type Answer struct {
	RST         bool  // TCP segments: a reset
	TTL         uint8 // TTL of the reset; 0: the usual one
	ICMP        bool  // other packets: an ICMP error "unreachable"
	Code, Code6 uint8 // codes of that error
}

func lowerReturn(in *ast.Return) Answer {
	if in == nil || in.Kind == ast.Drop {
		return Answer{}
	}
	if in.Kind == ast.ReturnRST {
		return Answer{RST: true, TTL: in.TTL}
	}
	out := Answer{RST: in.Kind == ast.ReturnAll, ICMP: true, Code: portUnreachable4, Code6: portUnreachable6}
	if in.Code != nil {
		out.Code = uint8(in.Code.Value)
	}
	if in.Code6 != nil {
		out.Code6 = uint8(in.Code6.Value)
	}
	return out
}
