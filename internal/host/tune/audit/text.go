package audit

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf16"
)

// ErrNotText is the error of a file that is no text.
var ErrNotText = errors.New("it is no text: it has bytes of zero")

// longestFile is how many bytes a file may have.
const longestFile = 64 << 20

// readText returns the lines of a file without their ends. The file may be in UTF-16 or have
// a byte order mark, as editors of Windows leave them.
func readText(r io.Reader) ([]string, error) {
	b, err := io.ReadAll(io.LimitReader(r, longestFile+1))
	switch {
	case err != nil:
		return nil, err
	case len(b) > longestFile:
		return nil, fmt.Errorf("it has more than %d MiB", longestFile>>20)
	}
	var text string
	switch {
	case bytes.HasPrefix(b, []byte{0xff, 0xfe}):
		text = wide(b[2:], binary.LittleEndian)
	case bytes.HasPrefix(b, []byte{0xfe, 0xff}):
		text = wide(b[2:], binary.BigEndian)
	default:
		text = string(bytes.TrimPrefix(b, []byte{0xef, 0xbb, 0xbf}))
	}
	if strings.ContainsRune(text, 0) {
		return nil, ErrNotText
	}
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	lines := strings.Split(text, "\n")
	if last := len(lines) - 1; lines[last] == "" {
		lines = lines[:last]
	}
	return lines, nil
}

// wide decodes UTF-16.
func wide(b []byte, order binary.ByteOrder) string {
	units := make([]uint16, len(b)/2)
	for i := range units {
		units[i] = order.Uint16(b[2*i:])
	}
	return string(utf16.Decode(units))
}
