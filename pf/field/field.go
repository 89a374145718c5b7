package field

import "strings"

// A Field is one thing that a rule can say.
type Field struct {
	// Path is the field of ast.Rule; "Set.Prio" is a field of its field Set. It
	// is empty for what only resolve.Rule has.
	Path string
	// Word is what it is called in messages.
	Word string
	// Rule names the fields of resolve.Rule that it becomes, with a space between
	// them. It is empty for what resolve.Rule does not have.
	Rule string
	// Enforced says that the dataplane does it. What is not enforced is read,
	// warned of, and refused when it is loaded.
	Enforced bool
	Anchor   Anchor
	Lint     Lint
	Optimize Class
}

// Anchor says what becomes of a field of an anchor when its rules are judged
// without it.
type Anchor uint8

// What becomes of a field of an anchor.
const (
	Apart  Anchor = iota // the anchor's rules cannot be judged without it
	Folded               // each of the anchor's rules asks for it, too
	Idle                 // it says nothing of the anchor's rules
)

// Lint says how a field counts when the linter asks whether one rule leaves no
// packet to another.
type Lint uint8

// How a field counts for the linter.
const (
	Narrows  Lint = iota // packets may pass the rule by because of it
	Compared             // the linter compares it
	Effect               // it does not choose packets
)

// Class says what a field of ast.Rule means to the optimizer. The classes are
// those of OpenBSD's pfctl_optimize.c, and so is what is of which.
type Class uint8

// Classes of the optimizer.
const (
	AsClause Class = iota // of a part: what its clause is
	Barrier               // a rule that has it stands alone and is never moved
	Breaks                // rules of one superblock have the same
	NoMerge               // rules that cover each other, or become one, have the same
	Marks                 // like Breaks, but only whether it is there
	Asked                 // compared by the optimizer's own code: one rule may cover another
	Ignored               // not compared at all
)

// Names are the fields of resolve.Rule that a field becomes.
func (f *Field) Names() []string { return strings.Fields(f.Rule) }

// At returns the field at a path of ast.Rule. It panics where there is none: paths
// are written in the source.
func At(path string) *Field {
	for i := range all {
		if all[i].Path == path && path != "" {
			return &all[i]
		}
	}
	panic("field: the list has no path " + path)
}

// All returns the list. It is not the caller's to change.
func All() []Field { return all }
