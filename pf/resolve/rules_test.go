package resolve_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/testenv"
	"weir/pf/resolve"
)

// context is defined before each line of a rules file. It prints as contextLines lines.
const (
	context      = "table <good> { 192.0.2.5 192.0.2.6 2001:db8::5 }\ntable <bad> { 10.0.0.0/8 }\n"
	contextLines = 2
)

// TestRules checks the lines in testdata/rules, a file for each clause:
//
//	line;ok                  is accepted and prints itself
//	line;ok;printed;printed  is accepted and prints these lines
//	line;fail;message        is refused with this first message
func TestRules(t *testing.T) {
	files, err := filepath.Glob("testdata/rules/*.rules")
	if err != nil || len(files) == 0 {
		t.Fatalf("no rules files: %v", err)
	}
	host := testHost(t)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".rules"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
			var got []string
			for _, line := range lines {
				source, _, _ := strings.Cut(line, ";")
				got = append(got, verdict(t, source, host))
			}
			if testenv.Updating() {
				if err := os.WriteFile(file, []byte(strings.Join(got, "\n")+"\n"), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(lines, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// verdict returns a line of a rules file.
func verdict(t *testing.T, source string, host *resolve.Host) string {
	t.Helper()
	rules, list := resolve.Load("in", []byte(context+source+"\n"), host)
	if rules == nil {
		list.Sort()
		return source + ";fail;" + list.Items[0].Text()
	}
	out, _, _ := check(t, context+source+"\n", host)
	printsItself(t, out, host)
	printed := strings.Split(strings.TrimSuffix(out, "\n"), "\n")[contextLines:]
	if len(printed) == 1 && printed[0] == source {
		return source + ";ok"
	}
	return strings.Join(append([]string{source, "ok"}, printed...), ";")
}
