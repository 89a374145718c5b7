package resolve_test

import (
	"fmt"
	"strings"
	"testing"

	"weir/pf/resolve"
	"weir/pf/source"
)

// endless opens every file as its text, repeated up to the limit.
type endless string

func (e endless) Open(_ string, limit int) ([]byte, error) {
	return []byte(strings.Repeat(string(e), limit/len(e)+1)), nil
}

// TestFileBounds checks the limits on the size of files. Each is an error at the place
// that exceeds it.
func TestFileBounds(t *testing.T) {
	deep := source.Files{}
	for i := range 20 {
		deep[fmt.Sprint(i)] = source.File{Text: fmt.Sprintf("include \"%d\"\n", i+1)}
	}
	for _, test := range []struct {
		name, src string
		files     source.Opener
		want      string
	}{
		{"depth", `include "0"`, deep, "15:1:1: files include each other more than 16 deep"},
		{"bytes", "pass\ntable <t> file \"x\"\npass", endless("10.0.0.1\n"), "in:2:16: the files of the configuration come to more than 64 MiB"},
		{"number", strings.Repeat("include \"0\"\n", 5000), source.Files{"0": {Text: "pass\n"}}, "in:4097:9: the configuration names more than 4096 files"},
	} {
		t.Run(test.name, func(t *testing.T) {
			rules, list := resolve.LoadWith("in", []byte(test.src), testHost(t), resolve.Settings{Files: test.files})
			if rules != nil {
				t.Fatal("accepted")
			}
			message, _, _ := strings.Cut(list.Err().Error(), "\n")
			if message != test.want {
				t.Errorf("%s, want %s", message, test.want)
			}
		})
	}
}

// TestManyAddresses checks that a table's file with a million addresses is read in one
// pass.
func TestManyAddresses(t *testing.T) {
	var text strings.Builder
	for i := range 1_000_000 {
		fmt.Fprintf(&text, "10.%d.%d.%d\n", i>>16, i>>8&255, i&255)
	}
	files := source.Files{"addresses": {Text: text.String()}}
	rules, list := resolve.LoadWith("in", []byte("table <t> file \"addresses\"\npass from <t>"), nil, resolve.Settings{Files: files})
	if rules == nil {
		t.Fatal(list.Err())
	}
	if n := len(rules.Tables[0].Entries); n != 1_000_000 {
		t.Errorf("%d entries", n)
	}
}
