package audit

import (
	"strings"

	"weir/internal/pattern"
)

// unstarred is a key without the asterisks that print it bold.
const unstarred = `[A-Za-z_][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_%-]+)+`

// wrappers are what may stand around a setting or a command: a unit of systemd, a shell, a
// redirection of what a command prints, printf in place of echo, a list's mark in prose.
var wrappers = []struct {
	form *pattern.Pattern
	to   string
}{
	{pattern.New(`^Exec(?:Start|StartPre|StartPost|Reload)\s*=\s*[-@:+!]*(\S.*)$`), "$1"},
	{pattern.New(`^(?:/\S*/)?(?:ba|da)?sh -c '([^']*)'$`), "$1"},
	{pattern.New(`^(?:/\S*/)?(?:ba|da)?sh -c "([^"]*)"$`), "$1"},
	{pattern.New(`^(.*\S)\s*>\s*/dev/null(?:\s+2>&1)?(?:\s*\|\|\s*(?:true|:))?$`), "$1"},
	{pattern.New(`^(.*\S)\s*\|\|\s*(?:true|:|\{)$`), "$1"},
	{pattern.New(`^(?:sudo )?(?:/\S*/)?ip\s+netns\s+exec\s+\S+\s+(\S.*)$`), "$1"},
	{pattern.New(`^[\w.]+\("([^"]*)"\)[;,]?$`), "$1"}, // of programs that run a command
	{pattern.New(`^[\w.]+\('([^']*)'\)[;,]?$`), "$1"},
	{pattern.New(`^f?"([^"]*)",?$`), "$1"}, // a list's
	{pattern.New(`^'([^']*)',?$`), "$1"},
	{pattern.New(`^((?:sudo )?)printf\s+'([^'%]*)\\n'(.*)$`), "${1}echo '$2'$3"},
	{pattern.New(`^((?:sudo )?)printf\s+"([^"%]*)\\n"(.*)$`), `${1}echo "$2"$3`},
	{pattern.New("^(?:[*•-]\\s+)?[`*]+(" + unstarred + ")[`*]+(\\s*[=:]\\s*)`?([^`\\s]+)`?$"), "$1$2$3"},
	{pattern.New(`^(?:[*•]|[0-9]+[.)])\s+(` + dotted + `\s*[=:]\s*\S+)$`), "$1"},
	{pattern.New(`^-\s+(` + dotted + `\s*=\s*\S+)$`), "$1"},
	{pattern.New(`^(?i:\[(?:code|quote|icode|pre|b|list|\*)(?:=[^\]]*)?\])+(.*)$`), "$1"}, // of forums
	{pattern.New(`^(.*\S)\s*(?i:\[/(?:code|quote|icode|pre|b|list)\])+$`), "$1"},
}

// unwrapped returns a line without the first of what stands around its setting.
func unwrapped(text string) string {
	for _, w := range wrappers {
		if w.form.MatchString(text) {
			return strings.TrimSpace(w.form.ReplaceAllString(text, w.to))
		}
	}
	return text
}
