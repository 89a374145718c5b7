package resolve

import "weir/pf/ast"

// NamePorts replaces ports of expanded rules by their names, if they have any: weir check
// -P.
func NamePorts(file *ast.File, host *Host) {
	if host == nil {
		host = &Host{}
	}
	n := &portNamer{names: newDatabase(host), known: make(map[service]string)}
	n.statements(file.Stmts)
}

// portNamer names ports. known holds those already named.
type portNamer struct {
	names database
	known map[service]string
}

func (n *portNamer) statements(stmts []ast.Stmt) {
	for _, s := range stmts {
		switch s := s.(type) {
		case *ast.Rule:
			n.rule(s)
		case *ast.Translation:
			n.rule(&s.Rule)
		}
	}
}

func (n *portNamer) rule(r *ast.Rule) {
	udp := len(r.Protos) > 0 && r.Protos[0].Number == protoUDP
	r.From.Ports = n.ports(r.From.Ports, udp)
	r.To.Ports = n.ports(r.To.Ports, udp)
	if r.Anchor != nil {
		n.statements(r.Anchor.Body)
	}
}

// ports returns ports by name. It copies the list, because rules of other protocols share
// it.
func (n *portNamer) ports(list []ast.Port, udp bool) []ast.Port {
	if len(list) == 0 {
		return list
	}
	named := make([]ast.Port, len(list))
	for i, p := range list {
		p.Low.Text, p.High.Text = n.text(p.Low, udp), n.text(p.High, udp)
		named[i] = p
	}
	return named
}

func (n *portNamer) text(number ast.Number, udp bool) string {
	if number.Text == "" { // no such operand
		return ""
	}
	key := service{port: number.Value}
	if udp {
		key.protocol = "udp"
	}
	text, known := n.known[key]
	if !known {
		text = n.names.portText(number.Value, udp)
		n.known[key] = text
	}
	return text
}
