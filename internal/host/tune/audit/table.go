package audit

import (
	"html"
	"slices"
	"strings"

	"weir/internal/pattern"
)

// systemForm is a key whose name belongs to a kernel: in a table it counts although weir
// has no record of it.
var systemForm = pattern.New(`^(net|kern|kernel|hw|dev|vm|vfs|fs|machdep|security|debug|legal|compat|hint)\.[A-Za-z0-9_%*-]+(\.[A-Za-z0-9_%*-]+)*$`)

// columns are those of a table. Its head may name them.
type columns struct {
	value int   // 1 for the first column, 0 if no head names one
	skip  []int // columns with something else, by their index, if no head names the value's
}

var (
	// valueHeads are in the order of preference: "setting" may also be the key's head.
	valueHeads = []string{"value", "recommended value", "recommended", "expected value", "expected", "new value", "new", "tuned", "target", "suggested", "suggested value", "wert", "empfohlen", "set to", "setting"}
	otherHeads = []string{"default", "default value", "description", "old value", "old", "current", "current value", "retrieved value", "actual value", "before"}
)

// row returns the setting of a table's row. A head is understood, and remembered.
func (c *columns) row(_ int, cells []string, known func(key string) bool) (found []Line, understood bool) {
	for _, head := range valueHeads {
		if i := slices.IndexFunc(cells, func(cell string) bool { return strings.ToLower(plainCell(cell)) == head }); i >= 0 {
			*c = columns{value: i + 1}
			return nil, true
		}
	}
	var others []int
	for i, cell := range cells {
		if slices.Contains(otherHeads, strings.ToLower(plainCell(cell))) {
			others = append(others, i)
		}
	}
	at := slices.IndexFunc(cells, func(cell string) bool { return keysOf(cell, known) != nil })
	switch {
	case isRule(cells) || others != nil && at >= 0: // a row's value may be the word default
		return nil, true
	case others != nil:
		*c = columns{skip: others}
		return nil, true
	case at < 0 && inCell(cells) != nil:
		return inCell(cells), false
	case at < 0:
		return readLine(strings.Join(cells, " "), "", known), false
	}
	value := at + 1
	for slices.Contains(c.skip, value) {
		value++
	}
	if c.value > 0 && c.value-1 != at {
		value = c.value - 1
	}
	if value >= len(cells) {
		return nil, false
	}
	return pairUp(keysOf(cells[at], known), cells[value]), false
}

// inCell returns the setting that one of a row's cells holds whole, as key = value.
func inCell(cells []string) []Line {
	for _, cell := range cells {
		if m := settingForm.FindStringSubmatch(plainCell(cell)); m != nil && m[1] == "" && m[4] != "" && isKey(m[2]) {
			return []Line{{Key: plainKey(m[2]), Value: strings.Trim(m[4], `"'`)}}
		}
	}
	return nil
}

// pairUp returns a row's settings. If the value's cell has a line for each key, they belong
// together; otherwise its value is that of all keys.
func pairUp(keys []string, cell string) (found []Line) {
	values := breakForm.Split(cell, -1)
	for i, key := range keys {
		value := values[0]
		if len(values) == len(keys) {
			value = values[i]
		} else if len(values) > 1 {
			return nil
		}
		if text := firstValue(plainCell(value)); text != "" {
			found = append(found, Line{Key: key, Value: text})
		}
	}
	return found
}

var (
	linkForm   = pattern.New(`!?\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])`)
	remarkForm = pattern.New(`\s\([^)]*\)`)
)

// keysOf returns the keys of a cell that has nothing else, but remarks in parentheses; nil
// for another cell.
func keysOf(cell string, known func(key string) bool) (keys []string) {
	text := remarkForm.ReplaceAllString(breakForm.ReplaceAllString(linkForm.ReplaceAllString(cell, "$1"), " "), "")
	for _, word := range strings.FieldsFunc(text, func(c rune) bool { return c == ' ' || c == ',' || c == '`' }) {
		key := plainKey(plainCell(word))
		if key == "" {
			continue
		}
		if !systemForm.MatchString(key) && !(strings.Contains(key, ".") && known(key)) {
			return nil
		}
		keys = append(keys, key)
	}
	return keys
}

// isRule reports whether a row only separates a table's head from its body.
func isRule(cells []string) bool {
	return !slices.ContainsFunc(cells, func(cell string) bool { return strings.Trim(cell, ":- ") != "" })
}

// plainCell returns a cell's text without marks.
func plainCell(cell string) string {
	cell = linkForm.ReplaceAllString(strings.ReplaceAll(cell, `\_`, "_"), "$1")
	return strings.TrimSpace(strings.Trim(strings.TrimSpace(cell), "`*\"' "))
}

