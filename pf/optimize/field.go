package optimize

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"sync"

	"weir/pf/ast"
	"weir/pf/field"
	"weir/pf/token"
)

// classes returns the class of each field of ast.Rule. A field of a clause with another
// class than its clause is listed as clause.field.
func classes() map[string]field.Class {
	classes := make(map[string]field.Class)
	for i := range field.All() {
		if f := &field.All()[i]; f.Optimize != field.AsClause {
			classes[f.Path] = f.Optimize
		}
	}
	return classes
}

// stateClass returns the class of a state option.
func stateClass(o *ast.StateOption) field.Class {
	switch o.Kind {
	case ast.StateMax, ast.StateMaxSrcStates, ast.StateMaxSrcConn, ast.StateMaxSrcConnRate, ast.StateMaxSrcNodes:
		return field.Barrier
	case ast.StateSourceTrack:
		if o.Track == ast.TrackRule {
			return field.Barrier
		}
	case ast.StateTimeout:
		return field.NoMerge
	}
	return field.Breaks
}

// states returns the encoder of those parts of a State that belong to a class.
func states(want field.Class) encoder {
	return func(b []byte, v reflect.Value) []byte {
		s := v.Interface().(*ast.State)
		if s == nil {
			return b
		}
		if want == field.Breaks {
			b = append(b, 1)
			b = value(b, reflect.ValueOf(s.Keep))
			b = value(b, reflect.ValueOf(s.Kind))
		}
		for i := range s.Options {
			if o := &s.Options[i]; stateClass(o) == want {
				b = value(append(b, 2), reflect.ValueOf(*o))
			}
		}
		return b
	}
}

// reader reads rules and numbers what has to be the same.
type reader struct {
	barriers []encoder
	breaks   []encoder
	nomerge  []encoder
	numbers  map[string]int32
	buf      []byte
	room     []rule // room for the rules to come
}

// encoder appends a field of a rule. Equal fields give equal bytes.
type encoder func(b []byte, rule reflect.Value) []byte

// encoders belong to a reader that has read nothing. All rulesets share them, because
// finding them takes longer than reading a rule.
var encoders = sync.OnceValue(findEncoders)

// newReader returns a reader for one ruleset.
func newReader() *reader {
	r := encoders()
	r.numbers = make(map[string]int32)
	return &r
}

func findEncoders() reader {
	var r reader
	classes := classes()
	for _, f := range ruleFields(reflect.TypeFor[ast.Rule](), nil) {
		own, ok := classes[f.Name]
		if !ok {
			own = field.Breaks // as in pfctl; a test in package resolve checks that the list is complete
		}
		for _, c := range [...]struct {
			class field.Class
			to    *[]encoder
		}{{field.Barrier, &r.barriers}, {field.Breaks, &r.breaks}, {field.NoMerge, &r.nomerge}} {
			if e := encoderOf(f, own, c.class, classes); e != nil {
				*c.to = append(*c.to, func(b []byte, rule reflect.Value) []byte { return e(b, rule.FieldByIndex(f.Index)) })
			}
		}
	}
	return r
}

// ruleFields returns the fields of a type at this index of ast.Rule, including those of
// embedded types.
func ruleFields(t reflect.Type, at []int) []reflect.StructField {
	var all []reflect.StructField
	for i := range t.NumField() {
		f := t.Field(i)
		f.Index = append(slices.Clone(at), i)
		if f.Anonymous && f.Type != reflect.TypeFor[token.Span]() {
			all = append(all, ruleFields(f.Type, f.Index)...)
		} else {
			all = append(all, f)
		}
	}
	return all
}

// encoderOf returns the encoder of what belongs to class want in a field of class own, or
// nil.
func encoderOf(f reflect.StructField, own, want field.Class, classes map[string]field.Class) encoder {
	if f.Name == "State" {
		return states(want)
	}
	t := f.Type
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == reflect.TypeFor[token.Span]() {
		if own != want {
			return nil
		}
		return present
	}
	if t.Kind() != reflect.Struct {
		if own != want {
			return nil
		}
		return value
	}
	parts, whole := partsOf(f.Name, t, own, want, classes)
	switch {
	case len(parts) == 0:
		return nil
	case whole:
		return value
	}
	return func(b []byte, v reflect.Value) []byte {
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				v = reflect.New(t) // a clause that counts only in part may be there without that part
			}
			v = v.Elem()
		}
		for _, p := range parts {
			b = p(b, v)
		}
		return b
	}
}

