package resolve_test

import (
	"strings"
	"testing"

	"weir/pf/resolve"
)

// What is read and not enforced is refused with what to do instead.
func TestRemedies(t *testing.T) {
	host := testHost(t)
	for text, want := range map[string]string{
		`pass from route "x"`:                                                              "route; Linux's routes have no labels: name a table, which weir table changes",
		"pass proto udp no state divert-packet port 700":                                   "divert-packet without state; let the rule keep state",
		"pass proto udp no state divert-to 700":                                            "divert-to without state; let the rule keep state",
		"pass in proto icmp divert-to 127.0.0.1 port 700":                                  "for other protocols than TCP and UDP; divert-packet gives a program the packets",
		"pass in inet divert-to 127.0.0.1 port 700":                                        "divert-to for all protocols; write proto tcp or proto udp",
		"pass in inet proto tcp divert-to 127.0.0.1 port 700 no state":                     "divert-to without state; let the rule keep state",
		"pass in inet proto tcp divert-to 127.0.0.1 port 700 rdr-to 10.0.0.1":              "divert-to beside a translation; leave the translation out",
		"pass in inet proto tcp divert-to 127.0.0.1 port 700 route-to 10.0.0.1":            "divert-to beside another route; leave the route out",
		"pass out on em0 inet6 to 64:ff9b::/96 af-to inet from 192.0.2.1":                  "af-to where packets leave; write it in a rule for the interface by which they come in",
		"pass in inet divert-packet port 700 route-to 10.0.0.1":                            "divert-packet beside another route; leave the route out, or write rtable",
		"pass in inet6 to 64:ff9b::/96 divert-packet port 7 af-to inet from 192.0.2.1":     "divert-packet beside af-to; divert the packets on a machine behind this one",
		"pass in inet6 to 64:ff9b::/96 af-to inet from 192.0.2.0/24 bitmask":               "af-to with bitmask; write source-hash",
		"pass in dup-to (em1 2001:db8::9) inet6 to 64:ff9b::/96 af-to inet from 192.0.2.1": "af-to beside dup-to; write dup-to in the rules",
		"ether pass out tagged T":                                                          "ether … tagged, without in; write tagged in a rule for packets",
		"ether pass in queue q":                                                            "ether … queue; write set queue in a rule for packets",
		"ether pass in dnpipe 1":                                                           "ether … dnpipe; write dnpipe in a rule for packets",
		"pass in inet proto sctp to port 80 rdr-to 10.0.0.1 port 81":                       "another port for SCTP; let the server listen at the port that the rule asks for",
		"pass max-pkt-rate 4294968/1":                                                      "max-pkt-rate of more than 4294967 packets; divide both numbers by the same one",
		"pass max-pkt-rate 1/65536":                                                        "max-pkt-rate over more than 65535 seconds; divide both numbers by the same one",
		"match out inet nat-to { 192.0.2.1 weight 65535, 192.0.2.2 weight 65534 }":         "smaller weights in the same proportion do the same",
		"pass out route-to (em1 10.0.1.0/24) bitmask prefer-ipv6-nexthop inet":             "prefer-ipv6-nexthop with bitmask; write random",
		"pipe 1 config bw 5Mbit/s delay 20ms\npass in on em0 dnpipe 1":                     "delay of dummynet; tc-netem(8) does it on the interface",
		"pipe 1 config bw 5Mbit/s mask src-ip 0xffffffff\npass in on em0 dnpipe 1":         "write mask in a queue of the pipe, whose hosts share it fairly",
		"set fingerprints \"/nowhere/pf.os\"\nblock in proto tcp from any os \"Linux\"":    "OpenBSD's pf.os may be copied",
	} {
		_, list := resolve.Load("in", []byte(text+"\n"), host)
		list.Enforce()
		if err := list.Err(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

// After set state-policy if-bound, the states of what a socket gets are floating, with a warning.
func TestDivertedStatesFloat(t *testing.T) {
	text := "set state-policy if-bound\npass in inet proto tcp to port 21 divert-to 127.0.0.1 port 8021\npass in proto tcp to port 22\npass in divert-packet port 700\n"
	rules, list := resolve.Load("in", []byte(text), testHost(t))
	list.Enforce()
	if err := list.Err(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(list.String(), "the states of a rule with divert-to are floating, not if-bound") {
		t.Errorf("it says\n%s", list.String())
	}
	for i, bound := range []bool{false, true, true} {
		if rules.Rules[i].IfBound != bound {
			t.Errorf("%s: bound %v", rules.Rules[i].Text, rules.Rules[i].IfBound)
		}
	}
}
