package main

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The generated files must be what the header gives now.
func TestUpToDate(t *testing.T) {
	l, err := readHeader("../../../../bpf/observe/reason.h")
	if err != nil {
		t.Fatal(err)
	}
	source, err := l.goSource()
	if err != nil {
		t.Fatal(err)
	}
	compareFile(t, "../reason_gen.go", source)
	doc, err := os.ReadFile("../../../../docs/packet-path.md")
	if err != nil {
		t.Fatal(err)
	}
	want, err := l.inDocument(doc)
	if err != nil {
		t.Fatal(err)
	}
	compareFile(t, "../../../../docs/packet-path.md", want)
}

func compareFile(t *testing.T, path string, want []byte) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s is behind bpf/observe/reason.h; run make generate (-want +got):\n%s", path, diff)
	}
}

func TestParse(t *testing.T) {
	const good = "enum reason {\n\tREASON_UP_TTL,\t/* up-ttl: used up */\n\tREASON_LAST_PASS = REASON_UP_TTL,\n\n" +
		"\tREASON_BLOCK,\t/* block: blocked */\n\tREASON_COUNT,\n};\n"
	l, err := parse([]byte(good))
	if err != nil {
		t.Fatal(err)
	}
	want := []entry{{"UpTTL", "up-ttl", "used up"}, {"Block", "block", "blocked"}}
	if diff := cmp.Diff(want, l.entries, cmp.AllowUnexported(entry{})); diff != "" || l.passes != 1 {
		t.Errorf("passes %d, entries (-want +got):\n%s", l.passes, diff)
	}
}

func TestParseErrors(t *testing.T) {
	for name, c := range map[string]struct{ header, want string }{
		"no comment":  {"enum reason {\n\tREASON_A,\n", `line 2: "REASON_A," is not of the form`},
		"twice":       {"enum reason {\n\tREASON_A, /* a: x */\n\tREASON_B, /* a: y */\n", `line 3: the name "a" is used twice`},
		"last pass":   {"enum reason {\n\tREASON_A, /* a: x */\n\tREASON_LAST_PASS = REASON_B,\n", "must name the reason above it"},
		"no count":    {"enum reason {\n\tREASON_A, /* a: x */\n};\n", "no enum reason"},
		"after count": {"enum reason {\n\tREASON_COUNT,\n\tREASON_A, /* a: x */\n", "line 3: a line follows"},
	} {
		_, err := parse([]byte(c.header))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

func TestDocumentWithoutMarks(t *testing.T) {
	if _, err := new(list).inDocument([]byte("# text\n" + endMark)); err == nil {
		t.Error("a document without a begin mark was accepted")
	}
}
