package collect

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestWanted checks that each sysctl of Linux that a check names as a whole is read. Two files name what other
// programs print.
func TestWanted(t *testing.T) {
	files, err := filepath.Glob("../*.go")
	if err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile(`"((?:net\.(?:ipv4|ipv6|core|netfilter|bridge)|vm|kernel)\.[a-z0-9_.-]+[a-z0-9])"`)
	seen := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") || file == "../redact.go" || file == "../sysctl.go" {
			continue
		}
		text, err := readFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range name.FindAllStringSubmatch(text, -1) {
			path := strings.ReplaceAll(m[1], ".", "/")
			seen++
			if !slices.ContainsFunc(wanted, func(pattern string) bool { ok, err := filepath.Match(pattern, path); return ok && err == nil }) {
				t.Errorf("%s: %s is not read", file, m[1])
			}
		}
	}
	if seen < 20 {
		t.Errorf("only %d sysctls found", seen)
	}
}