// firstValue returns the value at the start of a cell: 1024 of "1024 (was 256)". It
// returns "" if the cell is a sentence, or empty.
func firstValue(cell string) string {
	value, rest, more := strings.Cut(cell, " (")
	if more && !strings.HasSuffix(rest, ")") {
		return ""
	}
	words := strings.Fields(strings.Trim(value, "`"))
	if len(words) > 1 && slices.ContainsFunc(words, func(w string) bool { return strings.Trim(w, "0123456789") != "" }) {
		return ""
	}
	if value = strings.Join(words, " "); strings.Trim(value, "-–—") == "" {
		return ""
	}
	return value
}

// markdownRow returns the cells of a row in Markdown, nil for another line. inTable tells
// that a line without a bar in front is a row.
func markdownRow(text string, inTable bool) []string {
	inner, ok := strings.CutPrefix(text, "|")
	if !inTable && (!ok || strings.Count(text, "|") < 2) {
		return nil
	}
	cells := strings.Split(strings.ReplaceAll(strings.TrimSuffix(inner, "|"), `\|`, "\x00"), "|")
	for i := range cells {
		cells[i] = strings.ReplaceAll(cells[i], "\x00", "|")
	}
	return cells
}

// ruleForm is the line below the head of a table in Markdown.
var ruleForm = pattern.New(`^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)+\|?\s*$`)

// tableRows returns the lines of a text, from 1 on, that are rows of a table in Markdown:
// the head above the rule, and all lines with a bar below it.
func tableRows(text []string) map[int]bool {
	rows := map[int]bool{}
	for i := 1; i < len(text); i++ {
		if !ruleForm.MatchString(text[i]) || !strings.Contains(text[i-1], "|") {
			continue
		}
		rows[i] = true
		for ; i < len(text) && strings.Contains(text[i], "|"); i++ {
			rows[i+1] = true
		}
	}
	return rows
}

// cellBreak stands for a break in a cell of HTML.
const cellBreak = "\x1f"

// page is the state of HTML.
type page struct {
	inRow   bool
	at      int // line of the row's key
	row     strings.Builder
	columns columns
}

var (
	rowStart  = pattern.New(`(?i)<tr\b[^>]*>`)
	rowEnd    = pattern.New(`(?i)</tr>|<tr\b|</table>|</tbody>`) // the end tag may be left out
	tableEnd  = pattern.New(`(?i)</table>`)
	cellForm  = pattern.New(`(?is)<t[dh]\b[^>]*>(.*?)</t[dh]>`)
	tagForm   = pattern.New(`(?s)</?[A-Za-z!][^>]*>`)
	breakForm = pattern.New(`(?i)<br\s*/?>|` + cellBreak)
)

// line returns the settings of a line with HTML.
func (p *page) line(n int, text string, d *document) (found []Line, understood bool) {
	if !p.inRow && !strings.Contains(text, "<") {
		return nil, false
	}
	if tableEnd.MatchString(text) {
		defer func() { p.columns = columns{} }()
	}
	for {
		if !p.inRow {
			start := rowStart.FindStringIndex(text)
			if start == nil {
				break
			}
			p.inRow, p.at = true, n
			p.row.Reset()
			text = text[start[1]:]
		}
		end := rowEnd.FindStringIndex(text)
		if end == nil {
			p.row.WriteString(text + "\n")
			return found, true
		}
		p.row.WriteString(text[:end[0]])
		text = text[end[0]:]
		found, understood = append(found, p.finish(d)...), true
	}
	if understood || !tagForm.MatchString(text) {
		return found, understood
	}
	for _, part := range breakForm.Split(text, -1) {
		found = append(found, readLine(strings.TrimSpace(html.UnescapeString(tagForm.ReplaceAllString(part, ""))), d.file, d.known)...)
	}
	return found, len(found) > 0
}

// finish returns the settings of the row that is open, if one is, and ends it.
func (p *page) finish(d *document) []Line {
	if !p.inRow {
		return nil
	}
	p.inRow = false
	lines, _ := p.columns.row(p.at, htmlCells(p.row.String()), d.known)
	for i := range lines {
		lines[i].Line = p.at
	}
	return lines
}

// htmlCells returns the texts of a row's cells.
func htmlCells(row string) []string {
	var cells []string
	for _, m := range cellForm.FindAllStringSubmatch(row, -1) {
		cells = append(cells, strings.Join(strings.Fields(html.UnescapeString(tagForm.ReplaceAllString(breakForm.ReplaceAllString(m[1], cellBreak), ""))), " "))
	}
	return cells
}
