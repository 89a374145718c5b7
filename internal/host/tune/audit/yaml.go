package audit

import (
	"errors"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"weir/internal/pattern"
)

// A tree is what the structure of a YAML file says: tasks of Ansible's, states of Salt's,
// lists and maps of settings. Of the lines that it does not use, the reader of lines
// takes care.
type tree struct {
	file   string
	first  int // line before the text's first
	lines  []Line
	used   map[int]bool        // lines that belong to a setting that was found
	passed map[int]bool        // lines that name a setting that cannot be read
	vars   variables           // in force where the walk is
	taken  map[*yaml.Node]bool // keys of settings that were found: a loop may go over them again
	within bool                // below a member whose name says that it has sysctls
}

// readTree reads a text as YAML. found is false if it is none, or if its structure has no
// setting. first is the number of lines before the text.
func readTree(text []string, first int, file string) (t *tree, found bool) {
	t = &tree{file: file, first: first, used: map[int]bool{}, passed: map[int]bool{}, vars: variables{}, taken: map[*yaml.Node]bool{}}
	d := yaml.NewDecoder(strings.NewReader(plainYAML(text)))
	for {
		var n yaml.Node
		switch err := d.Decode(&n); {
		case errors.Is(err, io.EOF):
			return t, len(t.lines) > 0 || len(t.passed) > 0
		case err != nil:
			return nil, false
		case len(n.Content) == 0 || isFlat(n.Content[0]): // sysctl's output has the same form
			continue
		}
		t.walk(n.Content[0])
	}
}

var (
	templateLine  = pattern.New(`^\s*\{[%#].*[%#]\}\s*$`)
	templateValue = pattern.New(`:(\s+)(\{\{[^"]*\}\})\s*$`)
)

// plainYAML returns a text in which Jinja's lines are blank and its values are quoted.
func plainYAML(text []string) string {
	plain := make([]string, len(text))
	for i, line := range text {
		if !templateLine.MatchString(line) {
			plain[i] = templateValue.ReplaceAllString(strings.ReplaceAll(line, "\u00a0", " "), `:$1"$2"`)
		}
	}
	return strings.Join(plain, "\n")
}

// isFlat reports whether a document is only text, or a map or list of nothing else.
func isFlat(n *yaml.Node) bool {
	return !slices.ContainsFunc(n.Content, func(c *yaml.Node) bool { return c.Kind != yaml.ScalarNode })
}

// walk collects the settings below a node. It reports whether there is one.
func (t *tree) walk(n *yaml.Node) (found bool) {
	switch n.Kind {
	case yaml.ScalarNode:
		return t.scalar(n)
	case yaml.SequenceNode:
		for _, c := range n.Content {
			found = t.walk(c) || found
		}
	case yaml.MappingNode:
		return t.mapping(n)
	}
	return found
}

// mapping collects the settings of a map: it is an entry itself, or a task with a module,
// or its keys are settings.
func (t *tree) mapping(n *yaml.Node) (found bool) {
	members := membersOf(n)
	if isAbsent(members) {
		t.give(n)
		return false
	}
	if t.entry(n, members, nil) {
		return true
	}
	outside := t.vars
	t.vars = outside.with(n, "vars")
	defer func() { t.vars = outside.with(n, "set_fact", "ansible.builtin.set_fact") }()
	loop, list := t.loopOf(members)
	var module *yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if value == loop {
			continue
		}
		one := false
		switch args := argumentsOf(key, value); {
		case args != nil && isAbsent(args):
			t.give(value)
		case args != nil && loop != nil && isTemplate(args):
			module, one = value, t.loop(list, args)
			if one {
				t.use(loop)
			}
		case args != nil && t.entry(value, args, nil), isKey(key.Value) && t.keyed(key, value):
			one = true
		case t.within && topForm.MatchString(key.Value) && value.Kind == yaml.MappingNode:
			one = t.nested(key.Value, value)
		default:
			within := t.within
			t.within = within || strings.Contains(strings.ToLower(key.Value), "sysctl")
			one = t.walk(value)
			t.within = within
		}
		if one {
			t.use(key)
			found = true
		}
	}
	switch {
	case loop != nil && module == nil:
		found = t.walk(loop) || found
	case module != nil && found:
		t.use(module)
	}
	for i := 0; found && i+1 < len(n.Content); i += 2 { // a task's title, and its conditions
		if n.Content[i+1].Kind == yaml.ScalarNode || n.Content[i+1] == loop {
			t.use(n.Content[i])
		}
	}
	if name := nameOf(members); name != nil && !found && isKey(name.Value) {
		t.pass(name)
	}
	return found
}

// topForm is the first word of a Linux key, where maps below maps spell it.
var topForm = pattern.New(`^(?:net|kernel|vm|fs|dev)$`)

