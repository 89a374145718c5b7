package ruleset_test

import (
	"strings"
	"testing"

	"weir/internal/fw/ruleset"
	"weir/pf/resolve"
)

// Two tables with counters whose names give the same number are refused. Without counters
// they are not.
func TestTablesThatCountTogether(t *testing.T) {
	const one, other = "t63155", "t236211"
	if ruleset.TableNumber(one) != ruleset.TableNumber(other) {
		t.Fatal("the numbers are not the same")
	}
	for _, test := range []struct{ option, want string }{
		{"", ""},
		{"counters", "the counters of tables <t236211> and <t63155> cannot be told apart"},
	} {
		text := "table <" + one + "> persist counters\ntable <" + other + "> persist " + test.option + "\n"
		rs, faults := resolve.Load("test.conf", []byte(text), nil)
		if faults.HasErrors() {
			t.Fatal(faults)
		}
		_, err := ruleset.Compile(rs, ruleset.Snapshot{})
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%q: %v, want %q", test.option, err, test.want)
		}
	}
}
