package testenv

import (
	"os"
	"syscall"
	"testing"
)

// WriteProgram writes a program, such as a script, that the test runs.
//
// No other goroutine starts a process meanwhile. The new process would hold the file open
// for writing until its own exec, and Linux does not run a file that is open for writing
// (ETXTBSY, "text file busy").
func WriteProgram(tb testing.TB, path string, text []byte) {
	tb.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, text, 0o700); err != nil { //nolint:gosec // it is run
		tb.Fatal(err)
	}
}
