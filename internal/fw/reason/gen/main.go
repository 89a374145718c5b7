// Command gen writes internal/fw/reason/reason_gen.go and the table of reasons in
// docs/packet-path.md from bpf/observe/reason.h.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
)

func main() {
	header := flag.String("header", "", "the C header to read")
	goFile := flag.String("go", "", "the Go file to write")
	docFile := flag.String("doc", "", "the document whose table is replaced")
	flag.Parse()
	if err := run(*header, *goFile, *docFile); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(header, goFile, docFile string) error {
	l, err := readHeader(header)
	if err != nil {
		return err
	}
	source, err := l.goSource()
	if err != nil {
		return err
	}
	doc, err := os.ReadFile(docFile)
	if err != nil {
		return fmt.Errorf("read document: %w", err)
	}
	doc, err = l.inDocument(doc)
	if err != nil {
		return fmt.Errorf("%s: %w", docFile, err)
	}
	if err := writeChanged(goFile, source); err != nil {
		return err
	}
	return writeChanged(docFile, doc)
}

func readHeader(path string) (*list, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read header: %w", err)
	}
	l, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return l, nil
}

// writeChanged leaves a file that is right already untouched, so that make
// does not take it for newer.
func writeChanged(path string, text []byte) error {
	old, err := os.ReadFile(path)
	if err == nil && bytes.Equal(old, text) {
		return nil
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		return fmt.Errorf("write generated file: %w", err)
	}
	return nil
}
