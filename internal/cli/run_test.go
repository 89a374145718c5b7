package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"weir/internal/fw/bpfload"
	"weir/internal/fw/control"
	"weir/internal/testenv"
)

// run runs a command as main does, but without the machine: none of these commands gets
// as far as changing it.
func run(t *testing.T, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	var out, said bytes.Buffer
	status = Run(t.Context(), &Env{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &said}, args)
	return out.String(), said.String(), status
}

func TestUsageErrorsEndWithTwo(t *testing.T) {
	testenv.NeedRoot(t)
	for _, test := range []struct {
		args []string
		want string // part of the output
	}{
		{[]string{"bogus"}, "bogus"},
		{[]string{"run", "--bogus"}, "unknown flag"},
		{[]string{"run", "--hook", "generic"}, `hook "generic": expected auto, xdp or tcx`},
		{[]string{"run", "--management", "70000"}, `invalid argument "70000" for "--management" flag: value out of range`},
		{[]string{"run", "--management", "ssh"}, `invalid argument "ssh" for "--management" flag: invalid syntax`},
		{[]string{"run", "--management", "0"}, "--management takes a port from 1 to 65535"},
		{[]string{"run", "-f", ""}, "-f is empty"},
		{[]string{"run", "weir.conf"}, `weir run takes no argument: "weir.conf"; -f names the rule file`},
		{[]string{"stop", "now"}, `weir stop takes no argument: "now"`},
		{[]string{"load"}, "name one rule file"},
		{[]string{"chekc"}, `did you mean "check"?`},
		{[]string{"help", "nosuch"}, `unknown command "nosuch"; weir --help lists the commands`},
		{[]string{"help", "chekc"}, `did you mean "check"?`},
		{[]string{"help", "check", "more"}, `weir help check more: name one command`},
		{[]string{"run", "--version"}, "unknown flag"},
		{[]string{"bench", "laddder", "--quick"}, `unknown command "laddder"; did you mean "ladder"?`},
		{[]string{"bench", "nosuch"}, `unknown command "nosuch"; weir bench --help lists the commands`},
		{[]string{"bench", "--nosuch"}, "unknown flag"},
		{[]string{"bench", "memory", "now"}, `weir bench memory takes no argument: "now"`},
		{[]string{"tune", "aply"}, `unknown command "aply"; did you mean "apply"?`},
		{[]string{"affinity", "sett"}, `unknown command "sett"; did you mean "set"?`},
		{[]string{"lab", "exec", "lan"}, "lab exec: name a host"},
		{[]string{"states", "extra"}, "expected proto, host, from, to, port, phase, rule, label, on, id, gateway or nat"},
		{[]string{"states", "proto"}, `"proto" must be followed by a value`},
		{[]string{"states", "colour", "red"}, "expected proto, host"},
		{[]string{"--netns", "no-such-namespace", "info"}, `network namespace "no-such-namespace"`},
		{[]string{"--netns", "", "info"}, "--netns is empty"},
		{[]string{"--netns", "/etc/passwd", "info"}, "/etc/passwd is no network namespace"},
		{[]string{"lab", "up", "--name", "../x"}, `lab name "../x"`},
		{[]string{"lab", "down", "--name", ""}, `lab name ""`},
	} {
		stdout, stderr, status := run(t, test.args...)
		if status != 2 || stdout != "" || !strings.Contains(stderr, test.want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("weir %s: status %d, stdout %q, stderr %q; want status 2 and one sentence with %q",
				strings.Join(test.args, " "), status, stdout, stderr, test.want)
		}
	}
}

func TestEveryReadingCommandHasJSON(t *testing.T) {
	root := Commands()
	for _, name := range []string{"rules", "states", "sources", "info", "interfaces", "check"} {
		c, _, err := root.Find([]string{name})
		if err != nil {
			t.Fatal(err)
		}
		if c.Flags().Lookup("json") == nil {
			t.Errorf("weir %s has no --json", name)
		}
	}
	tune, _, err := Commands().Find([]string{"tune"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range tune.Commands() {
		if c.Flags().Lookup("json") == nil {
			t.Errorf("weir tune %s has no --json", c.Name())
		}
	}
}

func TestStatus(t *testing.T) {
	for _, test := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{ErrSilent, 1},
		{errors.New("x"), 1},
		{&control.RefusedError{Text: "x"}, 1},
		{fmt.Errorf("y: %w", &UsageError{fs.ErrNotExist}), 2},
		{fmt.Errorf("y: %w", errNotRoot), 2},
		{fmt.Errorf("y: %w", bpfload.ErrMounts), 2},
	} {
		if got := status(test.err); got != test.want {
			t.Errorf("status(%v) = %d, want %d", test.err, got, test.want)
		}
	}
}

func TestSay(t *testing.T) {
	for _, test := range []struct {
		err  error
		want string
	}{
		{nil, ""},
		{ErrSilent, ""},
		{errors.New("attach xdp to eth0: no"), "weir: attach xdp to eth0: no\n"},
		{&control.RefusedError{Text: "build the dataplane: no"}, "weir: build the dataplane: no\n"},
		{&control.RefusedError{Text: "a.conf:1:2: syntax error\nx\n^", Faults: true}, "a.conf:1:2: syntax error\nx\n^\n"}, // for editors
	} {
		var b strings.Builder
		say(&b, test.err)
		if b.String() != test.want {
			t.Errorf("say(%v) wrote %q, want %q", test.err, b.String(), test.want)
		}
	}
}

func TestVersion(t *testing.T) {
	for _, word := range []string{"version", "--version"} {
		stdout, _, status := run(t, word)
		if status != 0 || !strings.HasPrefix(stdout, "weir ") || !strings.Contains(stdout, "go1.") || strings.Count(stdout, "\n") != 1 {
			t.Errorf("%s: status %d, said %q", word, status, stdout)
		}
	}
}

func TestHelp(t *testing.T) {
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"help"}, "weir [command]"},
		{[]string{"help", "check"}, "weir check FILE"},
		{[]string{"help", "lab", "up"}, "weir lab up"},
	} {
		stdout, stderr, status := run(t, test.args...)
		if status != 0 || !strings.Contains(stdout, test.want) || stderr != "" {
			t.Errorf("weir %s: status %d, said %q and %q", strings.Join(test.args, " "), status, stdout, stderr)
		}
	}
}

// Tests run inside namespaces that others made. The program must not seem to be one that
// Enter has restarted because its parent was.
func TestEnteredMarkIsNotInherited(t *testing.T) {
	t.Setenv("WEIR_ENTERED", fmt.Sprint(os.Getppid()))
	_, stderr, status := run(t, "--netns", "/nonexistent/net", "version")
	if status != 2 || !strings.Contains(stderr, "/nonexistent/net") {
		t.Errorf("status %d, said %q", status, stderr)
	}
}
