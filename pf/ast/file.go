package ast

import "weir/pf/token"

// File is a configuration.
type File struct {
	Files    *token.FileSet // its sources
	Stmts    []Stmt
	Comments []Comment
}

// Comment is a comment, from # to the end of the line.
type Comment struct {
	token.Span
	Text string
}

// Stmt is a statement: *Macro, *Timeout, *Limit, *BlockPolicy, *Skip,
// *ImplicitPass, *Table, *Rule or *Antispoof.
type Stmt interface {
	Start() token.Pos
	Whole() token.Span
}

// Word is a name or value and where it stands.
type Word struct {
	token.Span
	Text string
}

// Macro is the definition of a macro: name = "value".
type Macro struct {
	token.Span
	Name  Word
	Value string
}

// Timeout is set timeout.
type Timeout struct {
	token.Span
	Items []Setting
}

// Limit is set limit.
type Limit struct {
	token.Span
	Items []Setting
}

// Setting is a name and its number.
type Setting struct {
	Name  Word
	Value Word
	Count uint32 // Value as a number
}

// BlockPolicy is set block-policy.
type BlockPolicy struct {
	token.Span
	Policy Word
}

// ImplicitPass is set implicit-pass, which pf does not have.
type ImplicitPass struct {
	token.Span
	Yes bool
}

// Skip is set skip on.
type Skip struct {
	token.Span
	Interfaces []Interface
}

// Table is the definition of a table.
type Table struct {
	token.Span
	Name    Word
	Const   bool
	Persist bool
	Listed  bool // there is at least one list, if an empty one
	Hosts   []Host
}

// Antispoof stands for the rules that block packets with an interface's
// addresses that do not come in by it.
type Antispoof struct {
	token.Span
	Quick      bool
	Log        *Log
	Interfaces []AntispoofInterface
	Family     Family
	Label      *Word
	MoreLabels []Word
	Identifier *Word
}

// AntispoofInterface is an interface of antispoof.
type AntispoofInterface struct {
	Interface
	Dynamic bool // in parentheses: follow its addresses
}
