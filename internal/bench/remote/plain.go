package remote

import (
	"strings"
	"unicode"
)

// maxText is the number of bytes kept of a text.
const maxText = 512

// plain makes a text of the other side safe to print: it removes characters that control
// a terminal or break a line, and limits the length.
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
