package ast

import "weir/pf/token"

// File is a configuration.
type File struct {
	Files    *token.FileSet // its sources
	Stmts    []Stmt
	Comments []Comment
	// Fingerprints is the file of set fingerprints, or of pf. It is read if a rule asks for
	// an operating system; nil: no rule does, or there is none.
	Fingerprints *token.File
	Partial      bool // there are errors, so statements may be missing
}

// Comment is a comment, from # to the end of the line.
type Comment struct {
	token.Span
	Text string
}

// Stmt is a statement: *Macro, *Table, *Rule, *Antispoof or one of the set
// statements in option.go.
type Stmt interface {
	Start() token.Pos
	Whole() token.Span
}

// Word is a name or value with its place.
type Word struct {
	token.Span
	Text string
}

// Macro is the definition of a macro: name = "value".
type Macro struct {
	token.Span
	Name  Word
	Value string
	Used  bool // somewhere in the configuration
}

// Antispoof is expanded to rules that block packets with an interface's addresses that
// arrive elsewhere.
type Antispoof struct {
	token.Span
	Quick      bool
	Log        *Log
	Interfaces []AntispoofInterface
	Family     Family
	Label      *Word
	MoreLabels []Word
	Identifier *Word
	RTable     *Count
}

// AntispoofInterface is an interface of antispoof.
type AntispoofInterface struct {
	Interface
	Dynamic bool // in parentheses: follow its addresses
}