// nested adds the settings of maps below maps: net, core and rmem_max for net.core.rmem_max.
func (t *tree) nested(before string, n *yaml.Node) (found bool) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		name := &yaml.Node{Kind: yaml.ScalarNode, Value: before + "." + key.Value, Line: key.Line}
		switch {
		case value.Kind == yaml.MappingNode:
			if !t.nested(name.Value, value) {
				continue
			}
		case t.scalarOf(value) == nil || !isKey(name.Value):
			t.pass(name)
			continue
		default:
			t.add(name, t.scalarOf(value).Value, key.Line)
			t.use(value)
		}
		t.use(key)
		found = true
	}
	return found
}

// number returns what Ansible, and NixOS, write for a switch.
func number(value string) string {
	switch strings.ToLower(value) {
	case "true", "yes", "on":
		return "1"
	case "false", "no", "off":
		return "0"
	}
	return value
}

// members are a map's, or those of Salt's list of maps.
type members map[string]*yaml.Node

func membersOf(n *yaml.Node) members {
	m := members{}
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		m[n.Content[i].Value] = n.Content[i+1]
	}
	return m
}

var (
	nameMembers  = []string{"name", "key", "param", "parameter", "sysctl", "setting", "variable"}
	valueMembers = []string{"value", "val"}
	loopMembers  = []string{"loop", "with_items", "with_list", "with_flattened", "with_dict"}
)

// of returns the first member with one of the names.
func (m members) of(names []string) *yaml.Node {
	for _, name := range names {
		if n := m[name]; n != nil {
			return n
		}
	}
	return nil
}

// nameOf returns the scalar that names an entry's setting, nil for none.
func nameOf(m members) *yaml.Node {
	if n := m.of(nameMembers); n != nil && n.Kind == yaml.ScalarNode {
		return n
	}
	return nil
}

// loopOf returns the member that says what a task is repeated for, and that list or map:
// the member itself, or the variable that it names. nil: there is none, or it is not known.
func (t *tree) loopOf(m members) (member, list *yaml.Node) {
	n := m.of(loopMembers)
	if n == nil || n.Kind != yaml.ScalarNode {
		return n, n
	}
	if list = t.variable(n.Value); list == nil || list.Kind == yaml.ScalarNode {
		return nil, nil
	}
	return n, list
}

// isAbsent reports whether a task takes its setting away.
func isAbsent(m members) bool { return m["state"] != nil && m["state"].Value == "absent" }

var (
	moduleForm   = pattern.New(`^(?:[\w.]+\.)?sysctl(?:\.present|\.absent)?$`)
	argumentForm = pattern.New(`([A-Za-z_]+)=("[^"]*"|'[^']*'|\{\{[^}]*\}\}|\S+)`)
)

// argumentsOf returns the arguments of a module that sets sysctls, nil for another member:
// a map, Salt's list of maps, or words like name=net.ipv4.ip_forward.
func argumentsOf(key, value *yaml.Node) members {
	if !moduleForm.MatchString(key.Value) {
		return nil
	}
	m := membersOf(value)
	for _, c := range value.Content {
		if value.Kind == yaml.SequenceNode {
			for name, n := range membersOf(c) {
				m[name] = n
			}
		}
	}
	if value.Kind == yaml.ScalarNode {
		for _, word := range argumentForm.FindAllStringSubmatch(value.Value, -1) {
			m[word[1]] = &yaml.Node{Kind: yaml.ScalarNode, Value: strings.Trim(word[2], `"'`), Line: value.Line}
		}
	}
	if strings.HasSuffix(key.Value, ".absent") {
		m["state"] = &yaml.Node{Kind: yaml.ScalarNode, Value: "absent"}
	}
	if len(m) == 0 {
		return nil
	}
	return m
}

// entry adds the setting of a map with a name and a value. named is the name of Salt's
// state, which counts if no member has one.
func (t *tree) entry(n *yaml.Node, m members, named *yaml.Node) bool {
	name, value := nameOf(m), m.of(valueMembers)
	if name == nil {
		name = named
	}
	if name == nil || value == nil || !isKey(name.Value) {
		return false
	}
	set := t.scalarOf(value)
	if set == nil {
		t.pass(name)
		t.use(n)
		return true
	}
	t.add(name, set.Value, value.Line)
	t.use(n)
	return true
}

// keyed adds the setting of a map's key. Its value is a text, or a map or Salt's state with
// the value.
func (t *tree) keyed(key, value *yaml.Node) bool {
	if set := t.scalarOf(value); set != nil && !moduleForm.MatchString(value.Value) {
		t.add(key, set.Value, key.Line)
		t.use(value)
		return true
	}
	m := membersOf(value)
	for i := 0; value.Kind == yaml.MappingNode && i+1 < len(value.Content); i += 2 {
		if args := argumentsOf(value.Content[i], value.Content[i+1]); args != nil {
			m = args
		}
	}
	if !isAbsent(m) && t.entry(value, m, key) {
		return true
	}
	t.pass(key)
	t.give(value)
	return true
}

