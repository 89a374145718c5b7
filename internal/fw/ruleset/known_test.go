package ruleset_test

import (
	"strings"
	"testing"

	"weir/internal/fw/ruleset"
	"weir/pf/resolve"
)

// The compiler refuses exactly what `check --enforce` refuses.
func TestKnown(t *testing.T) {
	for _, test := range []struct{ rules, fault string }{
		{"pass rtable 1", ""},
		{"pass max-pkt-rate 1/1", ""},
		{"pass in divert-packet port 7 no state", "Divert"},
		{"pass in divert-packet port 7", ""},
		{"pass divert-to 7\npass out proto icmp divert-to 7", ""},
		{"pass in divert-to 7 no state", "Divert"},
		{"pass on rdomain 1", ""},
		{"scrub in on em0 all rtable 1\nscrub on em0 from urpf-failed to no-route no-df\npass", ""},
		{"scrub in on em0 fragment no reassemble\nscrub in\npass", ""},
		{"pass in dup-to 192.0.2.1\npass dup-to (em0 192.0.2.1) inet", ""},
		{"pass in dup-to (em0 192.0.2.1) inet no state", ""},
		{"pass in inet6 to 64:ff9b::/96 af-to inet from 192.0.2.1", ""},
		{"pass in inet af-to inet6 from 2001:db8::/96\npass in inet af-to inet6 from (em0) to 2001:db8::1", ""},
		{"pass in on em0 route-to (em0 192.0.2.9) inet6 to 64:ff9b::/96 af-to inet from 192.0.2.1", ""},
		{"pass in on em0 reply-to (em0 2001:db8::9) inet6 to 64:ff9b::/96 af-to inet from 192.0.2.1 rtable 1", ""},
		{"pass in on em0 dup-to (em0 2001:db8::9) inet6 to 64:ff9b::/96 af-to inet from 192.0.2.1", "dup-to"},
		{"pass in on em0 route-to (em0 192.0.2.0/28) bitmask inet6 to 64:ff9b::/96 af-to inet from 192.0.2.1", "bitmask"},
		{"pass in inet6 to 64:ff9b::/96 keep state (if-bound) af-to inet from 192.0.2.1", ""},
		{"pass in inet6 to 64:ff9b::/96 af-to inet from 192.0.2.0/24 bitmask", "bitmask"},
		{"pass out inet6 to 64:ff9b::/96 af-to inet from 192.0.2.1", "af-to where packets leave"},
		{"pass in inet af-to inet6 from (em0)\npass in inet af-to inet6 from (em0)/64", ""},
		{"pass in inet af-to inet6 from (em0:network) to (em1:network)", ""},
		{"table <t> persist\npass in inet af-to inet6 from <t>\npass in inet af-to inet6 from 2001:db8::1 to <t>", ""},
		{"match out nat-to { 192.0.2.1 192.0.2.2 } least-states\nmatch out nat-to (em0) least-states sticky-address", ""},
		{"match out nat-to (em0) random sticky-address\nmatch in rdr-to { 10.0.0.1, 10.0.0.2 } source-hash secret", ""},
		{"match in nat-to 192.0.2.1", ""},
		{"match out rdr-to 192.0.2.1", ""},
		{"anchor a quick {\npass\n}", ""},
		{"nat on em0 from 10.0.0.0/8 to any -> { 192.0.2.1, 192.0.2.2 } least-states", ""},
		{"rdr on em0 from 10.0.0.0/8 to any rtable 1 -> 192.0.2.1", ""},
		{"match out nat-to 192.0.2.0/28 bitmask\nmatch inet from 10.0.0.0/24 binat-to 192.0.2.0/24", ""},
		{"nat on em0 from 10.0.0.0/8 to any -> 192.0.2.1 random\nno rdr on em0 from any to any\nbinat pass log on em0 from 10.0.0.0/24 to any -> 192.0.2.0/24", ""},
		{"rdr-anchor \"x\" all\nnat-anchor \"y/*\" all\npass", ""},
		{"anchor a quick {\nmatch tag t\npass quick\n}", ""},
		{"nat on em0 inet from 10.0.0.0/8 to any -> 192.0.2.1\nnat on em1 inet from 10.0.0.0/8 to any -> 192.0.2.1\nblock\nanchor x quick {\npass in quick\n}", ""},
		{"anchor a on em0 {\npass proto tcp to port 22 label one\n}\nanchor b", ""},
		{"match out nat-to 192.0.2.1 random\nmatch out nat-to { 192.0.2.1 192.0.2.4/30 }\nmatch out nat-to (em0)", ""},
		{"match out nat-to (em0:0) sticky-address\npass in rdr-to 10.0.0.1 source-hash", ""},
		{"block return-rst log (all) quick on ! em0 inet proto tcp from ! <t> port > 5 to self flags S/SA tag a ! tagged b\npass allow-opts fragment", ""},
		{"pass tos 4 probability 50% max-pkt-size 100\nblock in from urpf-failed\nblock from ! no-route to no-route", ""},
		{"pass out proto tcp user { < 5, unknown } group != 0 received-on em0\nblock out ! received-on any", ""},
		{"pass in proto sctp to port 80 rdr-to 10.0.0.1 port 80\npass out proto sctp to port 5 nat-to 192.0.2.1\nmatch out nat-to 192.0.2.1 map-e-portset 6/8/52", ""},
		{"pass in proto sctp to port 80 rdr-to 10.0.0.1 port 81", "SCTP"},
		{"rdr on em0 proto sctp from any to any port 80 -> 10.0.0.1 port 80:90", "SCTP"},
		{"pass proto tcp from any os unknown", "fingerprints"},
		{"block return-icmp (1, 2) proto icmp\npass inet proto icmp icmp-type 8 code 0 no state", ""},
	} {
		rules, list := resolve.Load("in", []byte(test.rules), &resolve.Host{})
		if rules == nil {
			t.Errorf("%s: %v", test.rules, list.Err())
			continue
		}
		_, err := ruleset.Compile(rules, ruleset.Snapshot{})
		switch {
		case test.fault == "" && err != nil:
			t.Errorf("%s: %v", test.rules, err)
		case test.fault != "" && (err == nil || !strings.Contains(err.Error(), test.fault)):
			t.Errorf("%s: got %v, want %q", test.rules, err, test.fault)
		}
		if list.Enforce(); list.HasErrors() != (test.fault != "") {
			t.Errorf("%s: enforced: %v", test.rules, list.Err())
		}
	}
}
