package audit

import (
	"path/filepath"
	"slices"
	"strings"

	"weir/internal/host/tune/db"
	"weir/internal/pattern"
)

// isProgram reports whether a line of the file that begins with # is a comment, and not what
// root types.
func isProgram(text []string, file string) bool {
	ends := []string{".sh", ".bash", ".zsh", ".ksh", ".nix", ".rb", ".pp", ".yml", ".yaml", ".sls", ".tf", ".conf", ".service"}
	return slices.Contains(ends, filepath.Ext(file)) || len(text) > 0 && strings.HasPrefix(text[0], "#!")
}

// loops are the files that a shell's loop goes over, by its variable.
type loops map[string]string

var (
	forForm    = pattern.New(`^for\s+(\w+)\s+in\s+([^;]*?)\s*(?:;\s*do\b\s*(.*?)|;|)$`)
	fileForm   = pattern.New(`/(?:proc|sys)/[^\s;()"'\x60]+`)
	onlyIfForm = pattern.New(`^(?:if\s.*?;\s*then|\[\[?\s[^&|]*\s\]\]?\s*&&|test\s[^&|]*&&|(?:if\s+)?!?\s*grep\s[^&|]*(?:\|\||&&))\s+(.*)$`)
	endForm    = pattern.New(`\s*;\s*(?:fi|done)\s*;?$`)
	intoForm   = pattern.New(`^(.*(?:>|\btee)\s*)["']?\$\{?(\w+)\}?["']?$`)
	innerForm  = pattern.New(`(/proc/irq/)(?:\$\([^()]*\)|\x60[^\x60]*\x60)`)
)

// plain returns a shell's command without the loop or the condition around it. What a loop
// writes into is the files that it goes over.
func (s loops) plain(text string) string {
	if m := forForm.FindStringSubmatch(text); m != nil {
		if files := fileForm.FindStringSubmatch(m[2]); files != nil {
			s[m[1]] = files[0]
		}
		if m[3] == "" {
			return text
		}
		text = endForm.ReplaceAllString(m[3], "")
	}
	if m := onlyIfForm.FindStringSubmatch(text); m != nil {
		text = endForm.ReplaceAllString(m[1], "")
	}
	if m := intoForm.FindStringSubmatch(text); m != nil && s[m[2]] != "" {
		text = m[1] + s[m[2]]
	}
	return innerForm.ReplaceAllString(text, "${1}$$irq")
}

// filledKey is a key in which a program may fill in a part.
const filledKey = `[A-Za-z_][\w-]*(?:\.(?:[\w%*-]|\$\{[^}]*\})+)+`

var (
	// Settings in Nix's language, and in those that look like it.
	nixForm  = pattern.New(`^(#?)\s*(?:boot\.kernel\.sysctl\.)?"(` + filledKey + `)"\s*=\s*(?:(?:lib\.)?mk\w+ )?("[^"]*"|[^\s;{>][^\s;{]*)\s*;?\s*(?:#.*)?$`)
	nixInner = pattern.New(`"(` + filledKey + `)"\s*=\s*(?:(?:lib\.)?mk\w+ )?("[^"]*"|[^\s;{]+)\s*;`)

	// Chef's attributes, and several of Puppet's resources in one.
	attributeForm = pattern.New(`^(#?)\s*(?:node\.)?(?:default|override|normal|set|force_\w+)(?:\.\w+)?((?:\[(?::\w+|"[^"]+"|'[^']+')\])+)\s*=\s*["']?([^"']*?)["']?$`)
	hashForm      = pattern.New(`^["'](` + dotted + `)["']\s*=>\s*["']?([^"'{},]+?)["']?,?$`) // of Perl, Ruby and PHP
	bracketForm   = pattern.New(`\[[:"']([^"'\]]+)`)
	puppetForm    = pattern.New(`["'](` + dotted + `)["']\s*(?::|=>\s*\{)\s*(?:ensure\s*=>\s*[^,]+,\s*)?value\s*=>\s*["']?([^"',;}]+?)["']?\s*[,;}]`)
)

// readLanguage returns the settings of a line of Nix's, Chef's or Puppet's.
func readLanguage(text string) (lines []Line) {
	if m := nixForm.FindStringSubmatch(text); m != nil {
		return nixLine(m[2], m[3], m[1] != "")
	}
	if strings.Contains(text, "sysctl") && strings.Contains(text, "{") {
		for _, m := range nixInner.FindAllStringSubmatch(text, -1) {
			lines = append(lines, nixLine(m[1], m[2], strings.HasPrefix(text, "#"))...)
		}
	}
	for _, m := range puppetForm.FindAllStringSubmatch(text, -1) {
		if isKey(m[1]) {
			lines = append(lines, Line{Key: m[1], Value: m[2], Off: strings.HasPrefix(text, "#")})
		}
	}
	if m := hashForm.FindStringSubmatch(text); m != nil && isKey(m[1]) {
		return []Line{{Key: m[1], Value: m[2]}}
	}
	m := attributeForm.FindStringSubmatch(text)
	if m == nil {
		return lines
	}
	var words []string
	for _, b := range bracketForm.FindAllStringSubmatch(m[2], -1) {
		if b[1] != "sysctl" && b[1] != "params" {
			words = append(words, b[1])
		}
	}
	if key := strings.Join(words, "."); isKey(key) {
		return []Line{{Key: key, Value: m[3], Off: m[1] != ""}}
	}
	return lines
}

// nixLine returns a setting of Nix's. null leaves it to the kernel.
func nixLine(key, value string, off bool) []Line {
	if value = number(strings.Trim(value, `"`)); value == "null" {
		return nil
	}
	return []Line{{Key: db.Dotted(key), Value: value, Off: off}}
}
