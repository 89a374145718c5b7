package resolve

import (
	"strings"

	"weir/pf/ast"
	"weir/pf/printer"
)

// texts replaces the macros in the labels and tags of a combination and checks their
// lengths. It leaves the rule's number to complete.
func (r *resolver) texts(out *ast.Rule) bool {
	values := &ruleTexts{rule: out}
	ok := true
	replace := func(w *ast.Word, what string) *ast.Word {
		if w == nil {
			return nil
		}
		replaced := ast.Word{Span: w.Span, Text: values.replace(w.Text)}
		if values.replace(replaced.Text) != replaced.Text {
			r.faults.Errorf(w.Span, "%s expands to %q, which contains another macro", what, replaced.Text)
			ok = false
		}
		ok = r.checkText(&replaced, what) && ok
		return &replaced
	}
	out.Label = replace(out.Label, "the label")
	if out.Label != nil && out.Label.Text == "" {
		out.Label = nil // as in pf
	}
	more := make([]ast.Word, 0, len(out.MoreLabels))
	for i := range out.MoreLabels {
		if l := replace(&out.MoreLabels[i], "the label"); l.Text != "" {
			more = append(more, *l)
		}
	}
	if out.MoreLabels = more; out.Label == nil && len(more) > 0 {
		out.Label, out.MoreLabels = &more[0], more[1:]
	}
	out.Tag = replace(out.Tag, "the tag")
	if out.Tagged != nil {
		tagged := *out.Tagged
		tagged.Name = *replace(&tagged.Name, "the tag")
		out.Tagged = &tagged
	}
	return ok
}

// checkText checks the length of a label or tag once its number is in it.
func (r *resolver) checkText(w *ast.Word, what string) bool {
	if len(w.Text) <= maxText || strings.Contains(w.Text, numberMacro) {
		return true
	}
	r.faults.Errorf(w.Span, "%s is too long: %d characters, at most %d", what, len(w.Text), maxText)
	return false
}

// ruleTexts returns the values of label macros for a rule.
type ruleTexts struct {
	rule *ast.Rule
}

func (t *ruleTexts) replace(s string) string {
	if !strings.Contains(s, "$") {
		return s
	}
	return strings.NewReplacer(
		"$if", t.interfaceName(),
		"$srcaddr", address(t.rule.From.Hosts), "$dstaddr", address(t.rule.To.Hosts),
		"$srcport", port(t.rule.From.Ports), "$dstport", port(t.rule.To.Ports),
		"$proto", t.proto(),
	).Replace(s)
}

// settleTexts replaces the macros that the combination alone decides, before more rules
// are made from it: all but the number.
func settleTexts(out *ast.Rule) {
	values := &ruleTexts{rule: out}
	replace := func(w *ast.Word) *ast.Word {
		if w == nil {
			return nil
		}
		return &ast.Word{Span: w.Span, Text: values.replace(w.Text)}
	}
	out.Label, out.Tag = replace(out.Label), replace(out.Tag)
	if out.Tagged != nil {
		tagged := *out.Tagged
		tagged.Name = *replace(&tagged.Name)
		out.Tagged = &tagged
	}
}

func (t *ruleTexts) interfaceName() string {
	if len(t.rule.On) == 0 || t.rule.On[0].RDomain != nil {
		return "any"
	}
	return t.rule.On[0].Name
}

func (t *ruleTexts) proto() string {
	if len(t.rule.Protos) == 0 {
		return "ip"
	}
	return t.rule.Protos[0].Text
}

func address(hosts []ast.Host) string {
	if len(hosts) == 0 {
		return "any"
	}
	h := hosts[0]
	h.Network, h.Broadcast, h.Peer, h.NoAlias, h.Bits = false, false, false, false, -1 // as in pf
	switch {
	case h.Kind != ast.HostRange && h.Kind != ast.HostRouteLabel:
		return printer.Host(&h)
	case h.Not:
		return "! ?"
	}
	return "?" // as in pf
}

// port prints a condition on a port without blanks and without the sign for equality. As
// in pf, it prints nothing for a range a:b.
func port(ports []ast.Port) string {
	if len(ports) == 0 || ports[0].Op == ast.PortRange {
		return ""
	}
	s := strings.ReplaceAll(printer.Port(&ports[0]), " ", "")
	return strings.TrimPrefix(s, "=")
}
