package resolve_test

import (
	"strings"
	"testing"

	"weir/pf/resolve"
	"weir/pf/source"
)

func TestSystems(t *testing.T) {
	const good = "65535:64:0:40:.:Alpha:1::\n"
	for _, test := range []struct {
		name, rules string
		files       source.Files
		want        string // "": accepted and enforced
	}{
		{"pf's file", `pass from any os "Alpha 1"`, source.Files{"/etc/pf.os": {Text: good}}, ""},
		{"unknown senders", `pass from any os { unknown, alpha }`, source.Files{"/etc/pf.os": {Text: good}}, ""},
		{"another file", "set fingerprints \"/x\"\npass from any os Alpha", source.Files{"/x": {Text: good}, "/etc/pf.os": {Error: "denied"}}, ""},
		{"a name that is not there", `pass from any os "Alpa"`, source.Files{"/etc/pf.os": {Text: good}}, `no fingerprint is of "Alpa"`},
		{"a bad line", "pass from any os Alpha", source.Files{"/etc/pf.os": {Text: good + "1:2\n"}}, "/etc/pf.os:2:1: a fingerprint has eight fields"},
		{"no file", "pass from any os Alpha", source.Files{}, "os without a file of fingerprints"},
		{"the named file is missing", "set fingerprints \"/x\"\npass from any os Alpha", source.Files{"/x": {Error: "no such file or directory"}}, "/x cannot be read"},
		{"nobody asks", "set fingerprints \"/x\"\npass", source.Files{}, ""},
	} {
		_, list := resolve.LoadWith("in", []byte(test.rules+"\n"), &resolve.Host{}, resolve.Settings{Files: test.files})
		list.Enforce()
		switch got := list.String(); {
		case test.want == "" && list.HasErrors(), !strings.Contains(got, test.want):
			t.Errorf("%s: %s", test.name, got)
		}
	}
}
