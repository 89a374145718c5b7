package resolve

import (
	"fmt"
	"math"
	"strconv"

	"weir/pf/ast"
	"weir/pf/diag"
	"weir/pf/field"
)

// nobody is the owner's name for packets without a socket on this machine, such as
// forwarded ones.
const nobody = "unknown"

// owners looks up the users or groups of a rule, whose field is path. One that this machine
// lacks owns no packet: a rule for it alone is left out, with a warning.
func (r *resolver) owners(list []ast.Owner, path string, names map[string]uint32) []ast.Owner {
	what := field.At(path).Word
	resolved := make([]ast.Owner, 0, len(list))
	for _, o := range list {
		if o.Op == ast.PortEqual && r.lacks(&o.Low, what, names) {
			continue
		}
		r.unenforced(path, o.Span)
		ok := r.owner(&o.Low, what, names)
		binary := o.Op == ast.PortRange || o.Op == ast.PortInside || o.Op == ast.PortOutside
		if binary {
			ok = r.owner(&o.High, what, names) && ok
		}
		if o.Low.Unknown || o.High.Unknown {
			if o.Op != ast.PortEqual && o.Op != ast.PortNotEqual {
				r.faults.Errorf(o.Span, "%s %s takes the operators = and != only", what, nobody)
				continue
			}
		}
		if ok {
			resolved = append(resolved, o)
		}
	}
	return resolved
}

// lacks reports whether the machine lacks a user or group, and warns.
func (r *resolver) lacks(id *ast.ID, what string, names map[string]uint32) bool {
	_, isNumber := number(id.Text)
	_, known := names[id.Text]
	if isNumber || known || id.Text == nobody {
		return false
	}
	r.faults.Add(diag.Diagnostic{
		Severity: diag.Warning, Span: id.Span, Suggest: r.nearest(id.Text, keysOf(names)),
		Message: fmt.Sprintf("there is no %s %q, so no packet is this %s's", what, id.Text, what),
	})
	return true
}

// owner looks up a user or group and replaces its text by a number.
func (r *resolver) owner(id *ast.ID, what string, names map[string]uint32) bool {
	if id.Text == nobody {
		id.Unknown, id.Value = true, math.MaxUint32
		return true
	}
	value, isNumber := number(id.Text)
	if !isNumber {
		known, ok := names[id.Text]
		if !ok {
			r.suggest(id.Word, fmt.Sprintf("there is no %s %q", what, id.Text), keysOf(names))
			return false
		}
		value = uint64(known)
	}
	if value >= math.MaxUint32 {
		r.faults.Errorf(id.Span, "%ss have numbers up to %d", what, math.MaxUint32-1)
		return false
	}
	id.Value, id.Text = uint32(value), strconv.FormatUint(value, 10)
	return true
}
