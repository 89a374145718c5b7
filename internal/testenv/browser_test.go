package testenv

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFindBrowser checks that a usable browser is found and a snap is refused.
func TestFindBrowser(t *testing.T) {
	dir := t.TempDir()
	place := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	program, snap := place("program", "\x7fELF"), place("snap", "\x7fELF")
	wrapper := place("wrapper", "#!/bin/sh\nexec /snap/bin/chromium \"$@\"\n")
	debian := place("debian", "#!/bin/sh\nexec /usr/lib/chromium/chromium \"$@\"\n")
	link := filepath.Join(dir, "link")
	if err := os.Symlink(snap, link); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name      string
		installed map[string]string
		path, why string
	}{
		{"nothing", nil, "", "is installed"},
		{"a program", map[string]string{"chromium": program}, program, ""},
		{"Debian's script", map[string]string{"chromium": debian}, debian, ""},
		{"a link to snap", map[string]string{"chromium": link}, "", link + " is a snap"},
		{"Ubuntu's script", map[string]string{"chromium-browser": wrapper}, "", wrapper + " is a snap"},
		{"a snap and another", map[string]string{"chromium": link, "google-chrome": program}, program, ""},
	} {
		path, why := findBrowser(func(name string) (string, error) {
			if path := test.installed[name]; path != "" {
				return path, nil
			}
			return "", errors.New("not found")
		})
		if path != test.path || !strings.Contains(why, test.why) || (why == "") != (path != "") {
			t.Errorf("%s: %q, %q; want %q, %q", test.name, path, why, test.path, test.why)
		}
	}
	if !isUbuntu("NAME=\"Ubuntu\"\nID=ubuntu\n") || isUbuntu("ID=debian\nID_LIKE=ubuntu\n") {
		t.Error("the system's name is not read")
	}
}
