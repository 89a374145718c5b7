package remote

import (
	"strings"
	"unicode"
)

// maxText is how many bytes of a text are kept.
const maxText = 512

// plain is a text of the other side's as it may be printed: without what would
// steer a terminal or break a line, and not too long.
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
