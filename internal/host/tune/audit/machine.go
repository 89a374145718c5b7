package audit

import (
	"html"
	"regexp"

	"weir/internal/host/tune/db"
)

// xmlEntry is the state of a firewall's config.xml: the entry of its tunables that a line
// is in.
type xmlEntry struct {
	inside bool // between the root's tags
	list   bool // in the list of tunables
	key    string
	at     int
}

var (
	xmlRoot    = regexp.MustCompile(`<(opnsense|pfsense)\b[^>]*>`)
	xmlList    = regexp.MustCompile(`<sysctl\b[^>]*[^/]>|<sysctl>`)
	xmlListEnd = regexp.MustCompile(`</sysctl>`)
	xmlPart    = regexp.MustCompile(`<tunable>\s*([^<\s]+)\s*</tunable>|<value>\s*(?:<!\[CDATA\[)?([^<\]]*?)(?:\]\]>)?\s*</value>|<value\s*/>`)
)

// line returns the tunables of a line. An entry without a value has the firewall's own,
// as one with the value default. Of the rest of config.xml nothing sets a tunable.
func (x *xmlEntry) line(n int, text string) (found []Line, understood bool) {
	if xmlRoot.MatchString(text) {
		x.inside = true
	}
	if !x.inside && !x.list && !xmlList.MatchString(text) {
		return nil, false
	}
	if xmlList.MatchString(text) {
		x.list = true
	}
	if !x.list {
		return nil, true
	}
	for _, m := range xmlPart.FindAllStringSubmatch(text, -1) {
		switch {
		case m[1] != "":
			x.key, x.at = m[1], n
		case x.key != "":
			value := html.UnescapeString(m[2])
			if value == "" {
				value = asShipped
			}
			found = append(found, Line{Key: x.key, Value: value, Line: x.at})
			x.key = ""
		}
	}
	if xmlListEnd.MatchString(text) {
		x.list = false
	}
	return found, true
}

// asShipped is the value of a tunable that the firewall sets by itself.
const asShipped = "default"

// task is the state of an Ansible or Salt file: the key whose value comes next.
type task struct {
	key  string
	left int // lines until the key is forgotten
}

var (
	inlineTask = regexp.MustCompile(`^-\s*\{\s*["']?(?:name|key|param|sysctl)["']?\s*:\s*["']?(` + dotted + `)["']?\s*,\s*["']?(?:value|val)["']?\s*:\s*["']?([^"',}]+?)["']?\s*[,}]`)
	taskKey    = regexp.MustCompile(`^(?:-\s*)?(?:name|key|param|sysctl)\s*:\s*["']?(` + dotted + `)["']?$`)
	stateKey   = regexp.MustCompile(`^["']?(` + dotted + `)["']?:$`)
	taskValue  = regexp.MustCompile(`^(?:-\s*)?(?:value|val)\s*:\s*["']?([^"'{}]+?)["']?$`)
)

// line returns the setting that a line completes.
func (t *task) line(n int, text string) (found []Line, understood bool) {
	if m := inlineTask.FindStringSubmatch(text); m != nil && isKey(m[1]) {
		return []Line{{Key: db.Dotted(m[1]), Value: m[2], Line: n}}, true
	}
	for _, form := range []*regexp.Regexp{taskKey, stateKey} {
		if m := form.FindStringSubmatch(text); m != nil && isKey(m[1]) {
			t.key, t.left = m[1], linesOfTask
			return nil, true
		}
	}
	if t.key == "" {
		return nil, false
	}
	if m := taskValue.FindStringSubmatch(text); m != nil {
		found = []Line{{Key: t.key, Value: m[1], Line: n}}
		t.key = ""
		return found, true
	}
	if t.left--; t.left == 0 {
		t.key = ""
	}
	return nil, t.key != ""
}

// linesOfTask is how many lines after its name a task's value may come.
const linesOfTask = 4

// isKey reports whether a word in a task is a kernel's key: tasks also have names with
// dots.
func isKey(word string) bool { return systemForm.MatchString(word) }
