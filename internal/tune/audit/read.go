package audit

import (
	"bufio"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strings"
)

// A Line is one line that sets something.
type Line struct {
	File  string `json:"file"`
	Line  int    `json:"line"`
	Key   string `json:"key"`
	Value string `json:"value"`
	Off   bool   `json:"off"` // it stands there as a comment
}

// A setting is a key, an equals sign, a value, and nothing else but a comment: so
// sentences that quote a setting are not taken for one. A line with a comment's mark
// before it is a setting that is off.
// Linux's files may have a minus before a key, slashes in it, and a semicolon before a
// comment.
var settingForm = regexp.MustCompile(`^([#;]*)\s*-?([A-Za-z_][A-Za-z0-9_-]*(?:[./][A-Za-z0-9_%*-]+)*)(\s*)=\s*("[^"]*"|'[^']*'|[^\s"'#]+(?:[ \t]+[0-9]+)*)?\s*(#.*)?$`)

// Read finds the lines that set something. Known reports whether a name without dots
// is a setting's: prose has words before equals signs, too.
func Read(r io.Reader, file string, known func(key string) bool) ([]Line, error) {
	var lines []Line
	scanner := bufio.NewScanner(r)
	scanner.Buffer(nil, 1<<20)
	for n := 1; scanner.Scan(); n++ {
		text := strings.TrimRight(scanner.Text(), " \t\r")
		m := settingForm.FindStringSubmatch(strings.TrimLeft(text, " \t"))
		if m == nil {
			continue
		}
		key := dots(m[2])
		dotted := strings.Contains(key, ".")
		// Files that the shell reads have no space before the equals sign, and a
		// comment that begins with a name is a sentence.
		if !dotted && (m[3] != "" || strings.HasPrefix(text, "# ") || !isName(key) && !known(key) && !isConfiguration(file)) {
			continue
		}
		lines = append(lines, Line{File: file, Line: n, Key: key, Value: strings.Trim(m[4], `"'`), Off: m[1] != ""})
	}
	if err := scanner.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return lines, nil
}

// dots writes a key with dots, as people do: Linux's files have slashes, too, and then a
// dot is an interface's.
func dots(key string) string {
	if first := strings.IndexAny(key, "./"); first < 0 || key[first] == '.' {
		return key
	}
	return strings.Map(func(r rune) rune {
		switch r {
		case '/':
			return '.'
		case '.':
			return '/'
		}
		return r
	}, key)
}

// isConfiguration reports whether a file is one of those that have nothing but settings.
func isConfiguration(file string) bool {
	name := filepath.Base(file)
	for _, begin := range []string{"loader.conf", "rc.conf", "sysctl.conf"} {
		if strings.HasPrefix(name, begin) {
			return true
		}
	}
	return false
}

// isName reports whether a name without dots has the form of those of loader.conf and
// rc.conf.
func isName(key string) bool {
	for _, end := range []string{"_load", "_enable", "_flags", "_program", "_name", "_type"} {
		if strings.HasSuffix(key, end) {
			return true
		}
	}
	return strings.HasPrefix(key, "ifconfig_")
}
