package testenv

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// browsers are the names of Chromium, and of browsers built on it.
var browsers = []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}

// NeedBrowser returns the path of a Chromium that runs here, or skips the test. On Ubuntu
// it skips even if [NoSkip] is set: there Chromium is a snap, which script/bootstrap
// cannot install, and which neither root nor a process in its own namespaces can run.
func NeedBrowser(tb testing.TB) string {
	tb.Helper()
	path, why := findBrowser(exec.LookPath)
	if path != "" {
		return path
	}
	if release, err := os.ReadFile("/etc/os-release"); err == nil && isUbuntu(string(release)) {
		SkipOutside(tb, "needs Chromium: %s; Ubuntu has it as a snap only", why)
	}
	Skip(tb, "needs Chromium: %s", why)
	return ""
}

// findBrowser finds a browser that is no snap, or says why there is none.
func findBrowser(look func(string) (string, error)) (path, why string) {
	var snaps []string
	for _, name := range browsers {
		path, err := look(name)
		switch {
		case err != nil:
		case isSnap(path):
			snaps = append(snaps, path)
		default:
			return path, ""
		}
	}
	if len(snaps) > 0 {
		return "", fmt.Sprintf("%s is a snap, which does not run for root or in namespaces of one's own", strings.Join(snaps, " and "))
	}
	return "", "none of the programs " + strings.Join(browsers, ", ") + " is installed"
}

// isSnap reports whether a program is a snap: a link in /snap/bin, or a script that only
// calls one.
func isSnap(path string) bool {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return false
	}
	if strings.HasPrefix(path, "/snap/") || strings.HasPrefix(real, "/snap/") || filepath.Base(real) == "snap" {
		return true
	}
	text, err := os.ReadFile(real)
	return err == nil && bytes.HasPrefix(text, []byte("#!")) && bytes.Contains(text, []byte("/snap/bin/"))
}

func isUbuntu(release string) bool {
	for line := range strings.Lines(release) {
		if strings.TrimSpace(line) == "ID=ubuntu" {
			return true
		}
	}
	return false
}

// Browse opens a file in a browser of [NeedBrowser], without a window, and returns its output.
// The test fails if the browser complains. profile is a folder for the browser alone.
func Browse(tb testing.TB, chromium, profile, file string, flags ...string) []byte {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), 2*time.Minute)
	defer cancel()
	flags = append(flags, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--user-data-dir="+profile, "--enable-logging=stderr", "file://"+file)
	cmd := exec.CommandContext(ctx, chromium, flags...)
	var complaints strings.Builder
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		tb.Fatalf("chromium: %v\n%s", err, complaints.String())
	}
	if found := regexp.MustCompile(`(?m)^.*CONSOLE.*$`).FindAllString(complaints.String(), -1); found != nil {
		tb.Errorf("on the console: %q", found)
	}
	return out
}
