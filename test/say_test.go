package test

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"

	"weir/internal/lab"
	"weir/pf/diag"
	"weir/test/lib"
)

// A saying is a message of weir run --json.
type saying struct {
	Time, Level, Message       string
	File, Interface, Hook, Why string
	Error                      string
	Rules                      int
	Within                     float64 `json:"within_s"`
	Diagnostics                []diag.Record
}

// sayings returns all messages of weir run --json; there may be nothing else between
// them.
func sayings(b *lib.Box, p *lib.Process) []saying {
	b.Helper()
	var all []saying
	for line := range strings.Lines(p.Said()) {
		var s saying
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			b.Fatalf("%v in %s", err, line)
		}
		if s.Time == "" || s.Level == "" || s.Message == "" {
			b.Errorf("time, level and message are missing in %s", line)
		}
		all = append(all, s)
	}
	return all
}

// heard returns the first message for which so holds.
func heard(b *lib.Box, p *lib.Process, what string, so func(*saying) bool) saying {
	b.Helper()
	all := sayings(b, p)
	for i := range all {
		if so(&all[i]) {
			return all[i]
		}
	}
	b.Errorf("it does not say %s:\n%s", what, p.Said())
	return saying{}
}

//	fw: weir run --json
//
// A program that starts weir reads objects: what is attached and loaded, a load to be
// confirmed, a file that is refused, the end.
func TestRunSaysInJSON(t *testing.T) {
	t.Parallel()
	b := weir.Box(t, "xdp")
	is := func(message string) func(*saying) bool {
		return func(s *saying) bool { return strings.HasPrefix(s.Message, message) }
	}
	refused := b.WeirStart("pass\nblok\n", "--json")
	refused.Wait(lib.StartPatience, 1)
	if s := heard(b, refused, "that the file is refused", is("the rules do not load")); s.Level != "error" || s.File == "" ||
		len(s.Diagnostics) != 1 || s.Diagnostics[0].Line != 2 || s.Diagnostics[0].Suggestion != "block" {
		b.Errorf("of a file with a fault: %+v", s)
	}
	missing := b.WeirStart(b.TempDir()+"/missing.conf", "--json")
	missing.Wait(lib.StartPatience, 1)
	if s := heard(b, missing, "that there is no file", is("weir run has failed")); s.Level != "error" || !strings.HasPrefix(s.Error, "read the rules: ") {
		b.Errorf("of a missing file: %+v", s)
	}

	p := b.WeirStart("pass on dmz0\n", "--json")
	b.AwaitSaid(p, `"ready"`)
	heard(b, p, "that wan0 has XDP", func(s *saying) bool {
		return s.Message == "attached" && s.Interface == "wan0" && s.Hook == "xdp" && s.Why == "forced by --hook xdp"
	})
	if s := heard(b, p, "what is loaded", is("loaded")); s.Rules != 1 || len(s.Diagnostics) != 1 || s.Diagnostics[0].Severity != "warning" {
		b.Errorf("of rules with a warning: %+v", s)
	}
	b.Weir("load", "--confirm", "60s", b.Rules("pass\n"))
	b.AwaitSaid(p, "will roll back unless confirmed")
	if s := heard(b, p, "that it waits", is("will roll back unless confirmed")); s.Level != "warning" || s.Within != 60 {
		b.Errorf("of a load to be confirmed: %+v", s)
	}
	b.Weir("confirm")
	p.Signal(syscall.SIGTERM)
	p.Wait(lib.StartPatience, 0)
	heard(b, p, "that it ends", is("the daemon ends"))
	b.Ping(lab.LAN, fwLAN, 1)
}
