package doctor

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"weir/pf/resolve"
	"weir/pf/source"
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
		{more, "true", "set require-order yes\nnat on ppp0 from any to any -> (ppp0)\npass out all", "set limit states 200000\nset require-order yes\nnat on ppp0 from any to any -> (ppp0)\npass out all"},
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

// TestRulesMeanIt reads what the remedies make of the rules, as weir check does.
func TestRulesMeanIt(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{"weir": "#!/bin/sh\n", "more.conf": "pass out\n"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o700); err != nil { //nolint:gosec // a program has to be executable
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
	file := filepath.Join(folder, "weir.conf")
	host := &resolve.Host{Interfaces: []resolve.HostInterface{{Name: "lo"}, {Name: "ppp0"}}}
	apply := func(command, rules string) *resolve.Ruleset {
		t.Helper()
		if err := os.WriteFile(file, []byte(rules), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("sh", "-c", strings.ReplaceAll(command, RulesFile, file)).CombinedOutput(); err != nil { //nolint:gosec // the remedy is what is tested
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		of, list := resolve.LoadWith(file, text, host, resolve.Settings{Files: source.Disk{}})
		if of == nil {
			t.Fatalf("of\n%sbecomes\n%s%v", rules, text, list)
		}
		return of
	}
	more := changeRules(limitStates(200_000))
	for _, rules := range []string{
		"pass\n",
		"pass\nset limit states 100000\n",
		"set limit { frags 5000, states 100000 }\npass",
		"set limit { states 100000, \\\n frags 5000 }\npass\n",
		"set limit \\\n states 100000 # enough\npass\n",
		"set limit {\n frags 5000,\n states 100000\n}\npass\n",
		"most = 100000\nset limit states $most\npass\n",
		"set require-order yes\npipe 1 config bw 10Mbit/s\npass dnpipe 1\n",
		"ext = \"{ lo, \\\n  pass }\"\npass\n",
	} {
		if got := apply(more, rules); got.Options.MaxStates != 200_000 {
			t.Errorf("of\n%s%d states may be", rules, got.Options.MaxStates)
		}
	}
	ppp := Interface{Name: "ppp0", Kind: "ppp", Up: true, MTU: 1492}
	b := forwarding(4, 20)
	b.weir(0)
	clamp := (&view{Snapshot: b.s}).clamp(&ppp)[0].Command
	for _, rules := range []string{
		"set skip on lo\nblock\npass\n",
		"set skip on lo\ninclude \"" + filepath.Join(folder, "more.conf") + "\"\n",
		"ext = \"{ lo, \\\n  pass }\"\nblock\n",
	} {
		of := apply(clamp, rules)
		if len(of.Rules) < 3 || of.Rules[0].Scrub.MaxMSS != 1452 || of.Rules[1].Scrub.MaxMSS != 1432 {
			t.Errorf("of\n%sthe first rules limit no MSS", rules)
		}
	}
}
