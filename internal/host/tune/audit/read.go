package audit

import (
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"weir/internal/host/tune/db"
	"weir/internal/pattern"
)

// A Line is one line that sets something.
type Line struct {
	File  string `json:"file"`
	Line  int    `json:"line"`
	Key   string `json:"key"`
	Value string `json:"value"`
	Off   bool   `json:"off"` // it is commented out

	Quoted bool `json:"quoted,omitempty"` // a sentence names it
	Blanks bool `json:"blanks,omitempty"` // a command has blanks around its equals sign: it sets nothing
}

// A Passed is a line that says something, but nothing that the reader understands.
type Passed struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Text string `json:"text"`
}

// A setting is a key, an equals sign and a value, followed by nothing but a comment. So
// sentences that quote a setting do not match. A line with a comment mark in front is a
// setting that is off. Linux's files may have a minus before a key, slashes in it, and a
// semicolon before a comment; tuned's have an arrow for a value that may only grow. A
// backslash continues a command.
var settingForm = pattern.New(`^([#;]*)\s*-?([A-Za-z_][A-Za-z0-9_-]*(?:[./][A-Za-z0-9_%*-]+)*)(\s*)=>?\s*("[^"]*"|'[^']*'|[^\s"'#\\]+(?:[ \t]+[0-9]+)*)?\s*\\?(?:\((?:default|was|old)\b[^()]*\)\s*)?(#.*)?$`)

// Read finds the lines that set something: in the form of configuration files, as a
// command (sysctl, sysrc, echo into a file), as sysctl prints it, in tables of Markdown
// and HTML, in a firewall's config.xml, and in Ansible's, Salt's and Nix's files. In
// sentences outside comments, a key that known knows, with its value, counts as quoted.
// known reports whether a name is a setting's name, because prose also has words before
// equals signs. What is neither blank nor a comment nor understood is passed over.
func Read(r io.Reader, file string, known func(key string) bool) (lines []Line, passed []Passed, err error) {
	text, err := readText(r)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", file, err)
	}
	used, given := map[int]bool{}, map[int]bool{}
	if lines, given, whole := readConfigXML(strings.Join(text, "\n"), file); whole {
		for n := range text {
			used[n+1] = true
		}
		return lines, unread(text, lines, given, nil, used, file), nil
	}
	d := document{file: file, known: known, rows: tableRows(text), loops: loops{}}
	for _, t := range readTrees(text, file) {
		lines = append(lines, t.lines...)
		maps.Copy(used, t.used)
		maps.Copy(given, t.passed)
	}
	silent, marked := map[int]bool{}, isProgram(text, file)
	for n := 1; n <= len(text); n++ {
		line := strings.TrimSpace(strings.ReplaceAll(text[n-1], "\u00a0", " ")) // pages have no-break spaces
		if used[n] {
			continue
		}
		found, understood := d.line(n, line)
		if at := d.task.undone; at > 0 {
			lines = slices.DeleteFunc(lines, func(l Line) bool { return l.Line == at })
			d.task.undone = 0
		}
		if at := d.task.taken; at > 0 {
			given[at], d.task.taken = false, 0
		}
		for _, l := range found {
			l.File = file
			if l.Line == 0 {
				l.Line = n
			}
			l.Off = l.Off || marked && strings.HasPrefix(line, "#")
			lines = append(lines, l)
		}
		given[n] = len(found) == 0 && !understood && !isSilent(line)
		silent[n] = isSilent(line)
	}
	for _, l := range d.page.finish(&d) {
		l.File = file
		lines = append(lines, l)
	}
	slices.SortStableFunc(lines, func(a, b Line) int { return a.Line - b.Line })
	return lines, unread(text, lines, given, silent, used, file), nil
}

// mentionForm is the name of a kernel's setting in a text.
var mentionForm = pattern.New(`(?:^|/proc/sys/|[^\w./@%-])((?:net|kern|kernel|hw|dev|vm|vfs|fs|machdep|security)\.[A-Za-z0-9_%*-]+(?:\.[A-Za-z0-9_%*-]+)+)`)

