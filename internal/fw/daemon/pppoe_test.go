package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"weir/pf/resolve"
)

// A password comes from a file that only its owner may read, or from the environment.
func TestPPPoEPassword(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil { // whatever the umask
			t.Fatal(err)
		}
		return path
	}
	pipe := filepath.Join(dir, "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("WEIR_TEST_PASSWORD", "of the environment")
	for _, test := range []struct {
		name, want, problem string
		from                resolve.PasswordSource
	}{
		{name: "a file", from: resolve.PasswordSource{File: file("good", "secret \n", 0o600)}, want: "secret "},
		{name: "others may read it", from: resolve.PasswordSource{File: file("open", "secret\n", 0o640)}, problem: "chmod 600"},
		{name: "empty", from: resolve.PasswordSource{File: file("empty", "", 0o600)}, problem: "has none"},
		{name: "too long", from: resolve.PasswordSource{File: file("long", strings.Repeat("x", 257), 0o600)}, problem: "more than 256"},
		{name: "a pipe", from: resolve.PasswordSource{File: pipe}, problem: "no regular file"},
		{name: "no file", from: resolve.PasswordSource{File: filepath.Join(dir, "none")}, problem: "no such file"},
		{name: "the environment", from: resolve.PasswordSource{Env: "WEIR_TEST_PASSWORD"}, want: "of the environment"},
		{name: "not in the environment", from: resolve.PasswordSource{Env: "WEIR_TEST_NO_PASSWORD"}, problem: "has no WEIR_TEST_NO_PASSWORD"},
		{name: "none"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := password(test.from)
			switch {
			case test.problem == "" && (err != nil || got != test.want):
				t.Errorf("%q, %v; want %q", got, err, test.want)
			case test.problem != "" && (err == nil || !strings.Contains(err.Error(), test.problem)):
				t.Errorf("%q, %v; want an error with %q", got, err, test.problem)
			}
		})
	}
}
