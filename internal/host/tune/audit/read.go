package audit

import (
	"bufio"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"weir/internal/host/tune/db"
)

// A Line is one line that sets something.
type Line struct {
	File  string `json:"file"`
	Line  int    `json:"line"`
	Key   string `json:"key"`
	Value string `json:"value"`
	Off   bool   `json:"off"` // it is commented out

	Quoted bool `json:"quoted,omitempty"` // a sentence names it
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
// semicolon before a comment. A backslash continues a command.
var settingForm = regexp.MustCompile(`^([#;]*)\s*-?([A-Za-z_][A-Za-z0-9_-]*(?:[./][A-Za-z0-9_%*-]+)*)(\s*)=\s*("[^"]*"|'[^']*'|[^\s"'#\\]+(?:[ \t]+[0-9]+)*)?\s*\\?(#.*)?$`)

// Read finds the lines that set something: in the form of configuration files, as a
// command (sysctl, sysrc, echo into a file), as sysctl prints it, in tables of Markdown
// and HTML, in a firewall's config.xml, and in Ansible's, Salt's and Nix's files. In
// sentences outside comments, a key that known knows, with its value, counts as quoted.
// known reports whether a name is a setting's name, because prose also has words before
// equals signs. What is neither blank nor a comment nor understood is passed over.
func Read(r io.Reader, file string, known func(key string) bool) (lines []Line, passed []Passed, err error) {
	d := document{file: file, known: known}
	scanner := bufio.NewScanner(r)
	scanner.Buffer(nil, longestLine)
	for n := 1; scanner.Scan(); n++ {
		text := strings.TrimSpace(strings.ReplaceAll(scanner.Text(), "\u00a0", " ")) // pages have no-break spaces
		found, understood := d.line(n, text)
		if at := d.task.undone; at > 0 {
			lines = slices.DeleteFunc(lines, func(l Line) bool { return l.Line == at })
			d.task.undone = 0
		}
		for _, l := range found {
			l.File = file
			if l.Line == 0 {
				l.Line = n
			}
			lines = append(lines, l)
		}
		if len(found) == 0 && !understood && !isSilent(text) {
			passed = append(passed, Passed{File: file, Line: n, Text: text})
		}
	}
	if err := scanner.Err(); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", file, err)
	}
	for _, l := range d.page.finish(&d) {
		l.File = file
		lines = append(lines, l)
	}
	return lines, passed, nil
}

// longestLine is how many bytes a line may have: pages and config.xml may be one line.
const longestLine = 64 << 20

// isSilent reports whether a line says nothing: it is blank, or a comment.
func isSilent(text string) bool {
	return strings.Trim(text, "-=|+:`~ ") == "" || slices.ContainsFunc([]string{"#", ";", "//", "<!--", "!"}, func(mark string) bool { return strings.HasPrefix(text, mark) })
}

// A document is a file that is being read, with what the lines before said.
type document struct {
	file  string
	known func(key string) bool

	columns columns  // of the table that the line is in
	page    page     // of HTML
	xml     xmlEntry // of config.xml
	task    task     // of Ansible and Salt
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
	if cells := markdownRow(text); cells != nil {
		return d.columns.row(n, cells, d.known)
	}
	d.columns = columns{}
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

// readLine returns the settings of one line.
func readLine(text, file string, known func(key string) bool) []Line {
	if m := settingForm.FindStringSubmatch(text); m != nil {
		key := db.Dotted(m[2])
		// Files read by the shell have no space before the equals sign. A comment
		// that begins with a name is a sentence.
		if !strings.Contains(key, ".") && (m[3] != "" || strings.HasPrefix(text, "# ") || !isName(key) && !known(key) && !isConfiguration(file)) {
			return nil
		}
		return []Line{{Key: key, Value: strings.Trim(m[4], `"'`), Off: m[1] != ""}}
	}
	if lines := readCommand(text, file); lines != nil {
		return lines
	}
	if m := printedForm.FindStringSubmatch(text); m != nil && known(m[1]) {
		return []Line{{Key: m[1], Value: m[2]}}
	}
	if m := nixForm.FindStringSubmatch(text); m != nil {
		return []Line{{Key: m[1], Value: strings.Trim(m[2], `"`)}}
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
	commandForm = regexp.MustCompile(`^(#|\$|[^\s=]*[@:][^\s=]*\s?[#$%>]|)\s*(?:sudo |doas )?(?:/\S*/)?(sysctl|sysrc)((?: -[a-zA-Z]+)*)((?: +[A-Za-z_][\w.%/-]*=(?:"[^"]*"|'[^']*'|[^\s"'#;]+))+)\s*(?:#.*|[0-9]*[|>\\].*|[;&]+(.*))?$`)
	pairForm    = regexp.MustCompile(`([A-Za-z_][\w.%/-]*)=("[^"]*"|'[^']*'|[^\s"'#;]+)`)
	echoForm    = regexp.MustCompile(`^(#|\$|)\s*(?:sudo )?echo\s+(?:-e\s+)?(["']?)([A-Za-z_][\w.%-]*)\s?=\s?(.*?)(["']?)\s*(?:>>?|\|\s*(?:sudo )?tee(?: -a)?)\s*\S+$`)
	procForm    = regexp.MustCompile(`^(#|\$|)\s*(?:sudo )?echo\s+(?:-n\s+)?["']?([^"'>|]*[^"'>|\s])["']?\s*(?:>|\|\s*(?:sudo )?tee)\s*/proc/sys/([A-Za-z0-9_./*-]+)$`)

	// rowForm is several settings in one line, with nothing else.
	rowForm = regexp.MustCompile(`^` + dotted + `=\S+(?:\s+` + dotted + `=\S+)+$`)

	// nixForm is a setting in Nix's language.
	nixForm = regexp.MustCompile(`^(?:boot\.kernel\.sysctl\.)?"(` + dotted + `)"\s*=\s*(?:lib\.mk\w+ )?("[^"]*"|[^\s;]+)\s*;`)

	// printedForm is sysctl's output: a key and its value, with the new value after
	// an arrow. Lists in YAML have the same form, perhaps with quotes.
	printedForm = regexp.MustCompile(`^(?:- )?["']?(` + dotted + `)["']?: (?:\S+ -> )?["']?(-?[0-9]+(?: [0-9]+)*|[a-z_]+)["']?,?$`)
	quotedForm  = regexp.MustCompile(`(?:^|[\s"'(\x60“‘])(` + dotted + `)=("[^"]*"|[^\s"'#,;)\x60”’]+)`)

	// saidForm is a setting in words: set X to 1.
	saidForm = regexp.MustCompile(`[Ss]et\w*\s+(?:the\s+)?["'\x60]?(` + dotted + `)["'\x60]?\s+(?:to|=)\s+["'\x60]?(-?[0-9]+)\b`)
)

// pairs returns the settings of words like key=value.
func pairs(text string, off bool) []Line {
	var lines []Line
	for _, pair := range pairForm.FindAllStringSubmatch(text, -1) {
		lines = append(lines, Line{Key: db.Dotted(pair[1]), Value: strings.Trim(pair[2], `"'`), Off: off})
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
