package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"

	"weir/pf/diag"
)

// voice formats the daemon's messages like all other messages of weir: one line for each,
// with its details after it as key=value. Faults in a rule file follow below, as weir
// check prints them. voice writes no time, because the keeper of the log adds it (the
// journal does).
type voice struct {
	to      io.Writer
	mu      *sync.Mutex
	line    *bytes.Buffer
	details slog.Handler // writes to line
}

func newVoice(to io.Writer) *voice {
	line := new(bytes.Buffer)
	details := slog.NewTextHandler(line, &slog.HandlerOptions{ReplaceAttr: dropHead})
	return &voice{to: to, mu: new(sync.Mutex), line: line, details: details}
}

// dropHead removes from a record the time and what the line begins with.
func dropHead(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey || a.Key == slog.MessageKey) {
		return slog.Attr{}
	}
	return a
}

// Enabled implements slog.Handler.
func (v *voice) Enabled(ctx context.Context, l slog.Level) bool { return v.details.Enabled(ctx, l) }

// Handle writes one line.
func (v *voice) Handle(ctx context.Context, r slog.Record) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.line.Reset()
	v.line.WriteString("weir: " + levelName(r.Level) + r.Message + " ")
	details := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	var below string
	for a := range r.Attrs {
		if list := diagnostics(a.Value); list != nil {
			below += list.String() + "\n"
		} else {
			details.AddAttrs(a)
		}
	}
	if err := v.details.Handle(ctx, details); err != nil {
		return err
	}
	_, err := v.to.Write(append(bytes.TrimRight(v.line.Bytes(), " \n"), "\n"+below...))
	return err
}

// diagnostics returns a value's faults in a rule file, or nil if the value is something
// else.
func diagnostics(v slog.Value) *diag.List {
	var failure *diag.Failure
	switch v := v.Any().(type) {
	case *diag.List:
		return v
	case error:
		if errors.As(v, &failure) && v.Error() == failure.Error() { // the wrapping error adds nothing
			return &failure.List
		}
	}
	return nil
}

func levelName(l slog.Level) string {
	switch {
	case l >= slog.LevelError:
		return "error: "
	case l >= slog.LevelWarn:
		return "warning: "
	}
	return ""
}

// WithAttrs implements slog.Handler.
func (v *voice) WithAttrs(attrs []slog.Attr) slog.Handler {
	more := *v
	more.details = v.details.WithAttrs(attrs)
	return &more
}

// WithGroup implements slog.Handler.
func (v *voice) WithGroup(name string) slog.Handler {
	more := *v
	more.details = v.details.WithGroup(name)
	return &more
}

// newJSONVoice returns the handler for programs: one JSON object per line.
func newJSONVoice(to io.Writer) slog.Handler {
	return slog.NewJSONHandler(to, &slog.HandlerOptions{ReplaceAttr: inJSON})
}

// inJSON gives an attribute the same form as elsewhere in weir's JSON.
func inJSON(groups []string, a slog.Attr) slog.Attr {
	if list := diagnostics(a.Value); list != nil {
		return slog.Any("diagnostics", list.Records())
	}
	switch {
	case a.Value.Kind() == slog.KindDuration:
		return slog.Float64(a.Key+"_s", a.Value.Duration().Seconds())
	case len(groups) > 0:
	case a.Key == slog.LevelKey:
		return slog.String("level", cmp.Or(strings.TrimSuffix(levelName(a.Value.Any().(slog.Level)), ": "), "info"))
	case a.Key == slog.MessageKey:
		a.Key = "message"
	}
	return a
}
