package main

import (
	"bytes"
	"fmt"
	"strings"
)

// The table stands between these lines of the document.
const (
	beginMark = "<!-- reasons: generated from bpf/observe/reason.h by internal/fw/reason/gen -->"
	endMark   = "<!-- end of reasons -->"
)

func (l *list) markdown() string {
	var b strings.Builder
	b.WriteString("| reason | verdict | meaning |\n|---|---|---|\n")
	for i, e := range l.entries {
		verdict := "drop"
		if i < l.passes {
			verdict = "pass"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", e.name, verdict, strings.ReplaceAll(e.text, "|", `\|`))
	}
	return b.String()
}

// inDocument returns the document with the table between its marks replaced.
func (l *list) inDocument(doc []byte) ([]byte, error) {
	begin := bytes.Index(doc, []byte(beginMark))
	end := bytes.Index(doc, []byte(endMark))
	if begin < 0 || end < begin {
		return nil, fmt.Errorf("no line %q followed by %q", beginMark, endMark)
	}
	var b bytes.Buffer
	b.Write(doc[:begin+len(beginMark)])
	b.WriteString("\n" + l.markdown())
	b.Write(doc[end:])
	return b.Bytes(), nil
}
