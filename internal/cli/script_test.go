package cli

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain lets scripts call this test as the program weir.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"weir": func() {
			env := &Env{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
			os.Exit(Run(context.Background(), env, os.Args[1:]))
		},
	})
}

// TestScripts runs command lines and checks their output and exit status.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:  "testdata/script",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"status2": wantUsageError, "status": wantStatus},
	})
}

// wantUsageError runs a program that must end with status 2.
func wantUsageError(ts *testscript.TestScript, _ bool, args []string) {
	err := ts.Exec(args[0], args[1:]...)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 2 {
		ts.Fatalf("%v: want exit status 2, got %v", args, err)
	}
}

// wantStatus runs a program that must end with the status in its first argument. "any"
// accepts every status.
func wantStatus(ts *testscript.TestScript, _ bool, args []string) {
	status := 0
	err := ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		status = exit.ExitCode()
	}
	if args[0] != "any" && strconv.Itoa(status) != args[0] {
		ts.Fatalf("%v: want exit status %s, got %d", args[1:], args[0], status)
	}
}
