package source

import (
	"fmt"
	"path/filepath"
	"strings"
)

// Input is a configuration before it is read.
type Input struct {
	Name   string // as messages call the first file
	Text   []byte
	Macros []Macro
	Files  Opener // nil: statements that name a file are refused

	// Known says whether what a table holds is known without its files, which
	// may then be missing; nil: of no table.
	Known func(table string) bool
}

// Macro is a macro that is set from outside; the file cannot change it.
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
	// Open reads the file that Path has called name. Of a file of more than
	// limit bytes it may give limit+1.
	Open(name string, limit int) ([]byte, error)
}

// From is how the first file would name a file that the file from names as
// name: what is printed of a configuration is one file.
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

// Path is where the file is that the file from names as name: what is not
// absolute is beside from.
func Path(from, name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(filepath.Dir(from), name)
}
