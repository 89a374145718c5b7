package optimize

import (
	"reflect"
	"strings"
	"testing"

	"weir/pf/ast"
)

// TestFieldsAreClassed checks that it is known of each field of a rule what it
// means to the optimizer, and of none that does not exist.
func TestFieldsAreClassed(t *testing.T) {
	classes := fields()
	rule := reflect.TypeFor[ast.Rule]()
	for _, f := range ruleFields(rule, nil) {
		if classes[f.Name] == 0 {
			t.Errorf("field %s of ast.Rule has no class: add it to fields in field.go", f.Name)
		}
		delete(classes, f.Name)
	}
	for name := range classes {
		t.Errorf("fields in field.go names %s, which ast.Rule has not", name)
	}
	for name := range parts() {
		clause, field, _ := strings.Cut(name, ".")
		f, ok := rule.FieldByName(clause)
		if !ok {
			t.Errorf("parts in field.go names %s, which ast.Rule has not", clause)
			continue
		}
		inner := f.Type
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice {
			inner = inner.Elem()
		}
		if _, ok := inner.FieldByName(field); !ok {
			t.Errorf("parts in field.go names %s, which a rule's %s has not", field, clause)
		}
	}
}
