package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// shuffled lists the structs whose fields are moved.
var shuffled = []string{"tuple", "course", "flow", "state", "interface", "shared"}

func main() {
	bpf := flag.String("bpf", "", "`folder` of the sources")
	out := flag.String("o", "", "object `file` to write")
	flag.Parse()
	if err := run(*bpf, *out); err != nil {
		fmt.Fprintln(os.Stderr, "shuffle:", err)
		os.Exit(1)
	}
}

func run(bpf, out string) (err error) {
	copied, err := os.MkdirTemp("", "weir-shuffle-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(copied)) }()
	if err := os.CopyFS(copied, os.DirFS(bpf)); err != nil {
		return err
	}
	moved := 0
	err = filepath.WalkDir(copied, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".h" || strings.Contains(path, "/include/") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		other, n := shuffle(string(text))
		moved += n
		return os.WriteFile(path, []byte(other), 0o600)
	})
	if err != nil {
		return err
	}
	if moved < 20 {
		return fmt.Errorf("only %d fields have moved", moved)
	}
	return compile(copied, out)
}

var (
	structure = regexp.MustCompile(`(?ms)^struct (\w+) \{\n(.*?)^\}`)
	field     = regexp.MustCompile(`^\t(\w+|struct \w+) \w+;`)
	spare     = regexp.MustCompile(`(?m)^\t__u32 spare\[2\];`)
)

// shuffle changes the structs of a header. It returns how many fields have moved.
func shuffle(text string) (other string, moved int) {
	other = structure.ReplaceAllStringFunc(text, func(s string) string {
		m := structure.FindStringSubmatch(s)
		if !slices.Contains(shuffled, m[1]) {
			return s
		}
		body := m[2]
		if m[1] == "flow" {
			body = spare.ReplaceAllString(body, "\t__u32 later;\n\t__u32 spare;")
		}
		body, n := reverse(body)
		moved += n
		return "struct " + m[1] + " {\n" + body + "}"
	})
	return other, moved
}

// reverse reverses consecutive fields of the same type.
func reverse(body string) (reversed string, moved int) {
	var lines, run []string
	var of string
	end := func() {
		if len(run) > 1 {
			moved += len(run)
		}
		slices.Reverse(run)
		lines, run = append(lines, run...), nil
	}
	for _, line := range strings.SplitAfter(body, "\n") {
		m := field.FindStringSubmatch(line)
		whole := strings.Count(line, "/*") == strings.Count(line, "*/")
		if m == nil || !whole || m[1] != of {
			end()
		}
		if m == nil || !whole {
			lines, of = append(lines, line), ""
			continue
		}
		run, of = append(run, line), m[1]
	}
	end()
	return strings.Join(lines, ""), moved
}

// compile calls the compiler with the flags that bpf2go is given.
func compile(copied, out string) error {
	flags := strings.ReplaceAll(os.Getenv("BPF2GO_CFLAGS"), `"`, "")
	args := []string{
		"-target", "bpfel", "-g", "-I" + copied, "-I" + filepath.Join(copied, "include"), "-ffile-prefix-map=" + copied + "=.",
		"-fdebug-compilation-dir=.", "-c", filepath.Join(copied, "gc.bpf.c"), "-o", out,
	}
	for _, command := range [][]string{
		append([]string{os.Getenv("BPF2GO_CC")}, append(withoutPaths(strings.Fields(flags)), args...)...),
		{os.Getenv("BPF2GO_STRIP"), "-g", out},
	} {
		if text, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil { //nolint:gosec,noctx // the compiler of make generate
			return fmt.Errorf("%s: %w\n%s", command[0], err, text)
		}
	}
	return nil
}

// withoutPaths removes the paths of the original sources from the flags.
func withoutPaths(flags []string) []string {
	return slices.DeleteFunc(flags, func(f string) bool { return strings.HasPrefix(f, "-I") || strings.HasPrefix(f, "-ffile-prefix-map") })
}