var itemForm = pattern.New(`^\{\{\s*item(?:\.(\w+)|\[['"](\w+)['"]\])?\s*\}\}$`)

// isTemplate reports whether a module's name is filled in by a loop.
func isTemplate(args members) bool {
	name := nameOf(args)
	return name != nil && itemForm.MatchString(name.Value)
}

// loop adds the settings of a task that is repeated.
func (t *tree) loop(items *yaml.Node, args members) (found bool) {
	name, value := nameOf(args), args.of(valueMembers)
	if value == nil || value.Kind != yaml.ScalarNode {
		t.give(items)
		return false
	}
	each := func(item *yaml.Node, m members) {
		key, set := t.filledIn(name.Value, item, m), t.filledIn(value.Value, item, m)
		if key == nil || set == nil || !isKey(key.Value) || isAbsent(m) {
			t.give(item)
			return
		}
		t.add(key, set.Value, item.Line)
		t.use(item)
		found = true
	}
	if items.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(items.Content); i += 2 {
			each(items.Content[i], members{"key": items.Content[i], "value": items.Content[i+1]})
			t.use(items.Content[i+1])
		}
		return found
	}
	for _, item := range items.Content {
		each(item, membersOf(item))
	}
	return found
}

// filledIn returns what a module's argument is for an item of its loop, nil if that is not
// known.
func (t *tree) filledIn(template string, item *yaml.Node, m members) *yaml.Node {
	n := item
	if form := itemForm.FindStringSubmatch(template); form == nil {
		n = &yaml.Node{Kind: yaml.ScalarNode, Value: template}
	} else if form[1]+form[2] != "" {
		n = m[form[1]+form[2]]
	}
	return t.scalarOf(n)
}

var lineArgument = pattern.New(`(?:^|\s)line=("[^"]*"|'[^']*'|\S+)`)

// scalar adds the settings of a text: a command, or lines of a configuration file.
func (t *tree) scalar(n *yaml.Node) (found bool) {
	at := n.Line
	if n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		at++
	}
	for i, text := range strings.Split(n.Value, "\n") {
		text = strings.TrimSpace(text)
		if m := lineArgument.FindStringSubmatch(text); m != nil {
			text = strings.Trim(m[1], `"'`)
		}
		for inner := unwrapped(text); inner != text; inner = unwrapped(text) {
			text = inner
		}
		lines := readCommand(text, t.file)
		if lines == nil {
			lines = readCard(text)
		}
		if m := settingForm.FindStringSubmatch(text); m != nil && isKey(m[2]) {
			lines = []Line{{Key: plainKey(m[2]), Value: strings.Trim(m[4], `"'`), Off: m[1] != ""}}
		}
		for _, l := range lines {
			l.File, l.Line = t.file, t.first+at+i
			t.lines = append(t.lines, l)
			t.used[l.Line] = true
			found = true
		}
	}
	return found
}

// add adds a setting, unless it is there already.
func (t *tree) add(key *yaml.Node, value string, line int) {
	if !t.taken[key] {
		t.lines = append(t.lines, Line{File: t.file, Line: t.first + line, Key: plainKey(key.Value), Value: number(value)})
	}
	t.taken[key] = true
}

// use notes the lines of a node as belonging to a setting that was found.
func (t *tree) use(n *yaml.Node) {
	t.used[t.first+n.Line] = true
	for _, c := range n.Content {
		t.use(c)
	}
}

// pass notes that a line names a setting that cannot be read.
func (t *tree) pass(n *yaml.Node) {
	t.used[t.first+n.Line], t.passed[t.first+n.Line] = true, true
}

// give gives a node up: each of its lines that names a setting is passed over.
func (t *tree) give(n *yaml.Node) {
	t.used[t.first+n.Line] = true
	if n.Kind == yaml.ScalarNode && mentionForm.MatchString(n.Value) {
		t.pass(n)
	}
	for _, c := range n.Content {
		t.give(c)
	}
}

var fenceForm = pattern.New("^\\s*(```|~~~)\\s*\\{?\\.?(\\w*)")

// readTrees reads a text as YAML, or the parts of a page that a fence encloses.
func readTrees(text []string, file string) []*tree {
	if t, found := readTree(text, 0, file); found {
		return []*tree{t}
	}
	var trees []*tree
	start := -1
	for i, line := range text {
		switch m := fenceForm.FindStringSubmatch(line); {
		case m == nil:
		case start < 0:
			start = i + 1
		default:
			if t, found := readTree(text[start:i], start, file); found {
				trees = append(trees, t)
			}
			start = -1
		}
	}
	return trees
}
