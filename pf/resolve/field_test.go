package resolve_test

import (
	"reflect"
	"strings"
	"testing"

	"weir/pf/ast"
	"weir/pf/field"
	"weir/pf/resolve"
	"weir/pf/token"
)

// TestFieldsAreListed checks that package field lists each field of resolve.Rule and of
// ast.Rule, and no others.
func TestFieldsAreListed(t *testing.T) {
	var paths, names []string
	for _, f := range field.All() {
		paths = append(paths, f.Path)
		names = append(names, f.Names()...)
	}
	listed(t, reflect.TypeFor[resolve.Rule](), names)
	listed(t, reflect.TypeFor[ast.Rule](), paths)
}

// listed checks the names of fields of a type. Names with a dot belong to parts.
func listed(t *testing.T, of reflect.Type, names []string) {
	t.Helper()
	found := make(map[string]bool)
	for _, name := range names {
		found[name] = true
		if name != "" && !has(of, strings.Split(name, ".")) {
			t.Errorf("pf/field/list.go has %s, which %s has not", name, of)
		}
	}
	for _, f := range reflect.VisibleFields(of) {
		embedded := f.Anonymous && f.Type != reflect.TypeFor[token.Span]()
		if len(f.Index) > 1 && f.Name != "Span" && of.Field(f.Index[0]).Type == reflect.TypeFor[token.Span]() {
			continue // a part of the rule's place
		}
		if !embedded && !found[f.Name] {
			t.Errorf("field %s of %s is not in pf/field/list.go", f.Name, of)
		}
	}
}

func has(of reflect.Type, path []string) bool {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	if len(path) == 0 {
		return true
	}
	if of.Kind() != reflect.Struct {
		return false
	}
	f, ok := of.FieldByName(path[0])
	return ok && has(f.Type, path[1:])
}

// TestFieldsAgree checks that entries for the same field of resolve.Rule agree, and that
// anchors do not lose a condition that the linter does not know.
func TestFieldsAgree(t *testing.T) {
	first := make(map[string]*field.Field)
	for i := range field.All() {
		f := &field.All()[i]
		if f.Word == "" {
			t.Errorf("%s %s has no word", f.Path, f.Rule)
		}
		if f.Optimize == field.AsClause && !strings.Contains(f.Path, ".") {
			t.Errorf("%s %s has no class for the optimizer", f.Path, f.Rule)
		}
		for _, name := range f.Names() {
			if o := first[name]; o != nil && (o.Enforced != f.Enforced || o.Anchor != f.Anchor || o.Lint != f.Lint) {
				t.Errorf("%s and %s say different things of %s", o.Path, f.Path, name)
			}
			first[name] = f
			if f.Lint != field.Effect && f.Anchor == field.Idle && name != "Anchor" {
				t.Errorf("%s chooses packets, but the rules of an anchor do not ask for it", name)
			}
		}
	}
}

// TestFieldsGiven checks that a rule's field is found if it is not listed or not
// enforced.
func TestFieldsGiven(t *testing.T) {
	for _, test := range []struct {
		rule resolve.Rule
		want string
	}{
		{resolve.Rule{Nr: 1, Text: "pass", Quick: true, Tag: "t"}, ""},
		{resolve.Rule{Filter: resolve.Filter{StateLimiter: resolve.Limiting{ID: 1}}}, ""},
		{resolve.Rule{Filter: resolve.Filter{SourceLimiter: resolve.Limiting{ID: 1}}}, ""},
		{resolve.Rule{OS: "Linux"}, ""},
	} {
		if got := test.rule.Unenforced(); got != test.want {
			t.Errorf("%+v gives %q, want %q", test.rule, got, test.want)
		}
	}
	if all := resolve.FieldsThat(func(*field.Field) bool { return true }); all.Given(&resolve.Rule{}) != "" {
		t.Error("the zero rule gives something")
	}
}
