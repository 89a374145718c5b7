package compare

import (
	"fmt"
	"strings"

	"weir/pf/ast"
	"weir/pf/printer"
	"weir/pf/resolve"
	"weir/pf/token"
)

// A setting is the value of an option, and the place that sets it.
type setting struct {
	value string
	pos   token.Pos
}

// options compares the set statements.
func options(before, after *resolve.Ruleset) []Change {
	was, oldOrder := settings(before)
	is, order := settings(after)
	for _, name := range oldOrder {
		if _, ok := is[name]; !ok {
			order = append(order, name)
		}
	}
	var changes []Change
	for _, name := range order {
		old, hadOld := was[name]
		now, hasNow := is[name]
		if old.value == now.value && hadOld == hasNow {
			continue
		}
		c := Change{Kind: Option, Old: old.value, New: now.value, Place: position(after, now.pos)}
		if !hasNow {
			c.Place = position(before, old.pos)
		}
		c.Words = fmt.Sprintf("option %s is %s, was %s", name, orDefault(now.value, hasNow), orDefault(old.value, hadOld))
		changes = append(changes, c)
	}
	return changes
}

func orDefault(value string, set bool) string {
	switch {
	case !set:
		return "the default"
	case value == "":
		return "set"
	}
	return value
}

// settings returns the values of the options that a configuration sets, by name, and the
// names in order.
func settings(of *resolve.Ruleset) (map[string]setting, []string) {
	values := map[string]setting{}
	var order []string
	for _, s := range of.Source.Stmts {
		for line := range strings.Lines(text(of, s)) {
			name, value, ok := split(strings.TrimSuffix(line, "\n"))
			if !ok {
				continue
			}
			if _, again := values[name]; !again {
				order = append(order, name)
			}
			values[name] = setting{value, s.Start()}
		}
	}
	return values, order
}

// ofTwoWords are the options whose names have a second word.
var ofTwoWords = map[string]bool{"timeout": true, "limit": true, "skip": true, "interface-group": true, "gateway": true}

// split takes a printed set statement apart.
func split(line string) (name, value string, ok bool) {
	rest, ok := strings.CutPrefix(line, "set ")
	if !ok {
		return "", "", false
	}
	name, value, _ = strings.Cut(rest, " ")
	if ofTwoWords[name] {
		second, behind, _ := strings.Cut(value, " ")
		name, value = name+" "+second, behind
	}
	return name, value, true
}

// text prints one statement.
func text(of *resolve.Ruleset, s ast.Stmt) string {
	var b strings.Builder
	_ = printer.Fprint(&b, &ast.File{Files: of.Source.Files, Stmts: []ast.Stmt{s}}) // a Builder does not fail
	return b.String()
}
