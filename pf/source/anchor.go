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
}

func (a *Anchor) equal(other *Anchor) bool {
	return a.Path == other.Path && a.Name == other.Name && a.Text == other.Text && a.Load == other.Load && maps.Equal(a.Files, other.Files) &&
		slices.Equal(a.Macros, other.Macros) && slices.Equal(a.Kept, other.Kept)
}

// Anchors are such rules of several anchors, by path. Each path is there once.
type Anchors []Anchor

// Equal reports whether a and other are the same.
func (a Anchors) Equal(other Anchors) bool {
	return slices.EqualFunc(a, other, func(x, y Anchor) bool { return x.equal(&y) })
}

// Of returns the anchors that define the tables of a path: that anchor, and those that may
// contain it in braces.
func (a Anchors) Of(path string) Anchors {
	return a.Without(func(other string) bool { return other != path && !strings.HasPrefix(path, other+"/") })
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
