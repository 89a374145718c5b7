package resolve

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"weir/pf/ast"
)

// protos looks up the protocols of a rule.
func (r *resolver) protos(list []ast.Proto) []ast.Proto {
	resolved := make([]ast.Proto, 0, len(list))
	for _, p := range list {
		n, isNumber := number(p.Text)
		if !isNumber {
			number, ok := r.names.protocol(p.Text)
			if !ok {
				r.suggest(p.Word, fmt.Sprintf("there is no protocol %q", p.Text), protocolNames)
				continue
			}
			n = uint64(number)
		}
		switch {
		case n > 255:
			r.faults.Errorf(p.Span, "protocols have numbers up to 255")
			continue
		case n == 0:
			r.faults.Errorf(p.Span, "protocol 0 cannot be matched; leave out proto to match any protocol")
			continue
		}
		p.Number = uint8(n)
		p.Text = r.names.protocolText(p.Number)
		resolved = append(resolved, p)
	}
	return resolved
}

// ports looks up the ports of a rule.
func (r *resolver) ports(list []ast.Port) []ast.Port {
	resolved := make([]ast.Port, 0, len(list))
	for _, p := range list {
		ok := r.port(&p.Low)
		switch p.Op {
		case ast.PortRange, ast.PortInside, ast.PortOutside:
			ok = r.port(&p.High) && ok
		}
		if ok && r.inOrder(&p) {
			if p.Op == ast.PortRange && p.Low.Value == p.High.Value {
				p.Op = ast.PortEqual // as pfctl prints it
			}
			resolved = append(resolved, p)
		}
	}
	return resolved
}

// inOrder checks that neither a range of ports nor the outside of one is empty.
func (r *resolver) inOrder(p *ast.Port) bool {
	low, high := p.Low.Value, p.High.Value
	switch {
	case p.Op == ast.PortRange && low > high, p.Op == ast.PortOutside && low > high:
		r.faults.Errorf(p.Span, "the range ends before it begins")
		return false
	case p.Op == ast.PortInside && low >= high:
		r.faults.Errorf(p.Span, "there is no port between %d and %d", low, high)
		return false
	}
	return true
}

// port looks up a port and replaces its text by a number. As in pf, numbers may be
// hexadecimal.
func (r *resolver) port(n *ast.Number) bool {
	value, isNumber := number(n.Text)
	if hex, err := strconv.ParseUint(n.Text, 0, 64); err == nil && strings.HasPrefix(n.Text, "0x") {
		value, isNumber = hex, true
	}
	if !isNumber {
		port, known := r.names.port(n.Text)
		if !known {
			r.suggest(n.Word, fmt.Sprintf("there is no port %q", n.Text), keysOf(services))
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

// icmp looks up the types and codes of a rule and sets their printed names.
func (r *resolver) icmp(list []ast.ICMP) []ast.ICMP {
	resolved := make([]ast.ICMP, 0, len(list))
	for _, t := range list {
		if r.icmpType(&t) && (t.Code == nil || r.icmpCode(&t)) {
			resolved = append(resolved, t)
		}
	}
	return resolved
}

func (r *resolver) icmpType(t *ast.ICMP) bool {
	names := icmpNames(icmpTypes(t.Family), -1)
	byName := func(name string) (uint8, bool) { return icmpTypeByName(t.Family, name) }
	if !r.icmpNumber(&t.Type, "there is no ICMP type", names, byName) {
		return false
	}
	if name := icmpTypeName(t.Family, uint8(t.Type.Value)); name != "" {
		t.Type.Text = name
	}
	return true
}

func (r *resolver) icmpCode(t *ast.ICMP) bool {
	kind := uint8(t.Type.Value)
	names := icmpNames(icmpCodes(t.Family), int(kind))
	byName := func(name string) (uint8, bool) { return icmpCodeByName(t.Family, kind, name) }
	code := *t.Code
	if !r.icmpNumber(&code, "ICMP type "+t.Type.Text+" has no code", names, byName) {
		return false
	}
	if name := icmpCodeName(t.Family, kind, uint8(code.Value)); name != "" {
		code.Text = name
	}
	t.Code = &code
	return true
}

// icmpNumber reads a number up to 255 or looks up a name. none is the error for an
// unknown name.
func (r *resolver) icmpNumber(n *ast.Number, none string, names []string, byName func(string) (uint8, bool)) bool {
	value, isNumber := number(n.Text)
	if !isNumber {
		named, ok := byName(n.Text)
		if !ok {
			r.suggest(n.Word, fmt.Sprintf("%s %q", none, n.Text), func() []string { return names })
			return false
		}
		value = uint64(named)
	}
	if value > 255 {
		r.faults.Errorf(n.Span, "types and codes of ICMP have numbers up to 255")
		return false
	}
	n.Value, n.Text = uint16(value), strconv.FormatUint(value, 10)
	return true
}

// number reads a decimal number. One that is too large becomes the largest possible.
func number(s string) (n uint64, ok bool) {
	n, err := strconv.ParseUint(s, 10, 64)
	return n, err == nil || errors.Is(err, strconv.ErrRange)
}
