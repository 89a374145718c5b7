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

// FieldsThat returns the fields of Rule of which is holds. A field that the list of
// package field does not have is asked about as the zero Field: not enforced,
// and understood by nobody.
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

// Given returns the name of the first of the fields that a rule gives, "" if it
// gives none.
func (f Fields) Given(r *Rule) string {
	v := reflect.ValueOf(r).Elem()
	given := func(f ruleField) bool { return !v.FieldByIndex(f.index).IsZero() }
	if i := slices.IndexFunc(f, given); i >= 0 {
		return f[i].name
	}
	return ""
}

// undone are the fields that the dataplane does nothing of.
var undone = sync.OnceValue(func() Fields {
	return FieldsThat(func(f *field.Field) bool { return !f.Enforced })
})

// apart are the fields that an anchor's rules cannot ask for in its stead.
var apart = sync.OnceValue(func() Fields {
	return FieldsThat(func(f *field.Field) bool { return f.Anchor == field.Apart })
})

// Unenforced returns the name of a field that the rule gives and the dataplane
// does nothing of, "" if there is none.
func (r *Rule) Unenforced() string { return undone().Given(r) }

// unenforced says of what a rule gives that the dataplane does not do it, if the
// list of package field says so.
func (r *resolver) unenforced(path string, at token.Span) {
	r.unenforcedAs(path, at, field.At(path).Word)
}

// unenforcedAs is unenforced for what has several words.
func (r *resolver) unenforcedAs(path string, at token.Span, word string) {
	if !field.At(path).Enforced {
		r.faults.Unenforced(at, word)
	}
}
