package remote

import (
	"strings"
	"unicode"
)

// plain is a text of the other side's as it may be printed: without what would
// steer a terminal or break a line, and no longer than the protocol allows.
func plain(text string) string {
	text = strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, text)
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "")
	}
	return text
}
