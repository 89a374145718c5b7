// Package textout writes text line by line.
package textout

import (
	"fmt"
	"io"
)

// Lines writes lines until the first error, which it keeps.
type Lines struct {
	W   io.Writer
	Err error
}

// Line writes a line.
func (p *Lines) Line(format string, args ...any) {
	if p.Err == nil {
		_, p.Err = fmt.Fprintf(p.W, format+"\n", args...)
	}
}
