package audit

import (
	"maps"
	"strings"

	"go.yaml.in/yaml/v3"

	"weir/internal/pattern"
)

// variables are those of Ansible's that stand in the same file, by their names.
type variables map[string]variable

// variable is a variable's value. The keys are its own name and that of its map.
type variable struct {
	value *yaml.Node
	keys  []*yaml.Node
}

// with returns the variables and those of a member that is a map, which come first.
func (v variables) with(n *yaml.Node, member ...string) variables {
	all := v
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		head, set := n.Content[i], n.Content[i+1]
		for _, name := range member {
			if head.Value != name || set.Kind != yaml.MappingNode {
				continue
			}
			all = maps.Clone(all)
			for k := 0; k+1 < len(set.Content); k += 2 {
				all[set.Content[k].Value] = variable{set.Content[k+1], []*yaml.Node{head, set.Content[k]}}
			}
		}
	}
	return all
}

// variableForm is a template of a variable alone, perhaps with filters that leave its values
// as they are.
var variableForm = pattern.New(`^\{\{\s*(\w+)(?:\s*\|\s*(?:dict2items|list|string|int|default\([^)]*\)))*\s*\}\}$`)

// variable returns the value of the variable that a template names, nil if it is not known.
// The lines with its name belong to the setting then.
func (t *tree) variable(template string) *yaml.Node {
	form := variableForm.FindStringSubmatch(template)
	if form == nil {
		return nil
	}
	found := t.vars[form[1]]
	for _, key := range found.keys {
		t.use(key)
	}
	return found.value
}

// scalarOf returns a scalar without templates: the node, or the variable that it names. nil:
// it is not known.
func (t *tree) scalarOf(n *yaml.Node) *yaml.Node {
	if n != nil && n.Kind == yaml.ScalarNode && strings.Contains(n.Value, "{{") {
		n = t.variable(n.Value)
	}
	if n == nil || n.Kind != yaml.ScalarNode || strings.Contains(n.Value, "{{") {
		return nil
	}
	return n
}
