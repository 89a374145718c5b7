package doctor

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestRaise checks that no command lowers what it is meant to raise.
func TestRaise(t *testing.T) {
	b := forwarding(4, 20)
	b.s.Sysctls = map[string]string{"net.core.somaxconn": "65535", "net.core.rmem_max": "4096"}
	v := view{Snapshot: b.s}
	for _, c := range []struct {
		want     string
		settings []setting
	}{
		{"sysctl -w net.core.rmem_max=8192", []setting{{"net.core.somaxconn", 16384}, {"net.core.rmem_max", 8192}}},
		{"", []setting{{"net.core.somaxconn", 16384}}},
		{"sysctl -w net.ipv4.tcp_max_syn_backlog=8192", []setting{{"net.ipv4.tcp_max_syn_backlog", 8192}}},
	} {
		if got := v.raise(c.settings...); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// TestRulesStayWhole runs the remedies that change the rules, with a checker that refuses them.
func TestRulesStayWhole(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "weir.conf")
	const rules = "set require-order yes\nset skip on lo\npass out all"
	if err := os.WriteFile(file, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	check := filepath.Join(folder, "weir")
	b := forwarding(4, 20)
	b.s.Interfaces = append(b.s.Interfaces, Interface{Name: "ppp0", Kind: "ppp", Up: true, MTU: 1492})
	b.weir(0)
	v := view{Snapshot: b.s}
	clamp := v.clamp(&b.s.Interfaces[len(b.s.Interfaces)-1])[0].Command
	b.s.After.Weir.States, b.s.Weir.StateLimit = 100_000, 100_000
	full := states(&v)
	more := full.findings[0].Remedies[0].Command
	for _, c := range []struct{ command, verdict, before, want string }{
		{clamp, "false", rules, rules},
		{clamp, "true", rules, "set require-order yes\nset skip on lo\nmatch on ppp0 inet scrub (max-mss 1452)\nmatch on ppp0 inet6 scrub (max-mss 1432)\npass out all\n"},
		{clamp, "true", "set skip on lo\nblock\npass\n", "set skip on lo\nmatch on ppp0 inet scrub (max-mss 1452)\nmatch on ppp0 inet6 scrub (max-mss 1432)\nblock\npass\n"},
		{more, "false", rules, rules},
		{more, "true", "set require-order yes\nnat on ppp0 from any to any -> (ppp0)\npass out all", "set require-order yes\nset limit states 200000\nnat on ppp0 from any to any -> (ppp0)\npass out all\n"},
		{clamp, "no file", "", ""},
		{more, "no file", "", ""},
	} {
		command := c.command
		if err := os.WriteFile(file, []byte(c.before), 0o600); err != nil {
			t.Fatal(err)
		}
		if c.verdict == "no file" {
			c.verdict = "true"
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
			c.want = ""
		}
		if err := os.WriteFile(check, []byte("#!/bin/sh\n"+c.verdict+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		run := exec.Command("sh", "-c", strings.ReplaceAll(command, RulesFile, file))
		run.Env = append(os.Environ(), "PATH="+folder+":"+os.Getenv("PATH"))
		out, err := run.CombinedOutput()
		if (err == nil) != (c.want != c.before) {
			t.Errorf("%s: %v\n%s", command, err, out)
		}
		if got, _ := os.ReadFile(file); string(got) != c.want {
			t.Errorf("with a check that says %s the rules are\n%s", c.verdict, got)
		}
	}
}
