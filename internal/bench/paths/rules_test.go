package paths

import (
	"net/netip"
	"os/exec"
	"strings"
	"testing"

	"weir/examples"
	"weir/internal/bench/testbed"
	"weir/internal/bench/traffic"
	"weir/pf/resolve"
)

// Only the limit of states may differ from the example.
func TestWeirRules(t *testing.T) {
	if got := weirRules(traffic.Case{Flows: 1000}); got != examples.GatewayConf {
		t.Error("1,000 flows need no other limit")
	}
	before, after := strings.Split(examples.GatewayConf, "\n"), strings.Split(weirRules(traffic.Case{Flows: 1_000_000}), "\n")
	if len(before) != len(after) {
		t.Fatalf("%d lines became %d", len(before), len(after))
	}
	changed := 0
	for i := range before {
		if before[i] != after[i] {
			changed++
			if after[i] != "set limit states 2000000" {
				t.Errorf("%q became %q", before[i], after[i])
			}
		}
	}
	if changed != 1 {
		t.Errorf("%d lines changed, want 1", changed)
	}
}

// A requested limit is used, even if it is below the example's.
func TestLimit(t *testing.T) {
	const limit = 60_000
	rules, list := resolve.LoadWith(testbed.RulesFile, []byte(weirRules(traffic.Case{Flows: 40_000, Limit: limit})), nil, resolve.Settings{})
	if rules == nil {
		t.Fatal(list)
	}
	if got := rules.Options.MaxStates; got != limit {
		t.Errorf("set limit states %d, want %d", got, limit)
	}
}

// Both rule files have the requested number of further rules. None is repeated, and none
// is about one of the benchmark's hosts.
func TestFurtherRules(t *testing.T) {
	for _, c := range []traffic.Case{{Rules: MaxRules, Family: 4, Protocol: traffic.UDP}, {Rules: MaxRules, Family: 6, Protocol: traffic.TCP}} {
		network := 16
		if c.IPv6() {
			network = 48
		}
		seen := map[string]bool{}
		moreRules(c, func(source netip.Addr, port int) string {
			for _, n := range []testbed.Address{testbed.LANHosts, testbed.RoutedHosts, testbed.TargetNet} {
				if prefix, err := n.Addr(c.IPv6()).Prefix(network); err != nil || prefix.Contains(source) {
					t.Errorf("%s may be a host's: %v", source, err)
				}
			}
			if port < 1024 || port > 65535 {
				t.Errorf("port %d", port)
			}
			seen[source.String()] = true
			return ""
		})
		if len(seen) != c.Rules {
			t.Errorf("%d sources, want %d", len(seen), c.Rules)
		}
	}
}

// Both programs accept the text and have that many more rules.
func TestFurtherRulesAreTaken(t *testing.T) {
	const more = 300
	for _, c := range []traffic.Case{{Family: 4, Protocol: traffic.UDP}, {Family: 6, Protocol: traffic.TCP}} {
		longer := c
		longer.Rules = more
		if got := countRules(t, longer) - countRules(t, c); got != more {
			t.Errorf("%s: weir has %d rules more, want %d", c, got, more)
		}
		if got := strings.Count(nftRules(longer), " drop\n") - strings.Count(nftRules(c), " drop\n"); got != more {
			t.Errorf("%s: nft has %d rules more, want %d", c, got, more)
		}
		if nft, err := exec.LookPath("nft"); err == nil {
			check := exec.Command(nft, "--check", "-f", "-")
			check.Stdin = strings.NewReader(nftRules(longer))
			if out, err := check.CombinedOutput(); err != nil {
				t.Errorf("%s: nft: %v\n%.500s", c, err, out)
			}
		}
	}
}

// Both programs accept a further table. It has the requested number of addresses and none
// of the benchmark's hosts.
func TestFurtherTable(t *testing.T) {
	for _, c := range []traffic.Case{{Family: 4, Protocol: traffic.UDP, Tables: 100_000}, {Family: 6, Protocol: traffic.TCP, Tables: 100_000}} {
		rules, list := resolve.LoadWith(testbed.RulesFile, []byte(weirRules(c)), nil, resolve.Settings{})
		if rules == nil {
			t.Fatalf("%s: %v", c, list)
		}
		held := 0
		for _, table := range rules.Tables {
			if table.Name != "strangers" {
				continue
			}
			held = len(table.Entries)
			for _, e := range table.Entries {
				for _, n := range []testbed.Address{testbed.LANHosts, testbed.RoutedHosts, testbed.TargetNet} {
					if prefix, err := n.Addr(c.IPv6()).Prefix(map[bool]int{false: 10, true: 48}[c.IPv6()]); err != nil || prefix.Overlaps(e.Prefix) {
						t.Fatalf("%s may be a host's: %v", e.Prefix, err)
					}
				}
			}
		}
		if held != c.Tables {
			t.Errorf("%s: the table holds %d addresses, want %d", c, held, c.Tables)
		}
		if nft, err := exec.LookPath("nft"); err == nil {
			check := exec.Command(nft, "--check", "-f", "-")
			check.Stdin = strings.NewReader(nftRules(c))
			if out, err := check.CombinedOutput(); err != nil {
				t.Errorf("%s: nft: %v\n%.500s", c, err, out)
			}
		}
	}
}

func countRules(t *testing.T, c traffic.Case) int {
	t.Helper()
	rules, list := resolve.LoadWith(testbed.RulesFile, []byte(weirRules(c)), nil, resolve.Settings{})
	if rules == nil {
		t.Fatalf("%s: %v", c, list)
	}
	return len(rules.Rules)
}
