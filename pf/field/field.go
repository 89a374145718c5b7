package field

import "strings"

// A Field is one thing that a rule can say.
type Field struct {
	// Path is the field of ast.Rule. "Set.Prio" is the field Prio of its field Set.
	// Path is empty for fields of resolve.Rule only.
	Path string
	// Word is the name in messages.
	Word string
	// Rule names the fields of resolve.Rule that this becomes, separated by spaces.
	// It is empty if resolve.Rule has none.
	Rule string
	// Enforced reports whether the dataplane does it. A field that is not enforced is
	// read, gets a warning, and is refused by a load.
	Enforced bool
	Anchor   Anchor
	Lint     Lint
	Optimize Class
}

// Anchor says what happens to an anchor's field when the anchor's rules are evaluated
// without it.
type Anchor uint8

// What happens to a field of an anchor.
const (
	Apart  Anchor = iota // the anchor's rules cannot be evaluated without it
	Folded               // each rule of the anchor asks for it too
	Idle                 // it does not affect the anchor's rules
)

// Lint says how a field counts when the linter asks whether one rule leaves any packet to
// another.
type Lint uint8

// How a field counts for the linter.
const (
	Narrows  Lint = iota // packets may miss the rule because of it
	Compared             // the linter compares it
	Effect               // it selects no packets
)

// Class says what a field of ast.Rule means to the optimizer. The classes, and the fields
// of each, are those of OpenBSD's pfctl_optimize.c.
type Class uint8

// Classes of the optimizer.
const (
	AsClause Class = iota // for a part: the class of its clause
	Barrier               // a rule with it stands alone and never moves
	Breaks                // rules of one superblock must agree in it
	NoMerge               // rules that cover each other, or are joined, must agree in it
	Marks                 // like Breaks, but only its presence counts
	Asked                 // compared by the optimizer's code: one rule may cover another
	Ignored               // never compared
)

// Names returns the fields of resolve.Rule that the field becomes.
func (f *Field) Names() []string { return strings.Fields(f.Rule) }

// At returns the field at a path of ast.Rule. It panics if there is none, because paths
// are constants in the source.
func At(path string) *Field {
	for i := range all {
		if all[i].Path == path && path != "" {
			return &all[i]
		}
	}
	panic("field: the list has no path " + path)
}

// All returns the list. Callers must not change it.
func All() []Field { return all }
