// Functions lists where the functions of C sources begin, for package profile:
//
//	go run ./functions FOLDER OUTPUT
package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// head matches the first line of a function: its type at the start, then its name before
// the first parenthesis.
var head = regexp.MustCompile(`^(?:static|int|long|__noinline|const|struct [a-z_]+ \*)[^;=]*?\b([a-z_0-9]+)\(`)

func main() {
	if err := list(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "functions:", err)
		os.Exit(1)
	}
}

func list(arguments []string) error {
	if len(arguments) != 2 {
		return fmt.Errorf("usage: functions FOLDER OUTPUT")
	}
	files, err := filepath.Glob(filepath.Join(arguments[0], "*.[ch]"))
	if err != nil {
		return err
	}
	inFolders, err := filepath.Glob(filepath.Join(arguments[0], "*/*.[ch]"))
	if err != nil {
		return err
	}
	files = append(files, inFolders...)
	slices.SortFunc(files, func(a, b string) int { return strings.Compare(filepath.Base(a), filepath.Base(b)) })
	var out strings.Builder
	for _, file := range files {
		if err := listFile(&out, file); err != nil {
			return err
		}
	}
	return os.WriteFile(arguments[1], []byte(out.String()), 0o644)
}

func listFile(out *strings.Builder, name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		if m := head.FindStringSubmatch(lines.Text()); m != nil {
			fmt.Fprintf(out, "%s %d %s\n", filepath.Base(name), n, m[1])
		}
	}
	return lines.Err()
}
