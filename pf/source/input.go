package source

import (
	"fmt"
	"path/filepath"
	"strings"
)

// Input is a configuration before it is read.
type Input struct {
	Name   string // the first file's name in messages
	Text   []byte
	Macros []Macro
	Files  Opener // nil: statements that name a file are refused

	Anchors Anchors // loaded at run time

	// Known reports whether a table's contents are known without its files. Then the
	// files may be missing. If Known is nil, no table's contents are known.
	Known func(table string) bool
}

// Macro is a macro set from outside. The file cannot change it.
type Macro struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// ParseMacro reads name=value.
func ParseMacro(s string) (Macro, error) {
	name, value, ok := strings.Cut(s, "=")
	if !ok || name == "" || strings.Trim(name, nameChars) != "" {
		return Macro{}, fmt.Errorf("%q is not of the form macro=value", s)
	}
	return Macro{Name: name, Value: value}, nil
}

// nameChars are the characters of a macro's name.
const nameChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"

// Opener returns the texts of files.
type Opener interface {
	// Open reads the file with the name that Path returned. If the file is longer
	// than limit bytes, Open may return limit+1 bytes.
	Open(name string, limit int) ([]byte, error)
}

// From returns the name that the first file would use for a file that from calls name. So
// printed output is one file.
func From(first, from, name string) string {
	path := Path(from, name)
	if path == Path(first, name) || filepath.IsAbs(path) != filepath.IsAbs(first) {
		return name
	}
	beside, err := filepath.Rel(filepath.Dir(first), path)
	if err != nil {
		return path
	}
	return beside
}

// Path returns the path of the file that from calls name. Relative names are relative to
// from.
func Path(from, name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(filepath.Dir(from), name)
}
