package cli

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
)

func TestVoice(t *testing.T) {
	for _, test := range []struct {
		say  func(l *slog.Logger)
		want string
	}{
		{func(l *slog.Logger) { l.Info("ready") }, "weir: ready\n"},
		{func(l *slog.Logger) { l.Info("loaded", "file", "a.conf", "rules", 3) }, "weir: loaded file=a.conf rules=3\n"},
		{func(l *slog.Logger) { l.Warn("probe neighbours", "error", errors.New("no such\ndevice")) },
			"weir: warning: probe neighbours error=\"no such\\ndevice\"\n"}, // one line, whatever it holds
		{func(l *slog.Logger) { l.With("interface", "lan0").WithGroup("g").Info("attached", "time", 1) },
			"weir: attached interface=lan0 g.time=1\n"},
		{func(l *slog.Logger) { l.Error("stop") }, "weir: error: stop\n"},
		{func(l *slog.Logger) { l.Debug("unheard") }, ""},
	} {
		var out strings.Builder
		test.say(slog.New(newVoice(&out)))
		if out.String() != test.want {
			t.Errorf("said %q, want %q", out.String(), test.want)
		}
	}
}
