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
	command := v.clamp(&b.s.Interfaces[len(b.s.Interfaces)-1])[0].Command
	for _, c := range []struct{ verdict, want string }{
		{"false", rules},
		{"true", "set require-order yes\nset skip on lo\nmatch on ppp0 inet scrub (max-mss 1452)\nmatch on ppp0 inet6 scrub (max-mss 1432)\npass out all\n"},
	} {
		if err := os.WriteFile(check, []byte("#!/bin/sh\n"+c.verdict+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		run := exec.Command("sh", "-c", strings.ReplaceAll(command, RulesFile, file))
		run.Env = append(os.Environ(), "PATH="+folder+":"+os.Getenv("PATH"))
		out, err := run.CombinedOutput()
		if (err == nil) != (c.verdict == "true") {
			t.Errorf("%s: %v\n%s", command, err, out)
		}
		if got, _ := os.ReadFile(file); string(got) != c.want {
			t.Errorf("with a check that says %s the rules are\n%s", c.verdict, got)
		}
	}
}
