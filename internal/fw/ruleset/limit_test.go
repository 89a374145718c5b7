package ruleset_test

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"weir/internal/fw/ruleset"
	"weir/pf/resolve"
	"weir/pf/token"
)

func address(prefix string) resolve.Address {
	return resolve.Address{Kind: resolve.PrefixAddress, Prefix: netip.MustParsePrefix(prefix)}
}

// passes returns n rules "pass".
func passes(n int) []*resolve.Rule {
	var rules []*resolve.Rule
	for i := range n {
		rules = append(rules, &resolve.Rule{
			Nr: i, Pos: token.Pos(100 + i), Text: "pass all", Interface: resolve.Interface{Any: true},
		})
	}
	return rules
}

// Rules that cannot be compiled cause an Error with the rule's place.
func TestErrors(t *testing.T) {
	manyTargets := func(n int) *resolve.Translation {
		tr := &resolve.Translation{}
		for range n {
			tr.Addrs = append(tr.Addrs, address("192.0.2.0/24"))
		}
		return tr
	}
	if resolve.MaxHeld != ruleset.MaxRules {
		t.Errorf("check allows %d rules, the dataplane %d", resolve.MaxHeld, ruleset.MaxRules)
	}
	for _, test := range []struct {
		name  string
		rules func() []*resolve.Rule
		rule  int
		want  string
	}{
		{"rules", func() []*resolve.Rule { return passes(ruleset.MaxRules + 5) }, ruleset.MaxRules,
			"compile rule 65536 (pass all): there are 65541 rules, more than 65536"},
		{"targets", func() []*resolve.Rule {
			rules := passes(3)
			rules[1].Nat = manyTargets(65537)
			return rules
		}, 1, "compile rule 1 (pass all): its translation's targets are more than 65536, or all translations' more than 1048576"},
		{"target", func() []*resolve.Rule {
			rules := passes(3)
			rules[2].Rdr = &resolve.Translation{Addrs: []resolve.Address{{Kind: resolve.TableAddress, Table: "t"}}}
			return rules
		}, 2, "compile rule 2 (pass all): the target of a translation is neither an address nor an interface"},
		{"address", func() []*resolve.Rule {
			rules := passes(2)
			rules[0].To.Addr = resolve.Address{Kind: resolve.PrefixAddress}
			return rules
		}, 0, "compile rule 0 (pass all): an address is missing"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := ruleset.Compile(&resolve.Ruleset{Rules: test.rules()}, ruleset.Snapshot{})
			e, ok := errors.AsType[*ruleset.Error](err)
			if !ok || e.Error() != test.want || e.Pos != token.Pos(100+test.rule) {
				t.Errorf("got %v at %v, want %q at %d", err, e, test.want, 100+test.rule)
			}
		})
	}
}

// Conditions that overlap in too many ways are refused before they fill the memory.
func TestTooManyVectors(t *testing.T) {
	// Every 512th rule covers all of 10/8. So each of the 32,704 classes of its hosts
	// differs from the common vector in all 64 chunks.
	rules := passes(32768)
	for i, r := range rules {
		host := netip.AddrFrom4([4]byte{10, byte(i >> 7), byte(i << 1), 0})
		r.From.Addr = resolve.Address{Kind: resolve.PrefixAddress, Prefix: netip.PrefixFrom(host, 32)}
		if i%512 == 0 {
			r.From.Addr = address("10.0.0.0/8")
		}
	}
	_, err := ruleset.Compile(&resolve.Ruleset{Rules: rules}, ruleset.Snapshot{})
	if err == nil || !strings.Contains(err.Error(), "overlap those of other rules in too many ways") {
		t.Errorf("got %v", err)
	}
}

// Tables whose entries do not fit are refused. The error has the place of a rule that
// names one.
func TestTooManySets(t *testing.T) {
	const addresses = 1<<16 + 1000 // each is in a different set of tables
	rs := &resolve.Ruleset{Rules: passes(18)}
	for bit := range 17 {
		table := &resolve.Table{Name: fmt.Sprintf("t%d", bit)}
		for i := range addresses {
			if i>>bit&1 == 1 {
				host := netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
				table.Entries = append(table.Entries, resolve.TableEntry{Prefix: netip.PrefixFrom(host, 32)})
			}
		}
		rs.Tables = append(rs.Tables, table)
		rs.Rules[bit+1].From.Addr = resolve.Address{Kind: resolve.TableAddress, Table: table.Name}
	}
	_, err := ruleset.Compile(rs, ruleset.Snapshot{})
	e, ok := errors.AsType[*ruleset.Error](err)
	if !ok || e.Rule == 0 || e.Pos != token.Pos(100+e.Rule) || !strings.Contains(e.What, "do not fit") {
		t.Errorf("got %v at %+v", err, e)
	}
}
