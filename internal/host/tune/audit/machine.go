package audit

import (
	"html"
	"strings"

	"weir/internal/host/tune/db"
	"weir/internal/pattern"
)

// xmlEntry is the state of a firewall's config.xml: the entry of its tunables that a line
// is in.
type xmlEntry struct {
	inside bool // between the root's tags
	list   bool // in the list of tunables
	key    string
	at     int
	value  *string
}

var (
	xmlRoot    = pattern.New(`^(?:<\?xml[^>]*>\s*)?<(opnsense|pfsense)\b[^>]*>`) // elsewhere in a line it is a placeholder
	xmlRootEnd = pattern.New(`</(opnsense|pfsense)>`)
	xmlList    = pattern.New(`<sysctl\b[^>]*[^/]>|<sysctl>`)
	xmlListEnd = pattern.New(`</sysctl>`)
	xmlPart    = pattern.New(`<tunable>\s*([^<\s]+)\s*</tunable>|<value>\s*(?:<!\[CDATA\[)?([^<\]]*?)(?:\]\]>)?\s*</value>|<value\s*/>|</?item\b[^>]*>`)
)

// line returns the tunables of a line. An entry without a value has the firewall's own,
// as one with the value default. Of the rest of config.xml nothing sets a tunable.
func (x *xmlEntry) line(n int, text string) (found []Line, understood bool) {
	if xmlRoot.MatchString(text) {
		x.inside = true
	}
	if (x.inside || strings.HasPrefix(text, "<sysctl")) && xmlList.MatchString(text) {
		x.list = true
	}
	if !x.inside && !x.list {
		return nil, false
	}
	if x.list {
		found = x.parts(n, text)
	}
	if xmlListEnd.MatchString(text) {
		x.list = false
	}
	if xmlRootEnd.MatchString(text) {
		*x = xmlEntry{}
	}
	return found, true
}

// parts returns the tunables of a line in the list.
func (x *xmlEntry) parts(n int, text string) (found []Line) {
	for _, m := range xmlPart.FindAllStringSubmatch(text, -1) {
		switch {
		case strings.HasPrefix(m[0], "<item"), strings.HasPrefix(m[0], "</item"):
			x.key, x.value = "", nil
		case m[1] != "":
			x.key, x.at = m[1], n
		default:
			value := html.UnescapeString(m[2])
			if value == "" {
				value = asShipped
			}
			x.value = &value
		}
		if x.key != "" && x.value != nil {
			found = append(found, Line{Key: x.key, Value: *x.value, Line: x.at})
			x.key, x.value = "", nil
		}
	}
	return found
}

// asShipped is the value of a tunable that the firewall sets by itself.
const asShipped = "default"

// task is the state of an Ansible or Salt file: the key whose value comes next.
type task struct {
	key  string
	left int // lines until the key is forgotten
	chef bool

	value  int // line of the value that the task had, 0 if none
	undone int // line of the value that the task's state takes back, 0 if none

	before string // a value whose key has not come yet
	at     int    // line of that value, 0 if none
	taken  int    // line of a value that its key has taken, 0 if none
}

var (
	inlineTask = pattern.New(`^-\s*\{\s*["']?(?:name|key|param|sysctl)["']?\s*:\s*["']?(` + dotted + `)["']?\s*,\s*["']?(?:value|val)["']?\s*:\s*["']?([^"',}]+?)["']?\s*[,}]`)
	taskKey    = pattern.New(`^(?:-\s*)?(?:name|key|param|sysctl)\s*:\s*["']?(` + dotted + `)["']?$`)
	stateKey   = pattern.New(`^["']?(` + dotted + `)["']?:$`)
	taskAbsent = pattern.New(`["']?\bstate["']?\s*:\s*["']?absent\b`)
	taskValue  = pattern.New(`^(?:-\s*)?(?:value|val)\s*(?::|=>)\s*["']?([^"'{}]+?)["']?,?$`)

	// Puppet's resources, on one line and on several.
	resource    = pattern.New(`^sysctl(?:::\w+)?\s*\{\s*["'](` + dotted + `)["']\s*:\s*.*\bvalue\s*=>\s*["']?([^"',}]+?)["']?\s*[,}].*$`)
	resourceKey = pattern.New(`^sysctl(?:::\w+)?\s*\{\s*["'](` + dotted + `)["']\s*:$`)

	// Chef's resources.
	chefKey   = pattern.New(`^sysctl(?:_param)?\s+["'](` + dotted + `)["']\s+do$`)
	chefValue = pattern.New(`^value\s+["']?([^"'{}]+?)["']?$`)
)

// line returns the setting that a line completes. If the task says after it that the
// setting has to be absent, undone is the setting's line. A value may also come before its
// key.
func (t *task) line(n int, text string) (found []Line, understood bool) {
	if m := inlineTask.FindStringSubmatch(text); m != nil && isKey(m[1]) {
		if taskAbsent.MatchString(text) {
			return nil, true
		}
		return []Line{{Key: db.Dotted(m[1]), Value: m[2], Line: n}}, true
	}
	if m := resource.FindStringSubmatch(text); m != nil && isKey(m[1]) && !strings.Contains(text, "absent") {
		return []Line{{Key: m[1], Value: m[2], Line: n}}, true
	}
	if strings.HasPrefix(text, "-") {
		t.value, t.at = 0, 0
	}
	for _, form := range []*pattern.Pattern{taskKey, stateKey, resourceKey, chefKey} {
		if m := form.FindStringSubmatch(text); m != nil && isKey(m[1]) {
			if form == taskKey && t.at > 0 && n-t.at <= linesOfTask {
				found = []Line{{Key: m[1], Value: t.before, Line: n}}
				*t = task{value: n, taken: t.at}
				return found, true
			}
			*t = task{key: m[1], left: linesOfTask, chef: form == chefKey}
			return nil, true
		}
	}
	if at := taskAbsent.FindStringIndex(text); at != nil && at[0] == 0 && (t.key != "" || t.value > 0) {
		*t = task{undone: t.value}
		return nil, true
	}
	if t.key == "" {
		if m := taskValue.FindStringSubmatch(text); m != nil {
			t.before, t.at = m[1], n
		}
		return nil, false
	}
	form := taskValue
	if t.chef {
		form = chefValue
	}
	if m := form.FindStringSubmatch(text); m != nil {
		found = []Line{{Key: t.key, Value: m[1], Line: n}}
		*t = task{value: n}
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
func isKey(word string) bool { return systemForm.MatchString(plainKey(word)) }

// plainKey returns a key with dots. It may be a file's name below /proc/sys.
func plainKey(word string) string { return db.Dotted(strings.TrimPrefix(word, "/proc/sys/")) }