// partsOf returns the encoders of a clause's fields that belong to a class, and whether
// everything in it does.
func partsOf(clause string, t reflect.Type, own, want field.Class, classes map[string]field.Class) (parts []encoder, whole bool) {
	whole = true
	for i := range t.NumField() {
		c, ok := classes[clause+"."+t.Field(i).Name]
		if !ok {
			c = own
		}
		whole = whole && c == want
		switch {
		case c == want:
			parts = append(parts, func(b []byte, v reflect.Value) []byte { return value(b, v.Field(i)) })
		case c == field.Marks && want == field.Breaks:
			parts = append(parts, func(b []byte, v reflect.Value) []byte {
				return value(b, reflect.ValueOf(!v.Field(i).IsZero()))
			})
		}
	}
	return parts, whole
}

// present appends whether a one-word clause is there.
func present(b []byte, v reflect.Value) []byte {
	if v.Addr().Interface().(*token.Span).IsValid() { // a pointer avoids a copy
		return append(b, 1)
	}
	return append(b, 0)
}

// value appends any value of the syntax tree, without its place in the file.
func value(b []byte, v reflect.Value) []byte {
	switch v.Kind() {
	case reflect.Bool:
		if v.Bool() {
			return append(b, 1)
		}
		return append(b, 0)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return binary.AppendVarint(b, v.Int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return binary.AppendUvarint(b, v.Uint())
	case reflect.String:
		return append(binary.AppendUvarint(b, uint64(v.Len())), v.String()...)
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return append(b, 0)
		}
		return value(append(b, 1), v.Elem())
	case reflect.Slice, reflect.Array:
		b = binary.AppendUvarint(b, uint64(v.Len()))
		for i := range v.Len() {
			b = value(b, v.Index(i))
		}
		return b
	case reflect.Struct:
		return structure(b, v)
	}
	panic(fmt.Sprintf("optimize: a rule holds a %s", v.Type()))
}

func structure(b []byte, v reflect.Value) []byte {
	switch v.Type() {
	case reflect.TypeFor[token.Span]():
		return b
	case reflect.TypeFor[netip.Prefix](), reflect.TypeFor[netip.Addr]():
		return value(b, reflect.ValueOf(v.Interface().(fmt.Stringer).String()))
	}
	for i := range v.NumField() {
		b = value(b, v.Field(i))
	}
	return b
}

// barrier reports whether a field forces a rule to stand alone.
func (r *reader) barrier(rule *ast.Rule) bool {
	v := reflect.ValueOf(rule).Elem()
	r.buf = r.buf[:0]
	for _, e := range r.barriers {
		r.buf = e(r.buf, v)
	}
	for _, c := range r.buf {
		if c != 0 {
			return true
		}
	}
	return false
}

// mostRoom is the number of rules allocated at once. One object for neighbours saves much
// garbage collection.
const mostRoom = 256

// read reads a rule. About left more will follow.
func (r *reader) read(in *ast.Rule, left int) *rule {
	if len(r.room) == 0 {
		r.room = make([]rule, min(left, mostRoom))
	}
	out := &r.room[0]
	r.room = r.room[1:]
	v := reflect.ValueOf(in).Elem()
	*out = rule{
		ast:        in,
		like:       r.number(v, r.breaks, 'b'),
		conditions: conditionsOf(in, r.number(v, r.nomerge, 'n')),
		from:       addressOf(&in.From),
		to:         addressOf(&in.To),
	}
	return out
}

// number gives equal fields the same number. kind separates lists of encoders.
func (r *reader) number(v reflect.Value, of []encoder, kind byte) int32 {
	r.buf = append(r.buf[:0], kind)
	for _, e := range of {
		r.buf = e(r.buf, v)
	}
	n, ok := r.numbers[string(r.buf)]
	if !ok {
		n = int32(len(r.numbers))
		r.numbers[string(r.buf)] = n
	}
	return n
}
