// Command gen writes the numbers that a C header defines as Go constants.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"go/format"
	"log"
	"os"
	"regexp"
	"strings"
)

func main() {
	header := flag.String("header", "", "C header to read")
	target := flag.String("go", "", "Go file to write")
	flag.Parse()
	if err := run(*header, *target); err != nil {
		log.Fatal(err)
	}
}

func run(header, target string) error {
	text, err := os.ReadFile(header)
	if err != nil {
		return err
	}
	source, err := goSource(text)
	if err != nil {
		return err
	}
	return os.WriteFile(target, source, 0o644)
}

var (
	define  = regexp.MustCompile(`(?m)^#define ([A-Z][A-Z0-9_]*)[ \t]+(.*)$`)
	comment = regexp.MustCompile(`/\*.*`)
	// A number in C, with its suffix, or a name.
	word = regexp.MustCompile(`0x[0-9a-fA-F]+[uUlL]*|[0-9]+[uUlL]*|[A-Z][A-Z0-9_]*`)
	// What Go and C compute alike.
	shared = regexp.MustCompile(`^(` + word.String() + `|[()+\-*|<>\s])+$`)
)

// goSource translates the definitions whose values are numbers.
func goSource(header []byte) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("// Code generated from bpf/config.h by internal/fw/limits/gen; DO NOT EDIT.\n\npackage limits\n\n// See bpf/config.h.\nconst (\n")
	count := 0
	for _, d := range define.FindAllSubmatch(header, -1) {
		value := strings.TrimSpace(comment.ReplaceAllString(string(d[2]), ""))
		if !shared.MatchString(value) {
			continue
		}
		fmt.Fprintf(&b, "%s = %s\n", goName(string(d[1])), word.ReplaceAllStringFunc(value, goWord))
		count++
	}
	if count == 0 {
		return nil, fmt.Errorf("the header defines no number")
	}
	b.WriteString(")\n")
	return format.Source(b.Bytes())
}

func goWord(w string) string {
	if w[0] >= 'A' {
		return goName(w)
	}
	return strings.TrimRight(w, "uUlL")
}

// goName makes MaxStates of MAX_STATES.
func goName(c string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(c, "_") {
		if part != "" {
			b.WriteString(part[:1] + strings.ToLower(part[1:]))
		}
	}
	return b.String()
}