// unread returns the lines that are passed over: those that the reader gave up, and those
// that name a setting that was found neither there nor in the other lines of its task,
// row or entry.
func unread(text []string, lines []Line, given, silent, used map[int]bool, file string) []Passed {
	at, elsewhere := map[int]bool{}, map[string]int{}
	for _, l := range lines {
		at[l.Line] = true
		if !strings.Contains(text[l.Line-1], l.Key) {
			elsewhere[l.Key]++
		}
	}
	var passed []Passed
	for n := 1; n <= len(text); n++ {
		lost := given[n]
		for _, m := range mentionForm.FindAllStringSubmatch(text[n-1], -1) {
			if at[n] && !used[n] || silent[n] || lost {
				break
			}
			key := strings.TrimRight(m[1], ".")
			if elsewhere[key]--; elsewhere[key] < 0 && !(used[n] && slices.ContainsFunc(lines, func(l Line) bool { return l.Key == key })) {
				lost = true
			}
		}
		if lost {
			passed = append(passed, Passed{File: file, Line: n, Text: strings.TrimSpace(text[n-1])})
		}
	}
	return passed
}

// isSilent reports whether a line says nothing: it is blank, a comment, or has only tags of HTML.
func isSilent(text string) bool {
	return strings.Trim(text, "-=|+:`~ ") == "" || strings.HasPrefix(text, "<") && strings.TrimSpace(tagForm.ReplaceAllString(text, "")) == "" || slices.ContainsFunc([]string{"#", ";", "//", "<!--", "!"}, func(mark string) bool { return strings.HasPrefix(text, mark) })
}

// A document is a file that is being read, with what the lines before said.
type document struct {
	file  string
	known func(key string) bool

	rows    map[int]bool // lines that are a table's row without a bar in front
	columns columns      // of the table that the line is in
	loops   loops        // of a shell
	profile profile      // of tuned
	page    page         // of HTML
	xml     xmlEntry     // of config.xml
	task    task         // of Ansible and Salt
}

// line returns the settings of a line. understood is true if the line has none, but is a
// part of something that has.
func (d *document) line(n int, text string) (found []Line, understood bool) {
	if found, understood := d.xml.line(n, text); understood {
		return found, true
	}
	if found, understood := d.page.line(n, text, d); understood {
		return found, true
	}
	if cells := markdownRow(text, d.rows[n]); cells != nil {
		return d.columns.row(n, cells, d.known)
	}
	d.columns = columns{}
	if found := d.profile.line(text); found != nil {
		return found, true
	}
	text = d.loops.plain(text)
	if found, understood := d.task.line(n, text); understood {
		// A heading in prose has the form of a Salt state: a setting after it is one.
		if len(found) == 0 && d.task.undone == 0 {
			if found = readLine(text, d.file, d.known); len(found) > 0 {
				d.task = task{}
			}
		}
		return found, true
	}
	return readLine(text, d.file, d.known), false
}

// inlineForm is a task in one line.
var inlineForm = pattern.New(`^-?\s*(?:action:\s*)?(?:[\w.]*sysctl:\s*(?:\{.*\}|.*\bname=.*)|\{.*\})$`)

// readInline returns the setting of a task in one line.
func readInline(text, file string) []Line {
	if !inlineForm.MatchString(text) {
		return nil
	}
	t, found := readTree([]string{text}, 0, file)
	if !found {
		return nil
	}
	for i := range t.lines {
		t.lines[i].Line = 0 // the reader knows it
	}
	return t.lines
}

// readLine returns the settings of one line.
func readLine(text, file string, known func(key string) bool) []Line {
	if found := readInline(text, file); found != nil {
		return found
	}
	if inner := unwrapped(text); inner != text {
		return readLine(inner, file, known)
	}
	if m := settingForm.FindStringSubmatch(text); m != nil {
		key := db.Dotted(m[2])
		// Files read by the shell have no space before the equals sign. A comment
		// that begins with a name is a sentence.
		if !strings.Contains(key, ".") && (m[3] != "" || strings.HasPrefix(text, "# ") || !isName(key) && !known(key) && !isConfiguration(file)) {
			return nil
		}
		value := strings.TrimSuffix(m[4], ";") // Nix's
		if value == "{" || value == "[" {
			return nil
		}
		return []Line{{Key: key, Value: strings.Trim(value, `"'`), Off: m[1] != ""}}
	}
	if m := pathForm.FindStringSubmatch(text); m != nil {
		return []Line{{Key: db.Dotted(m[1]), Value: m[2]}}
	}
	if lines := readCommand(text, file); lines != nil {
		return lines
	}
	if lines := readCard(text); lines != nil {
		return lines
	}
	if m := callForm.FindStringSubmatch(text); m != nil {
		return []Line{{Key: m[2], Value: m[3], Off: strings.TrimSpace(m[1]) != ""}}
	}
	if m := printedForm.FindStringSubmatch(text); m != nil && known(m[1]) {
		return []Line{{Key: m[1], Value: m[2]}}
	}
	if m := toldForm.FindStringSubmatch(text); m != nil && tells.MatchString(m[1]) {
		return []Line{{Key: m[1], Value: m[2]}}
	}
	if lines := readLanguage(text); lines != nil {
		return lines
	}
	if strings.HasPrefix(text, "#") || strings.HasPrefix(text, ";") {
		return nil
	}
	if rowForm.MatchString(text) {
		return pairs(text, false)
	}
	var lines []Line
	for _, m := range quotedForm.FindAllStringSubmatch(text, -1) {
		if known(m[1]) {
			lines = append(lines, Line{Key: m[1], Value: strings.TrimRight(strings.Trim(m[2], `"`), "."), Quoted: true})
		}
	}
	for _, m := range arrowForm.FindAllStringSubmatch(text, -1) {
		if known(m[1]) {
			lines = append(lines, Line{Key: m[1], Value: m[2], Quoted: true})
		}
	}
	for _, m := range saidForm.FindAllStringSubmatch(text, -1) {
		if known(m[1]) {
			lines = append(lines, Line{Key: m[1], Value: m[2], Quoted: true})
		}
	}
	return lines
}

