package resolve

import (
	"fmt"

	"weir/pf/ast"
	"weir/pf/diag"
	"weir/pf/token"
)

// maxText limits labels and tags: RULE_LABEL_SIZE and PF_TAG_NAME_SIZE of 64 without the
// NUL.
const maxText = 63

// checkOnce checks what does not depend on the elements of the rule's lists.
func (r *resolver) checkOnce(in *ast.Rule) {
	if in.Anchor != nil {
		r.checkAnchor(in)
		return
	}
	if in.Action != ast.Pass {
		if in.AllowOpts.IsValid() {
			r.faults.Errorf(in.AllowOpts, "allow-opts is allowed only in pass rules")
		}
		if in.State != nil && in.State.Keep {
			r.faults.Errorf(in.State.Span, "only pass rules keep state")
		}
	}
	if in.Flags != nil && in.Flags.Set&^in.Flags.Mask != 0 {
		r.faults.Errorf(in.Flags.Span, "never true: it requires flags that the mask leaves out")
	}
	if in.Dummynet != nil {
		r.aboutQueues(in.Dummynet.Span, map[bool]string{false: "dnpipe", true: "dnqueue"}[in.Dummynet.Queue])
	}
	r.checkTranslations(in)
	r.checkRoute(in)
	r.textsGiven(in)
}

// textsGiven checks that no tag is empty.
func (r *resolver) textsGiven(in *ast.Rule) {
	if in.Tag != nil && in.Tag.Text == "" {
		r.faults.Errorf(in.Tag.Span, "the tag is empty")
	}
	if in.Tagged != nil && in.Tagged.Name.Text == "" {
		r.faults.Errorf(in.Tagged.Span, "the tag is empty")
	}
}

// consistent checks the conditions of a combination against its protocol and address
// family.
func (r *resolver) consistent(out *ast.Rule) bool {
	var proto ast.Proto
	if len(out.Protos) > 0 {
		proto = out.Protos[0]
	}
	before := r.faults.Errors()
	if !hasPorts(proto.Number) {
		for _, ports := range [][]ast.Port{out.From.Ports, out.To.Ports} {
			if len(ports) > 0 {
				r.conflict(ports[0].Span, "ports need proto tcp or udp", proto.Span)
			}
		}
	}
	if proto.Number == protoICMP && out.Family == ast.Inet6 {
		r.wrongICMP(out, proto, "proto icmp is only for inet; for inet6 use icmp6", "inet proto icmp")
	}
	if proto.Number == protoICMP6 && out.Family == ast.Inet {
		r.wrongICMP(out, proto, "proto icmp6 is only for inet6; for inet use icmp", "inet6 proto icmp6")
	}
	r.ownersConsistent(out, proto)
	r.icmpConsistent(out, proto)
	r.returnConsistent(out, proto)
	r.filterConsistent(out)
	return r.faults.Errors() == before
}

// wrongICMP reports an ICMP of the other family. If the rule does not name the family, an address does: mostly
// one of an interface, and those of both families are meant to fit.
func (r *resolver) wrongICMP(out *ast.Rule, proto ast.Proto, message, instead string) {
	with := out.FamilySpan
	for _, hosts := range [][]ast.Host{out.From.Hosts, out.To.Hosts} {
		if !with.IsValid() && len(hosts) > 0 && familyOf(&hosts[0]) == out.Family {
			with = hosts[0].Span
			message += fmt.Sprintf(". An address here is of %s: %q leaves such addresses out", out.Family, instead)
		}
	}
	r.conflict(proto.Span, message, with)
}

// ownersConsistent warns of conditions on users and groups that packets without ports meet.
// OpenBSD refuses them. FreeBSD takes them, and such packets belong to nobody.
func (r *resolver) ownersConsistent(out *ast.Rule, proto ast.Proto) {
	if proto.Number == protoTCP || proto.Number == protoUDP {
		return
	}
	const onlyPorts = " is of tcp and udp alone: all other packets belong to unknown"
	if len(out.User) > 0 {
		r.faults.Warnf(out.User[0].Span, "user"+onlyPorts)
	}
	if len(out.Group) > 0 {
		r.faults.Warnf(out.Group[0].Span, "group"+onlyPorts)
	}
}

func (r *resolver) icmpConsistent(out *ast.Rule, proto ast.Proto) {
	if len(out.ICMP) == 0 {
		return
	}
	t := out.ICMP[0]
	keyword, name, number := "icmp-type", "icmp", uint8(protoICMP)
	if t.Family == ast.Inet6 {
		keyword, name, number = "icmp6-type", "icmp6", protoICMP6
	}
	switch {
	case proto.Number != number:
		r.conflict(t.Span, keyword+" needs proto "+name, proto.Span)
	case out.Family == ast.AnyFamily:
		r.faults.Errorf(t.Span, "%s needs %s", keyword, t.Family)
	}
}

// conflict reports an error with the place of the conflicting part.
func (r *resolver) conflict(at token.Span, message string, with token.Span) {
	d := diag.Diagnostic{Span: at, Message: message}
	if with.IsValid() {
		d.Related = []diag.Related{{Span: with}}
	}
	r.faults.Add(d)
}
