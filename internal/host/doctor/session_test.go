package doctor

import (
	"strings"
	"testing"
)

// TestSessions checks what is said about PPPoE sessions of weir, by what their logs say.
func TestSessions(t *testing.T) {
	refuses := "the peer refuses name or password: locked"
	for _, c := range []struct {
		name     string
		session  WeirSession
		severity Severity
		says     string // "": nothing
		command  string
	}{
		{"it is up", WeirSession{State: "up", Seconds: 100}, Notice, "", ""},
		{"the first attempt", WeirSession{State: "starting", Seconds: 3, Step: "PADI"}, Notice, "", ""},
		{"an odd provider", WeirSession{State: "up", Seconds: 100, Quirks: []string{"no IPv6: no answer"}}, Notice, "others do not: no IPv6: no answer", "weir pppoe log ppp0"},
		{"nobody there", WeirSession{State: "starting", Seconds: 40, Step: "PADI", Why: "no concentrator answers"}, Critical, "end at PADI, no concentrator", "tcpdump -eni eth0.7 pppoed"},
		{"nobody there, for long enough", WeirSession{State: "starting", Seconds: 16, Step: "PADI"}, Critical, "end at PADI", ""},
		{"a wrong password", WeirSession{State: "waiting", Seconds: 2, Step: "authentication", Why: refuses}, Critical, "end at authentication", "weir pppoe reconnect ppp0"},
		{"it has ended", WeirSession{State: "waiting", Seconds: 2, Step: "session", Why: "ended by the concentrator"}, Critical, "has ended", ""},
		{"by command", WeirSession{State: "down", Seconds: 2}, Notice, "by command", "weir pppoe reconnect ppp0"},
		{"no password", WeirSession{State: "failed", Why: "read the password: others may read it"}, Critical, "others may read it", "ip -br link show eth0.7"},
	} {
		b := newBox(2)
		b.weir(1)
		c.session.Name, c.session.On = "ppp0", "eth0.7"
		b.s.Weir.Sessions = []WeirSession{c.session}
		r, err := Examine(b.s, nil)
		if err != nil {
			t.Fatal(err)
		}
		var found []Finding
		for _, f := range r.Findings {
			if f.Check == "PPP-2" {
				found = append(found, f)
			}
		}
		if c.says == "" {
			if len(found) > 0 {
				t.Errorf("%s: %+v", c.name, found)
			}
			continue
		}
		if len(found) != 1 || found[0].Severity != c.severity || !strings.Contains(found[0].Says, c.says) || c.command != "" && found[0].Remedies[0].Command != c.command {
			t.Errorf("%s: %+v", c.name, found)
			continue
		}
		evidence := strings.Join(found[0].Evidence, "\n")
		if c.session.Why != "" && !strings.Contains(evidence+found[0].Says, c.session.Why) {
			t.Errorf("%s: the log's words are not there: %+v", c.name, found[0])
		}
	}
	b := newBox(2)
	b.weir(1)
	b.s.Unreadable = map[string]string{"weir.sessions": "no daemon runs"}
	r, err := Examine(b.s, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(r.Verdict.Unseen, " "); !strings.Contains(got, "PPP-2") {
		t.Errorf("without a daemon these are unseen: %s", got)
	}
}

// TestSessionsRedacted checks that addresses in the words of a log are replaced.
func TestSessionsRedacted(t *testing.T) {
	b := newBox(2)
	b.weir(1)
	b.s.Weir.Sessions = []WeirSession{{Name: "ppp0", Why: "no answer of 00:11:22:33:44:55", Quirks: []string{"PADO from 00:11:22:33:44:55 is not taken: another name"}}}
	Redact(b.s)
	if s := b.s.Weir.Sessions[0]; strings.Contains(s.Why+s.Quirks[0], "00:11") || !strings.Contains(s.Quirks[0], "another name") {
		t.Errorf("%+v", s)
	}
}
