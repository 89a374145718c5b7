package daemon

import (
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/pf/resolve"
)

// TestSameForPrograms: the options that are not constants of the programs differ without other programs. Each new
// option has to be put into this list, or not.
func TestSameForPrograms(t *testing.T) {
	data := []string{
		"FragmentsAlone", "FragmentsListed", "Gateways", "Groups", "IKEv2", "ImplicitPass", "MaxSources", "MaxStates", "MaxTableEntries", "MaxTables", "Optimization",
		"PPPoE", "PfctlMayOpen", "Skip", "TableStore", "Timeouts", "WireGuard",
	}
	same := map[string]bool{}
	var base resolve.Options
	for _, field := range reflect.VisibleFields(reflect.TypeFor[resolve.Options]()) {
		if !field.IsExported() {
			t.Fatalf("%s is not exported, so this test cannot set it", field.Name)
		}
		other := base
		change(reflect.ValueOf(&other).Elem().FieldByIndex(field.Index))
		if reflect.DeepEqual(base, other) {
			t.Fatalf("%s has not changed", field.Name)
		}
		if sameForPrograms(base, other) != sameForPrograms(other, base) {
			t.Errorf("%s is the same one way, and not the other", field.Name)
		}
		if sameForPrograms(base, other) {
			same[field.Name] = true
		}
	}
	if diff := cmp.Diff(data, slices.Sorted(maps.Keys(same))); diff != "" {
		t.Errorf("options that need no other programs (-want +got):\n%s", diff)
	}
	one, two := resolve.Options{Spreads: make([]resolve.Spread, 1)}, resolve.Options{Spreads: make([]resolve.Spread, 2)}
	if !sameForPrograms(one, two) || sameForPrograms(base, one) {
		t.Error("the first interface that spreads needs other programs, and a second one does not")
	}
}

// change gives a value another one.
func change(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString("x")
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.Struct:
		change(v.Field(0))
	default:
		v.Set(reflect.ValueOf(1).Convert(v.Type()))
	}
}
