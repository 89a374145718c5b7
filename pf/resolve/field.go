package resolve

import (
	"reflect"
	"slices"
	"sync"

	"weir/pf/field"
	"weir/pf/token"
)

// Fields are some of the fields of Rule.
type Fields []ruleField

type ruleField struct {
	name  string
	index []int
}

// FieldsThat returns the fields of Rule for which is returns true. A field missing from
// package field's list is passed as the zero Field: not enforced, and understood by
// nothing.
func FieldsThat(is func(*field.Field) bool) Fields {
	listed := make(map[string]*field.Field)
	for i := range field.All() {
		f := &field.All()[i]
		for _, name := range f.Names() {
			listed[name] = f
		}
	}
	var fields Fields
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Rule]()) {
		if f.Anonymous {
			continue
		}
		in := listed[f.Name]
		if in == nil {
			in = &field.Field{}
		}
		if is(in) {
			fields = append(fields, ruleField{f.Name, f.Index})
		}
	}
	return fields
}

// Given returns the name of the first of the fields that a rule sets, or "".
func (f Fields) Given(r *Rule) string {
	v := reflect.ValueOf(r).Elem()
	given := func(f ruleField) bool { return !v.FieldByIndex(f.index).IsZero() }
	if i := slices.IndexFunc(f, given); i >= 0 {
		return f[i].name
	}
	return ""
}

// undone returns the fields that the dataplane ignores.
var undone = sync.OnceValue(func() Fields {
	return FieldsThat(func(f *field.Field) bool { return !f.Enforced })
})

// apart returns the anchor conditions that the anchor's rules cannot take over.
var apart = sync.OnceValue(func() Fields {
	return FieldsThat(func(f *field.Field) bool { return f.Anchor == field.Apart })
})

// Unenforced returns the name of a field that the rule sets and the dataplane ignores, or
// "".
func (r *Rule) Unenforced() string { return undone().Given(r) }

// unenforced warns about a part of a rule if package field's list says that the dataplane
// ignores it.
func (r *resolver) unenforced(path string, at token.Span) {
	r.unenforcedAs(path, at, field.At(path).Word)
}

// unenforcedAs is unenforced for parts with several words.
func (r *resolver) unenforcedAs(path string, at token.Span, word string) {
	if !field.At(path).Enforced {
		r.faults.Unenforced(at, word)
	}
}
