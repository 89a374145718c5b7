package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/pf/diag"
)

// checkHost is a machine with one interface.
const checkHost = `{"interfaces": [{"name": "em0", "groups": [], "addresses": ["192.0.2.1/24"], "mtu": 1500}],
 "tables": {"far": ["198.51.100.0/24"]}}`

// runCheck runs `weir check` with flags on a rule file with this text.
func runCheck(t *testing.T, text string, flags ...string) (status int, stdout, stderr string) {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir)
	for name, content := range map[string]string{"pf.conf": text, "host.json": checkHost, "empty.conf": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out, faults bytes.Buffer
	env := &Env{Stdin: strings.NewReader(text), Stdout: &out, Stderr: &faults}
	status = Run(context.Background(), env, append([]string{"check"}, flags...))
	return status, out.String(), faults.String()
}

func TestCheck(t *testing.T) {
	host := []string{"--host", "host.json", "pf.conf"}
	for _, test := range []struct {
		name   string
		text   string
		flags  []string
		status int
		stdout string
		stderr string
	}{
		{"accepted", "pass in from em0\n", host, exitDone, "pass in inet from 192.0.2.1 to any flags S/SA\n", ""},
		{"warned", "block on em1\n", host, exitDone, "block drop on em1 all\n",
			"pf.conf:1:10: warning: there is no interface \"em1\" yet; did you mean \"em0\"?\n    1 | block on em1\n      |          ^^^\n"},
		{"standard input", "pass in from em0\n", []string{"--host", "host.json", "-"}, exitDone, "pass in inet from 192.0.2.1 to any flags S/SA\n", ""},
		{"standard input refused", "pass in proto tpc port 22\n", []string{"--host", "host.json", "-"}, exitRefused, "",
			"stdin:1:15: there is no protocol \"tpc\"; did you mean \"tcp\"?\n    1 | pass in proto tpc port 22\n      |               ^^^\n" +
				"stdin:1:19: port belongs after from or to: did you mean \"to port\"?\n    1 | pass in proto tpc port 22\n      |                   ^^^^\n"},
		{"refused", "pas in\n", host, exitRefused, "",
			"pf.conf:1:1: no statement starts with \"pas\"; did you mean \"pass\"?\n    1 | pas in\n      | ^^^\n"},
		{"file of a table that the host describes", "table <far> file \"absent\"\nblock from <far>\n", host, exitDone,
			"table <far> file \"absent\"\nblock drop from <far> to any\n",
			"pf.conf:1:18: warning: absent is missing; table <far> holds what the host's description says\n" +
				"    1 | table <far> file \"absent\"\n      |                  ^^^^^^^^\n"},
		{"file of another table", "table <near> file \"absent\"\nblock from <near>\n", host, exitRefused, "",
			"pf.conf:1:19: absent cannot be read: no such file or directory\n    1 | table <near> file \"absent\"\n      |                   ^^^^^^^^\n"},
		{"optimizer off", "pass\n", append([]string{"-o", "none"}, host...), exitDone, "pass all flags S/SA\n", ""},
		{"optimizer on", "pass\npass in\n", append([]string{"-o", "basic"}, host...), exitDone, "pass all flags S/SA\n", ""},
		{"no such optimizer", "pass\n", append([]string{"-o", "some"}, host...), exitUsage, "", "weir: -o takes none, basic or profile, not \"some\"\n"},
		{"enforced", "pass\n", append([]string{"--enforce"}, host...), exitDone, "pass all flags S/SA\n", ""},
		{"changes", "pass\n", append([]string{"--diff", "-"}, host...), exitDone, "nothing changes\n", ""},
		{"changes and expectations", "pass\n", append([]string{"--diff", "-", "--expect", "x"}, host...), exitUsage, "",
			"weir: use --diff or --expect, not both\n"},
		{"changes from what is refused", "pas\n", []string{"--host", "host.json", "--diff", "-", "empty.conf"}, exitRefused, "",
			"stdin:1:1: no statement starts with \"pas\"; did you mean \"pass\"?\n    1 | pas\n      | ^^^\n"},
		{"no file", "", nil, exitUsage, "", "weir: name one rule file\n"},
		{"missing file", "", []string{"--host", "host.json", "none.conf"}, exitRefused, "",
			"weir: read the rules: open none.conf: no such file or directory\n"},
		{"missing host", "", []string{"--host", "none.json", "pf.conf"}, exitRefused, "",
			"weir: read host: open none.json: no such file or directory\n"},
		{"no host", "", []string{"--host", "pf.conf", "pf.conf"}, exitRefused, "",
			"weir: read host pf.conf: unexpected end of JSON input\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			status, stdout, stderr := runCheck(t, test.text, test.flags...)
			if status != test.status {
				t.Errorf("status %d, want %d", status, test.status)
			}
			if stdout != test.stdout {
				t.Errorf("stdout:\n%s\nwant:\n%s", stdout, test.stdout)
			}
			if stderr != test.stderr {
				t.Errorf("stderr:\n%s\nwant:\n%s", stderr, test.stderr)
			}
		})
	}
}