const dotted = `[A-Za-z_][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_%*-]+)+`

var (
	// A command may have a prompt in front. In prose this includes root's #, which is
	// a comment's in a configuration file. A pipe or a file may take its output.
	commandForm = pattern.New(`^(#|\$|[^\s=]*[@:][^\s=]*\s?[#$%>]|)\s*(?:sudo |doas )?(?:/\S*/)?(sysctl|sysrc)((?: -[a-zA-Z]+)*)((?: +(?:` + pair + `))+)\s*(?:#.*|[0-9]*[|>\\].*|[;&]+(.*))?$`)
	pairForm    = pattern.New(pair)
	echoForm    = pattern.New(`^(#|\$|)\s*(?:sudo )?echo\s+(?:-e\s+)?(["']?)([A-Za-z_][\w.%${}*-]*)\s?=\s?(.*?)(["']?)\s*(?:>>?|\|\s*(?:sudo )?tee(?: -a)?)\s*\S+$`)
	procForm    = pattern.New(`^(#|\$|)\s*(?:sudo )?echo\s+(?:-n\s+)?["']?([^"'>|]*[^"'>|\s])["']?\s*(?:>|\|\s*(?:sudo )?tee)\s*/proc/sys/([A-Za-z0-9_./*-]+)$`)

	// rowForm is several settings in one line, with nothing else.
	rowForm = pattern.New(`^` + dotted + `=\S+(?:\s+` + dotted + `=\S+)+$`)

	// blanksForm is a command that sysctl(8) takes apart at the blanks around its equals sign: it then sets
	// nothing.
	blanksForm = pattern.New(`^(#|\$|[^\s=]*[@:][^\s=]*\s?[#$%>]|)\s*(?:sudo |doas )?(?:/\S*/)?sysctl(?: -[a-zA-Z]+)* +([A-Za-z_][\w-]*(?:[./][\w%${}*-]+)+)(?: +=| *= +)\s*("[^"]*"|'[^']*'|[^\s"'#;]+(?: [0-9]+)*)\s*(?:#.*)?$`)

	// vyosForm is a line of VyOS's configuration.
	vyosForm = pattern.New(`^set system sysctl(?: parameter| custom| all)? '?(` + dotted + `)'? value ["']?([^"'<>]+?)["']?$`)

	// pathForm is a setting by its file below /proc/sys, in a list of files and their contents.
	pathForm = pattern.New(`^/proc/sys/([A-Za-z0-9_./*-]+)\s*[:=]\s*["']?([^"'\s]+(?: [^"'\s]+)*)["']?,?$`)

	// callForm is a setting in a script's language: sysctl("KEY", VALUE) in Lua and
	// others, a resource of Puppet's in one line. A comment mark in front turns it off.
	callForm = pattern.New(`^((?:--|//|#|;|\?|\s)*)[\w.:]*sysctl[\w:]*\s*[({]\s*["'](` + dotted + `)["']\s*(?:,|:(?:.*[,\s])?value\s*=>)\s*["']?(-?[\w.-]+)["']?(?:\s*,[^()]*)?\s*[)}]\s*;?$`)

	// printedForm is sysctl's output: a key and its value, with the new value after
	// an arrow. Lists in YAML have the same form, perhaps with quotes.
	printedForm = pattern.New(`^(?:- )?["']?(` + dotted + `)["']?: (?:\S+ -> )?["']?(-?[0-9]+(?: [0-9]+)*|[a-z_]+)["']?,?$`)
	quotedForm  = pattern.New(`(?:^|[\s"'(\x60“‘])(` + dotted + `)=("[^"]*"|[^\s"'#,;)\x60”’]+)`)

	// arrowForm is a setting at the end of a way through a menu.
	arrowForm = pattern.New(`(?:^|\s)["'\x60]?(` + dotted + `)["'\x60]?\s*(?:->|→|=>)\s*["'\x60]?(-?\w+)["'\x60]?[.]?$`)

	// saidForm is a setting in words: set X to 1, and Y to 2, changed Z from 3 to 4.
	saidForm = pattern.New(`(?:(?i:set|setting|changed?|changing|raised?|raising|increased?|increasing|lowered|bumped|put|and)\s+|,\s*)(?:the\s+)?["'\x60*]*(` + dotted + `)["'\x60*]*\s+(?:(?:from\s+["'\x60]?[\w-]+["'\x60]?\s+)?to|=)\s+["'\x60*]*(-?[0-9]+|direct|deferred|hybrid|on|off|YES|NO)\b`)
)

