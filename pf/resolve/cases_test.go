package resolve_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/testenv"
	"weir/pf/resolve"
	"weir/pf/source"
)

// TestCases runs the cases of test/pf-cases.txt: what OpenBSD's pfctl prints for a file,
// how many rules FreeBSD's prints, and which lines they reject.
func TestCases(t *testing.T) {
	folder := testenv.Shared(t, "pf-cases")
	host, err := resolve.ReadHost(filepath.Join(folder, "host.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range caseNames(t) {
		t.Run(name, func(t *testing.T) {
			src := read(t, filepath.Join(folder, name+".in"))
			want := read(t, filepath.Join(folder, name+".ok"))
			if refused := refusedLines(want); len(refused) > 0 || strings.HasPrefix(want, "pfctl:") {
				refuses(t, src, host, refused)
				return
			}
			out, faults, ok := check(t, src, host)
			if !ok {
				t.Fatalf("refused:\n%s", faults)
			}
			if strings.HasPrefix(name, "freebsd/") {
				sameRules(t, want, out)
			} else if diff := cmp.Diff(sortedLines(want), sortedLines(out)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			printsItself(t, out, host)
			optimizes(t, filepath.Join(folder, name+".optimized"), src, host)
		})
	}
}

// optimizes compares the remaining rules of an optimized case with those that pfctl -o
// basic passes to the kernel, if there is such a file. The file was read back from a
// kernel. A kernel numbers rules, counts the addresses of tables and interfaces, and does
// not show what is in anchors.
func optimizes(t *testing.T, path, src string, host *resolve.Host) {
	t.Helper()
	if _, err := os.Stat(path); err != nil {
		return
	}
	want := read(t, path)
	if strings.Contains(want, " anchor ") {
		return
	}
	rules, list := resolve.LoadWith("in", []byte(src), host, resolve.Settings{Optimize: true, Files: source.Disk{}})
	if rules == nil {
		t.Fatalf("refused when optimized:\n%s", render(t, &list))
	}
	var got strings.Builder
	for _, r := range rules.Rules {
		got.WriteString(r.Text + "\n")
	}
	if diff := cmp.Diff(sortedLines(fromKernel(want)), sortedLines(got.String())); diff != "" {
		t.Errorf("optimized (-want +got):\n%s", diff)
	}
}

var (
	counters    = regexp.MustCompile(`(?m)^ *\[.*\n`)
	ruleNumber  = regexp.MustCompile(`(?m)^@\d+ `)
	tableCount  = regexp.MustCompile(`<([^:>]+):[^>]*>`)
	memberCount = regexp.MustCompile(`\(([^():]+):\d+\)`)
)

// fromKernel converts rules that a kernel shows to the form in which pfctl prints a file.
func fromKernel(text string) string {
	text = counters.ReplaceAllString(text, "")
	text = ruleNumber.ReplaceAllString(text, "")
	text = tableCount.ReplaceAllString(text, "<$1>")
	return memberCount.ReplaceAllString(text, "($1)")
}

func caseNames(t *testing.T) []string {
	t.Helper()
	var names []string
	for line := range strings.Lines(read(t, filepath.Join(testenv.Root(t), "test/pf-cases.txt"))) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			names = append(names, line)
		}
	}
	if len(names) == 0 {
		t.Fatal("test/pf-cases.txt names no case")
	}
	return names
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

var filterRule = regexp.MustCompile(`(?m)^\s*(pass|block|match|anchor|\})`)

// sameRules checks that the number of printed rules is that of FreeBSD's pfctl, which
// prints them in another form.
func sameRules(t *testing.T, want, got string) {
	t.Helper()
	if w, g := len(filterRule.FindAllString(want, -1)), len(filterRule.FindAllString(got, -1)); w != g {
		t.Errorf("%d rules, want %d:\n%s", g, w, got)
	}
}

var stdinLine = regexp.MustCompile(`(?m)^stdin:(\d+):`)

// refusedLines returns the lines in pfctl's errors.
func refusedLines(text string) []int {
	var lines []int
	for _, m := range stdinLine.FindAllStringSubmatch(text, -1) {
		n, _ := strconv.Atoi(m[1]) // digits
		lines = append(lines, n)
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// refuses checks that the errors are on the same lines as pfctl's.
func refuses(t *testing.T, src string, host *resolve.Host, want []int) {
	t.Helper()
	rules, list := resolve.Load("stdin", []byte(src), host)
	if rules != nil {
		t.Fatal("accepted what pfctl refuses")
	}
	var got []int
	for _, r := range list.Records() {
		if r.Severity == "error" {
			got = append(got, r.Line)
		}
	}
	slices.Sort(got)
	if len(want) == 0 && len(got) > 0 {
		return // pfctl found it after reading the whole file, and names no line
	}
	if diff := cmp.Diff(want, slices.Compact(got)); diff != "" {
		t.Errorf("lines with errors (-want +got):\n%s%s", diff, render(t, &list))
	}
}

var automatic = regexp.MustCompile(`<__automatic_\w+>`)

// sortedLines returns the lines of a printed configuration. Automatic tables come first
// and are numbered by use, without those that no rule uses. pfctl also numbers tables of
// combinations that it then leaves out.
func sortedLines(text string) []string {
	var tables, rest []string
	for line := range strings.Lines(text) {
		switch line = strings.TrimSpace(line); {
		case strings.HasPrefix(line, "table <__automatic_"):
			tables = append(tables, line)
		case line != "":
			rest = append(rest, line)
		}
	}
	numbers := map[string]string{}
	renumber := func(line string) string {
		return automatic.ReplaceAllStringFunc(line, func(name string) string {
			if numbers[name] == "" {
				numbers[name] = fmt.Sprintf("<__automatic_%d>", len(numbers))
			}
			return numbers[name]
		})
	}
	for i := range rest {
		rest[i] = renumber(rest[i])
	}
	tables = slices.DeleteFunc(tables, func(line string) bool { return numbers[automatic.FindString(line)] == "" })
	for i := range tables {
		tables[i] = renumber(tables[i])
	}
	slices.Sort(tables)
	return append(tables, rest...)
}
