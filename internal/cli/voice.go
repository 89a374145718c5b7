package cli

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"sync"
)

// voice is how the daemon speaks: in the form of all other messages of weir, a
// line for each, its details behind it as key=value. The time is left to who
// keeps the lines (the journal does).
type voice struct {
	to      io.Writer
	mu      *sync.Mutex
	line    *bytes.Buffer
	details slog.Handler // writes into line
}

func newVoice(to io.Writer) *voice {
	line := new(bytes.Buffer)
	details := slog.NewTextHandler(line, &slog.HandlerOptions{ReplaceAttr: dropHead})
	return &voice{to: to, mu: new(sync.Mutex), line: line, details: details}
}

// dropHead leaves out of a record what the line begins with, and the time.
func dropHead(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey || a.Key == slog.MessageKey) {
		return slog.Attr{}
	}
	return a
}

// Enabled is Handler's.
func (v *voice) Enabled(ctx context.Context, l slog.Level) bool { return v.details.Enabled(ctx, l) }

// Handle writes one line.
func (v *voice) Handle(ctx context.Context, r slog.Record) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.line.Reset()
	v.line.WriteString("weir: " + gravity(r.Level) + r.Message + " ")
	if err := v.details.Handle(ctx, r); err != nil {
		return err
	}
	_, err := v.to.Write(append(bytes.TrimRight(v.line.Bytes(), " \n"), '\n'))
	return err
}

func gravity(l slog.Level) string {
	switch {
	case l >= slog.LevelError:
		return "error: "
	case l >= slog.LevelWarn:
		return "warning: "
	}
	return ""
}

// WithAttrs is Handler's.
func (v *voice) WithAttrs(attrs []slog.Attr) slog.Handler {
	more := *v
	more.details = v.details.WithAttrs(attrs)
	return &more
}

// WithGroup is Handler's.
func (v *voice) WithGroup(name string) slog.Handler {
	more := *v
	more.details = v.details.WithGroup(name)
	return &more
}
