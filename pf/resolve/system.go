package resolve

import (
	"fmt"
	"slices"

	"weir/pf/ast"
	"weir/pf/diag"
	"weir/pf/fingerprint"
	"weir/pf/token"
)

// anySystem is the operating system that matches all.
const anySystem = "any"

// readFingerprints reads the fingerprints of operating systems.
func (r *resolver) readFingerprints(file *token.File) {
	if file == nil {
		return
	}
	list, faults := fingerprint.Read(file.Src)
	for _, f := range faults {
		r.faults.Add(diag.Diagnostic{Span: token.Span{Pos: file.Pos(f.First), End: file.Pos(f.End)}, Message: f.Message})
	}
	r.systems = list
}

// systemsOf checks the operating systems of a rule.
func (r *resolver) systemsOf(in *ast.Rule) []ast.Word {
	if len(in.From.OS) == 0 {
		return nil
	}
	at := in.From.OS[0].Span.To(in.From.OS[len(in.From.OS)-1].Span)
	if len(in.Protos) > 0 && !slices.ContainsFunc(r.protos(in.Protos), isTCP) {
		r.conflict(at, "os needs proto tcp", in.Protos[0].Span)
	}
	if slices.ContainsFunc(in.From.OS, func(w ast.Word) bool { return w.Text == anySystem }) && len(in.From.OS) == 1 {
		return nil
	}
	if r.systems == nil {
		r.faults.UnenforcedBut(at, "os without a file of fingerprints ("+fingerprint.File+", or set fingerprints)", "OpenBSD's pf.os may be copied")
		return in.From.OS
	}
	for _, w := range in.From.OS {
		if w.Text != anySystem && w.Text != fingerprint.Unknown && len(r.systems.Of(w.Text)) == 0 {
			r.suggest(w, fmt.Sprintf("no fingerprint is of %q", w.Text), r.systems.Names)
		}
	}
	return in.From.OS
}
