package resolve

import (
	"weir/pf/ast"
	"weir/pf/diag"
)

// ether resolves the names in a rule for frames, and in the rules of such an anchor.
// Lists are expanded later, as the printed configuration keeps them.
func (r *resolver) ether(in *ast.Ether) *ast.Ether {
	r.textsGiven(&in.Rule)
	out := *in
	for _, i := range in.On {
		w := ast.Word{Span: i.Span, Text: i.Name}
		r.known(w)
		if !i.Not {
			r.hasFrames(w)
		}
	}
	if in.BridgeTo != nil {
		r.known(*in.BridgeTo)
		r.hasFrames(*in.BridgeTo)
	}
	out.From.Hosts, out.To.Hosts = r.frameHosts(in.From.Hosts), r.frameHosts(in.To.Hosts)
	r.texts(&out.Rule)
	if in.Anchor != nil {
		out.Anchor = r.etherBody(in.Anchor)
	}
	return &out
}

// hasFrames refuses a PPPoE interface: no frame of its own reaches the line, and ether rules of the interface below
// do not see its packets.
func (r *resolver) hasFrames(w ast.Word) {
	if at, ok := r.dialled[w.Text]; ok {
		r.faults.Add(diag.Diagnostic{
			Span: w.Span, Message: "the packets of a PPPoE interface have no Ethernet header that ether rules could match",
			Related: []diag.Related{{Span: at, Note: "it is one"}},
		})
	}
}

// frameHosts resolves the hosts after l3. As in FreeBSD, they are addresses and tables
// named by the rule itself.
func (r *resolver) frameHosts(in []ast.Host) []ast.Host {
	hosts := r.hosts(in, ruleHost)
	for i := range hosts {
		switch h := &hosts[i]; h.Kind {
		case ast.HostAny, ast.HostPrefix, ast.HostTable:
		default:
			r.faults.Errorf(h.Span, "ether rules match only addresses, networks and tables")
		}
	}
	return hosts
}
