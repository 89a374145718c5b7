package lint

import (
	"fmt"

	"weir/pf/ast"
	"weir/pf/diag"
	"weir/pf/token"
)

// tunnels warns about tunnels and peers that no packet can use.
func tunnels(stmts []ast.Stmt, list *diag.List) {
	say := func(at token.Span, format string, args ...any) {
		warn(list, "", diag.Diagnostic{Span: at, Message: fmt.Sprintf(format, args...)})
	}
	peers := map[string]int{}
	for _, s := range stmts {
		if t, ok := s.(*ast.IKEv2); ok && t.Networks == nil && t.To == nil && !t.NoRoute {
			say(t.Span, "%s has no networks: no route leads into it", t.Name.Text)
		}
		p, ok := s.(*ast.Peer)
		if !ok {
			continue
		}
		peers[p.On.Text]++
		switch {
		case len(p.Allowed) == 0:
			say(p.Span, "peer %s has no allowed networks: no packet goes to it, and all of its packets are dropped", p.Name.Text)
		case len(p.Ways) == 0 && p.Keepalive != nil:
			say(p.Span, "peer %s has no endpoint, so keepalives begin only when it has come by itself", p.Name.Text)
		}
	}
	for _, s := range stmts {
		if w, ok := s.(*ast.WireGuard); ok && peers[w.Name.Text] == 0 {
			say(w.Span, "%s has no peer: define one with peer NAME on %s", w.Name.Text, w.Name.Text)
		}
	}
}