// pair is a word like key=value, or in quotes. The shell may fill in a part of the key.
const pair = `"[A-Za-z_][\w.%/${}*-]*=[^"]*"|'[A-Za-z_][\w.%/*-]*=[^']*'|[A-Za-z_][\w.%/${}*-]*\+?=(?:"[^"]*"|'[^']*'|[^\s"'#;]+)`

// pairs returns the settings of words like key=value.
func pairs(text string, off bool) []Line {
	var lines []Line
	for _, word := range pairForm.FindAllString(text, -1) {
		key, value, _ := strings.Cut(strings.Trim(word, `"'`), "=")
		lines = append(lines, Line{Key: db.Dotted(strings.TrimSuffix(key, "+")), Value: strings.Trim(value, `"'`), Off: off})
	}
	return lines
}

// readCommand returns the settings of a command, nil if the line is none.
func readCommand(text, file string) []Line {
	if m := commandForm.FindStringSubmatch(text); m != nil {
		lines := pairs(m[4], m[1] == "#" && isConfiguration(file))
		for _, next := range readCommand(strings.TrimSpace(m[5]), file) {
			next.Off = next.Off || lines[0].Off
			lines = append(lines, next)
		}
		return lines
	}
	if m := blanksForm.FindStringSubmatch(text); m != nil {
		return []Line{{Key: db.Dotted(m[2]), Value: strings.Trim(m[3], `"'`), Off: m[1] == "#" && isConfiguration(file), Blanks: true}}
	}
	if m := vyosForm.FindStringSubmatch(text); m != nil {
		return []Line{{Key: m[1], Value: m[2]}}
	}
	if m := procForm.FindStringSubmatch(text); m != nil {
		return []Line{{Key: db.Dotted(m[3]), Value: m[2], Off: m[1] == "#" && isConfiguration(file)}}
	}
	m := echoForm.FindStringSubmatch(text)
	if m == nil || m[2] != m[5] {
		return nil
	}
	return []Line{{Key: m[3], Value: strings.Trim(strings.ReplaceAll(m[4], `\"`, `"`), `"'`), Off: m[1] == "#" && isConfiguration(file)}}
}

// isConfiguration reports whether a file has nothing but settings.
func isConfiguration(file string) bool {
	name := filepath.Base(file)
	return slices.ContainsFunc([]string{"loader.conf", "rc.conf", "sysctl.conf"}, func(part string) bool {
		return strings.HasPrefix(name, part) || strings.HasSuffix(name, part)
	})
}

// isSysctlConf reports whether a file's lines are set once the system is running.
func isSysctlConf(file string) bool {
	const name = "sysctl.conf"
	return strings.HasPrefix(filepath.Base(file), name) || strings.HasSuffix(file, name)
}

// isName reports whether a name without dots has the form of names in loader.conf and
// rc.conf.
func isName(key string) bool {
	ends := []string{"_load", "_enable", "_flags", "_program", "_name", "_type"}
	return strings.HasPrefix(key, "ifconfig_") || slices.ContainsFunc(ends, func(end string) bool { return strings.HasSuffix(key, end) })
}