func TestCheckJSON(t *testing.T) {
	type result struct {
		Accepted    bool
		Lines       []string
		Diagnostics []diag.Record
	}
	for _, test := range []struct {
		text   string
		status int
		lines  int
		faults string
	}{
		{"x = em0\npass on $x\n", exitDone, 2, ""},
		{"block on em1\n", exitDone, 1, "warning"},
		{"pas in\n", exitRefused, 0, "error"},
	} {
		status, stdout, stderr := runCheck(t, test.text, "--json", "--host", "host.json", "pf.conf")
		if status != test.status || stderr != "" {
			t.Errorf("%q: status %d, standard error %q", test.text, status, stderr)
		}
		var got result
		if err := json.Unmarshal([]byte(stdout), &got); err != nil {
			t.Fatalf("%q: %v in %s", test.text, err, stdout)
		}
		faults := ""
		for _, d := range got.Diagnostics {
			faults += d.Severity
		}
		if got.Accepted != (status == exitDone) || len(got.Lines) != test.lines || faults != test.faults {
			t.Errorf("%q: %+v", test.text, got)
		}
	}
}

// TestCheckExample checks the example for an unknown machine. It must be accepted
// anywhere, possibly with warnings.
func TestCheckExample(t *testing.T) {
	example, err := os.ReadFile("../../examples/gateway.conf")
	if err != nil {
		t.Fatal(err)
	}
	status, stdout, stderr := runCheck(t, string(example), "--host", "host.json", "pf.conf")
	if status != exitDone || !strings.Contains(stdout, "nat-to (wan0)") || strings.Contains(stderr, " error") {
		t.Errorf("status %d\n%s\n%s", status, stdout, stderr)
	}
}

// Rules of FreeBSD's lists come first in JSON, each list with its own numbers, which $nr
// means too.
func TestCheckJSONLists(t *testing.T) {
	const rules = "rdr on em0 proto tcp from any to any port 80 -> 10.0.0.1\nnat on em0 from 10/8 to any tag t$nr -> (em0)\n" +
		"binat on em0 from 10.0.0.2 to any -> 192.0.2.2\nnat on em0 from 11/8 to any tag t$nr -> (em0)\nblock label \"r$nr\"\npass label \"r$nr\"\n"
	status, stdout, stderr := runCheck(t, rules, "--json", "--host", "host.json", "pf.conf")
	if status != exitDone || stderr != "" {
		t.Fatalf("status %d, standard error %q", status, stderr)
	}
	var got struct {
		Rules []struct {
			Number            int
			List, Text, Label string
			Line              int
		}
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, r := range got.Rules {
		lines = append(lines, fmt.Sprint(r.List, r.Number, " ", r.Line, r.Label))
		if want := fmt.Sprintf("tag t%d ", r.Number); r.List == "nat" && !strings.Contains(r.Text, want) {
			t.Errorf("%s: %s", want, r.Text)
		}
	}
	if diff := cmp.Diff([]string{"nat0 2", "nat1 4", "rdr0 1", "binat0 3", "0 5r0", "1 6r1"}, lines); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
}

// TestCheckJSONComplete checks that JSON has all places: of rules, of each warning that
// the text folds, and of changes.
func TestCheckJSONComplete(t *testing.T) {
	const rules = "a = 1\nb = 2\nanchor x on em0 {\n\tpass label l\n}\nanchor quick { pass in set delay 1 }\nanchor quick { pass out set delay 1 }\n"
	status, stdout, stderr := runCheck(t, rules, "--json", "--host", "host.json", "--diff", "empty.conf", "pf.conf")
	if status != exitDone || stderr != "" {
		t.Fatalf("status %d, standard error %q", status, stderr)
	}
	var got struct {
		Rules []struct {
			Number              int
			Text, Anchor, Label string
			Line, Column        int
		}
		Diagnostics []diag.Record
		Unenforced  []diag.ConstructRecord
		Changes     []struct{ Kind, Words, New, Place string }
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatal(err)
	}
	if n := len(got.Rules); n != 6 {
		t.Fatalf("%d rules: %+v", n, got.Rules)
	}
	if r := got.Rules[0]; r.Anchor != "x" || r.Text != `anchor "x" on em0 all` || r.Line != 3 {
		t.Errorf("the anchor is %+v", r)
	}
	if r := got.Rules[1]; r.Number != 1 || r.Label != "l" || r.Line != 4 || r.Column != 2 {
		t.Errorf("the rule in the anchor is %+v", r)
	}
	var lines []int
	for _, d := range got.Diagnostics {
		lines = append(lines, d.Line)
	}
	if diff := cmp.Diff([]int{1, 2, 6, 7}, lines); diff != "" {
		t.Errorf("lines of warnings (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]diag.ConstructRecord{{Construct: "set delay", Places: 2}}, got.Unenforced); diff != "" {
		t.Errorf("what is not enforced (-want +got):\n%s", diff)
	}
	if len(got.Changes) != 6 || got.Changes[0].Words != "new rule" || got.Changes[0].Place != "pf.conf:3:1" {
		t.Errorf("changes: %+v", got.Changes)
	}
}

// Ctrl-C ends check while it waits for its text.
func TestCheckIsInterrupted(t *testing.T) {
	in, typed, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer typed.Close()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int)
	var said bytes.Buffer
	go func() {
		ended <- Run(ctx, &Env{Stdin: in, Stdout: &said, Stderr: &said}, []string{"check", "-"})
	}()
	cancel()
	select {
	case status := <-ended:
		if status != exitRefused || !strings.Contains(said.String(), "interrupted") {
			t.Errorf("status %d, said %s", status, said.String())
		}
	case <-time.After(10 * time.Second):
		t.Error("check goes on reading")
	}
}
