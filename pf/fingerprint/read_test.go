package fingerprint

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRead(t *testing.T) {
	list, faults := Read([]byte(strings.Join([]string{
		"# a comment", "",
		"  65535:64:1:60:M1460,N,W7,N,N,T0,S:Alpha:1.0-1.2:x:Alpha 1",
		"S45:64:1:*:M*,W%2:@Beta:::Beta",
		"65535:64:1:60:M1460,N,W7,N,N,T0,S:Gamma:2000:",
		"%100:128:0:%4:.:Delta:9:SP1:",
		"T4:1:0:8192:.:Nothing:1::",
	}, "\n")))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	want := []Fingerprint{
		{Window: Number{Exactly, 65535}, MSS: Number{Exactly, 1460}, Scale: Number{Exactly, 7}, Size: Number{Exactly, 60}, TTL: 64, DF: true, Options: "MNWNNTS", ZeroTime: true},
		{Window: Number{TimesMSS, 45}, MSS: Number{Any, 0}, Scale: Number{Multiple, 2}, Size: Number{Any, 0}, TTL: 64, DF: true, Options: "MW"},
		{Window: Number{Multiple, 100}, Size: Number{Multiple, 4}, TTL: 128},
	}
	var got []Fingerprint
	for _, f := range list {
		got = append(got, f.Fingerprint)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for name, of := range map[string][]int{
		"alpha": {0}, "Alpha 1.1": {0}, "Alpha 1.0-1.2": {0}, "Alpha 1.2 x": {0}, "Alpha 1.3": nil, "Beta": {1}, "Gamma 2000": {0}, "Delta 9 SP1": {2},
		"Nothing": nil, "Delta SP1": nil,
	} {
		if !slices.Equal(list.Of(name), of) {
			t.Errorf("%s: %v, want %v", name, list.Of(name), of)
		}
	}
}

func TestReadFaults(t *testing.T) {
	for line, want := range map[string]string{
		"65535:64:1:60:.:A:1":                             "eight fields",
		"x:64:1:60:.:A:1::":                               "the window",
		"65536:64:1:60:.:A:1::":                           "the window",
		"%0:64:1:60:.:A:1::":                              "the window",
		"1:S4:1:60:.:A:1::":                               "the TTL",
		"1:64:2:60:.:A:1::":                               "DF",
		"1:64:1:S4:.:A:1::":                               "the size",
		"1:64:1:60:Q:A:1::":                               "no option Q",
		"1:64:1:60:M:A:1::":                               "the MSS",
		"1:64:1:60:N,,N:A:1::":                            "the options",
		"1:64:1:60:.::1::":                                "the class",
		"1:64:1:60:W256:A:1::":                            "window scale",
		"1:64:1:60:.:" + strings.Repeat("a", 32) + ":1::": "at most 31",
	} {
		list, faults := Read([]byte("\n" + line + "\n"))
		if len(list) != 0 || len(faults) != 1 || !strings.Contains(faults[0].Message, want) || faults[0].First != 1 || faults[0].End != 1+len(line) {
			t.Errorf("%s: %v", line, faults)
		}
	}
}
