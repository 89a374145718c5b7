package resolve

import (
	"fmt"
	"strconv"

	"weir/pf/ast"
)

// protos looks the protocols of a rule up.
func (r *resolver) protos(list []ast.Proto) []ast.Proto {
	resolved := make([]ast.Proto, 0, len(list))
	for _, p := range list {
		n, err := strconv.ParseUint(p.Text, 10, 64)
		if err != nil {
			number, ok := protocolByName(p.Text)
			if !ok {
				r.suggest(p.Word, fmt.Sprintf("there is no protocol %q", p.Text), protocolNames())
				continue
			}
			n = uint64(number)
		}
		switch {
		case n > 255:
			r.faults.Errorf(p.Span, "protocols have numbers up to 255")
			continue
		case n == 0:
			r.faults.Errorf(p.Span, "protocol 0 cannot be asked for; leave proto out for any protocol")
			continue
		}
		p.Number = uint8(n)
		if p.Text = protocolName(p.Number); p.Text == "" {
			p.Text = strconv.Itoa(int(n))
		}
		resolved = append(resolved, p)
	}
	return resolved
}

// ports looks the ports of a rule up.
func (r *resolver) ports(list []ast.Port) []ast.Port {
	resolved := make([]ast.Port, 0, len(list))
	for _, p := range list {
		ok := r.port(&p.Low)
		switch p.Op {
		case ast.PortRange, ast.PortInside, ast.PortOutside:
			ok = r.port(&p.High) && ok
		}
		if ok {
			resolved = append(resolved, p)
		}
	}
	return resolved
}

// port looks a port up and makes its text a number.
func (r *resolver) port(n *ast.Number) bool {
	value, err := strconv.ParseUint(n.Text, 10, 64)
	if err != nil {
		port, known := services[n.Text]
		if !known {
			r.suggest(n.Word, fmt.Sprintf("there is no port %q", n.Text), sortedKeys(services))
			return false
		}
		value = uint64(port)
	}
	if value > 65535 {
		r.faults.Errorf(n.Span, "ports have numbers up to 65535")
		return false
	}
	n.Value, n.Text = uint16(value), strconv.FormatUint(value, 10)
	return true
}

// icmp looks the types and codes of a rule up and gives them the names that
// are printed.
func (r *resolver) icmp(list []ast.ICMP) []ast.ICMP {
	resolved := make([]ast.ICMP, 0, len(list))
	for _, t := range list {
		kind, ok := r.icmpNumber(&t.Type, "type", icmpNames(icmpTypes(t.Family), -1), func(name string) (uint8, bool) {
			return icmpTypeByName(t.Family, name)
		})
		if !ok {
			continue
		}
		if name := icmpTypeName(t.Family, kind); name != "" {
			t.Type.Text = name
		}
		if t.Code != nil {
			code := *t.Code
			n, ok := r.icmpNumber(&code, "code", icmpNames(icmpCodes(t.Family), int(kind)), func(name string) (uint8, bool) {
				return icmpCodeByName(t.Family, kind, name)
			})
			if !ok {
				continue
			}
			if name := icmpCodeName(t.Family, kind, n); name != "" {
				code.Text = name
			}
			t.Code = &code
		}
		resolved = append(resolved, t)
	}
	return resolved
}

// icmpNumber reads a number up to 255 or looks a name up; what is type or code.
func (r *resolver) icmpNumber(n *ast.Number, what string, names []string, byName func(string) (uint8, bool)) (uint8, bool) {
	value, err := strconv.ParseUint(n.Text, 10, 64)
	if err != nil {
		named, ok := byName(n.Text)
		if !ok {
			r.suggest(n.Word, fmt.Sprintf("there is no ICMP %s %q here", what, n.Text), names)
			return 0, false
		}
		value = uint64(named)
	}
	if value > 255 {
		r.faults.Errorf(n.Span, "ICMP %ss have numbers up to 255", what)
		return 0, false
	}
	n.Value, n.Text = uint16(value), strconv.FormatUint(value, 10)
	return uint8(value), true
}
