package cli

import (
	"errors"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"

	"weir/pf/resolve"
)

// refusal returns the error for a file with a fault.
func refusal(t *testing.T) error {
	t.Helper()
	_, list := resolve.LoadWith("a.conf", []byte("pas\n"), &resolve.Host{}, resolve.Settings{})
	return list.Err()
}

func TestVoice(t *testing.T) {
	for _, test := range []struct {
		say  func(l *slog.Logger)
		want string
	}{
		{func(l *slog.Logger) { l.Info("ready") }, "weir: ready\n"},
		{func(l *slog.Logger) { l.Info("loaded", "file", "a.conf", "rules", 3) }, "weir: loaded file=a.conf rules=3\n"},
		{func(l *slog.Logger) { l.Warn("probe neighbours", "error", errors.New("no such\ndevice")) },
			"weir: warning: probe neighbours error=\"no such\\ndevice\"\n"}, // one line, whatever it contains
		{func(l *slog.Logger) { l.With("interface", "lan0").WithGroup("g").Info("attached", "time", 1) },
			"weir: attached interface=lan0 g.time=1\n"},
		{func(l *slog.Logger) { l.Error("stop") }, "weir: error: stop\n"},
		{func(l *slog.Logger) { l.Debug("unheard") }, ""},
		{func(l *slog.Logger) { l.Error("the rules do not load", "file", "a.conf", "error", refusal(t)) },
			"weir: error: the rules do not load file=a.conf\n" + refusal(t).Error() + "\n"},
	} {
		var out strings.Builder
		test.say(slog.New(newVoice(&out)))
		if out.String() != test.want {
			t.Errorf("said %q, want %q", out.String(), test.want)
		}
	}
}

func TestJSONVoice(t *testing.T) {
	times := regexp.MustCompile(`"time":"\d{4}-\d\d-\d\dT[^"]+",`)
	for _, test := range []struct {
		say  func(l *slog.Logger)
		want string
	}{
		{func(l *slog.Logger) { l.Info("ready") }, `{"level":"info","message":"ready"}`},
		{func(l *slog.Logger) { l.Warn("probe", "error", errors.New("<no>\nsuch"), "within", time.Minute) },
			`{"level":"warning","message":"probe","error":"<no>\nsuch","within_s":60}`},
		{func(l *slog.Logger) { l.Error("the rules do not load", "file", "a.conf", "error", refusal(t)) },
			`{"level":"error","message":"the rules do not load","file":"a.conf","diagnostics":[{"severity":"error",` +
				`"message":"no statement starts with \"pas\"","suggestion":"pass","file":"a.conf","line":1,"column":1,"end_line":1,"end_column":4}]}`},
		{func(l *slog.Logger) { _ = logAsJSON(l, "a.conf", errors.New("read the rules: no")) }, //nolint:errcheck // the status
			`{"level":"error","message":"weir run has failed","error":"read the rules: no"}`},
	} {
		var out strings.Builder
		test.say(slog.New(newJSONVoice(&out)))
		if got := times.ReplaceAllString(out.String(), ""); got != test.want+"\n" || got == out.String() {
			t.Errorf("said %s, want a time and %s", out.String(), test.want)
		}
	}
}
