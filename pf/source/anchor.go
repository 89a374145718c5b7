package source

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Anchor is the rules that a user or a program has loaded into an anchor at run time. They
// take the place of those that the configuration has for it.
type Anchor struct {
	Path  string `json:"path"` // from the main ruleset, as "a/b"
	Name  string `json:"name"` // of its file, for messages
	Text  string `json:"text"`
	Files Files  `json:"files,omitempty"` // that it names
	Load  uint64 `json:"load,omitempty"`  // tells loads of rules with once apart

	Macros []Macro `json:"macros,omitempty"` // set from outside, for Text alone

	// Kept are definitions of persistent tables that earlier rules of the anchor had. They
	// hold for tables that Text does not define. As in pf, such tables stay.
	Kept []string `json:"kept,omitempty"`

	// Flushed are the kinds of its rules that were flushed. The other kinds are in force.
	Flushed []Kind `json:"flushed,omitempty"`
	// Elsewhere says that its rules stand in the configuration, or in braces in those of another
	// anchor. Then there is no Text.
	Elsewhere bool `json:"elsewhere,omitempty"`
}

// A Kind of rules is what pfctl -F removes from an anchor by itself.
type Kind string

// The kinds of rules, in pfctl's words.
const (
	FilterRules      Kind = "rules" // with FreeBSD's scrub rules
	TranslationRules Kind = "nat"
	EtherRules       Kind = "ethernet"
)

func (a *Anchor) equal(other *Anchor) bool {
	return a.sameText(other) && slices.Equal(a.Flushed, other.Flushed)
}

func (a *Anchor) sameText(other *Anchor) bool {
	return a.Path == other.Path && a.Name == other.Name && a.Text == other.Text && a.Load == other.Load && maps.Equal(a.Files, other.Files) &&
		slices.Equal(a.Macros, other.Macros) && slices.Equal(a.Kept, other.Kept) && a.Elsewhere == other.Elsewhere
}

// Anchors are such rules of several anchors, by path. Each path is there once.
type Anchors []Anchor

// Equal reports whether a and other are the same.
func (a Anchors) Equal(other Anchors) bool {
	return slices.EqualFunc(a, other, func(x, y Anchor) bool { return x.equal(&y) })
}

// SameTables reports whether what defines the tables of a path is the same in a and other: that
// anchor, and those that may contain it in braces. A flush of rules leaves tables alone.
func (a Anchors) SameTables(other Anchors, path string) bool {
	return slices.EqualFunc(a.definers(path), other.definers(path), func(x, y Anchor) bool { return x.sameText(&y) })
}

func (a Anchors) definers(path string) Anchors {
	return slices.DeleteFunc(slices.Clone(a), func(x Anchor) bool {
		return x.Elsewhere || x.Path != path && !strings.HasPrefix(path, x.Path+"/")
	})
}

// At returns the anchor of a path, or nil.
func (a Anchors) At(path string) *Anchor {
	if i := slices.IndexFunc(a, func(x Anchor) bool { return x.Path == path }); i >= 0 {
		return &a[i]
	}
	return nil
}

// With returns the anchors with one more, in place of that of the same path.
func (a Anchors) With(one Anchor) Anchors {
	all := a.Without(func(path string) bool { return path == one.Path })
	at, _ := slices.BinarySearchFunc(all, one.Path, func(x Anchor, path string) int { return cmp.Compare(x.Path, path) })
	return slices.Insert(all, at, one)
}

// Without returns a copy of the anchors without those of the paths for which is returns
// true.
func (a Anchors) Without(is func(path string) bool) Anchors {
	return slices.DeleteFunc(slices.Clone(a), func(x Anchor) bool { return is(x.Path) })
}

// maxAnchorPath is the longest path of an anchor in bytes, as in pf (MAXPATHLEN).
const maxAnchorPath = 1023

// ParseAnchor reads the path of one anchor. A / at its beginning means the same as none. If
// all is allowed, /* at the end means all anchors directly in the one before it, and below.
func ParseAnchor(path string, allowAll bool) (name string, all bool, err error) {
	name = strings.TrimPrefix(path, "/")
	if allowAll {
		name, all = strings.CutSuffix(name, "*")
		if all && name != "" && !strings.HasSuffix(name, "/") {
			return "", false, fmt.Errorf("the path %q of an anchor has a * that is not a name", path)
		}
		name = strings.TrimSuffix(name, "/")
	}
	if all && name == "" {
		return "", true, nil
	}
	if len(name) > maxAnchorPath {
		return "", false, fmt.Errorf("the path of an anchor has %d bytes; %d are possible", len(name), maxAnchorPath)
	}
	for part := range strings.SplitSeq(name, "/") {
		switch {
		case part == "", part == "*", part == ".", part == "..":
			return "", false, fmt.Errorf("%q is no path of an anchor: names with / between them", path)
		case strings.ContainsFunc(part, func(r rune) bool { return r < ' ' || r == '"' || r == '\\' || r == 0x7f }):
			return "", false, fmt.Errorf("the path %q of an anchor has a character that no name has", path)
		}
	}
	return name, all, nil
}
