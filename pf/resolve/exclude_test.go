package resolve_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"weir/pf/resolve"
)

// If a table's exclusions would leave too many networks, there is an error.
func TestManyExclusions(t *testing.T) {
	var b strings.Builder
	b.WriteString("match out nat-to <t>\ntable <t> { 10.0.0.0/8")
	for i := range 1000 {
		fmt.Fprintf(&b, " !10.%d.%d.1", i%256, i/256)
	}
	b.WriteString(" }")
	rules, list := resolve.Load("in", []byte(b.String()), testHost(t))
	if rules == nil {
		t.Fatal(list.Err())
	}
	if got := render(t, &list); !strings.Contains(got, "in:1:18: warning: so many exclusions in the table of a pool is read, but") {
		t.Errorf("warned of %q", got)
	}
}

// Exclusions also apply to what tables hold at run time.
func TestExclusionsOfHost(t *testing.T) {
	host := testHost(t)
	host.Tables = map[string][]resolve.TableEntry{"t": {{Prefix: netip.MustParsePrefix("10.0.0.0/31"), Not: true}}}
	rules, list := resolve.Load("in", []byte("match out nat-to <t>\ntable <t> { 10.0.0.0/30 }"), host)
	if rules == nil {
		t.Fatal(list.Err())
	}
	if got := rules.Rules[0].Nat.Addrs; len(got) != 1 || got[0].Prefix != prefix("10.0.0.2/31") {
		t.Errorf("translates to %v", got)
	}
}
