package dataplane

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/fw/ruleset"
	"weir/internal/fw/state"
)

// shake returns the steps of a TCP handshake from the LAN. The last segment is not sent on
// if end says so.
func shake(src, dst string, port int, end string) []step {
	client, server := fmt.Sprintf("%s:%d", src, port), dst+":80"
	if strings.Contains(src, ":") {
		client, server = fmt.Sprintf("[%s]:%d", src, port), "["+dst+"]:80"
	}
	opening := fmt.Sprintf("tcp %s > %s S seq 5", client, server)
	answer := fmt.Sprintf("tcp %s > %s SA seq 9 ack 6", server, client)
	ack := fmt.Sprintf("tcp %s > %s A seq 6 ack 10", client, server)
	last := step{"tcx lan", ack, "forward state wan " + ack + " ttl 63"}
	if end != "" {
		last.want = end
	}
	return []step{
		{"xdp lan", opening, "forward rule wan " + opening + " ttl 63"},
		{"xdp wan", answer, "forward state lan " + answer + " ttl 63"},
		last,
	}
}

func opens(src string, port int) string {
	return fmt.Sprintf("tcp %s:%d > 198.51.100.9:80 S seq 5", src, port)
}

// goes returns a step of a packet from the LAN that is forwarded.
func goes(packet string) step {
	return step{"xdp lan", packet, "forward rule wan " + packet + " ttl 63"}
}

// Quick anchors end the evaluation if one of their rules decides, also one without quick.
// Conditions of anchors are tested where the anchor stands.
func testAnchors(h *harness) {
	h.plays([]play{
		{"the last rule that matches inside decides", "anchor quick {\npass in proto udp\nblock in proto udp to port 53\n}\npass", []step{
			{"xdp lan", "udp 192.168.1.10:1 > 198.51.100.9:53", "drop block"},
			{"tcx lan", "udp [fd00:1::10]:1 > [2001:db8:9::1]:53", "drop block"},
			goes("udp 192.168.1.10:1 > 198.51.100.9:54"),
		}},
		{"no rule behind it is evaluated", "anchor quick {\npass in proto udp to port 53\n}\nmatch in rdr-to 198.51.100.7\nblock in proto udp", []step{
			{"xdp lan", "udp 192.168.1.10:1 > 198.51.100.9:53", "forward no-rule wan udp 192.168.1.10:1 > 198.51.100.9:53 ttl 63"},
			{"xdp lan", "udp 192.168.1.10:1 > 198.51.100.9:54", "drop block"},
		}},
		{"match rules inside go on", "anchor quick {\npass in proto udp\nmatch in proto udp rdr-to 198.51.100.7\nblock in inet to 198.51.100.9\n}\nblock in", []step{
			{"xdp lan", "udp 192.168.1.10:1 > 198.51.100.9:53", "forward no-rule wan udp 192.168.1.10:1 > 198.51.100.7:53 ttl 63"},
		}},
		{"the inner anchor ends it", "anchor quick {\nanchor quick {\npass in proto udp\n}\nblock in\n}", []step{
			{"xdp lan", "udp 192.168.1.10:1 > 198.51.100.9:53", "forward no-rule wan udp 192.168.1.10:1 > 198.51.100.9:53 ttl 63"},
			{"xdp lan", "tcp 192.168.1.10:1 > 198.51.100.9:80 S", "drop block"},
		}},
		{"a condition of an anchor that its rules cannot take over", "block\nanchor in proto udp max-pkt-rate 1/60 {\npass proto udp to port 53\n}\npass out", []step{
			goes("udp 192.168.1.10:1 > 198.51.100.9:53"),
			{"xdp lan", "udp 192.168.1.10:2 > 198.51.100.9:53", "drop block"},
			{"tcx lan", "udp [fd00:1::10]:2 > [2001:db8:9::1]:53", "drop block"},
		}},
		{"a condition on what a rule inside translates", "block in\nanchor in inet to 198.51.100.9 {\nmatch in proto udp rdr-to 198.51.100.7\npass in\n}", []step{
			{"xdp lan", "udp 192.168.1.10:1 > 198.51.100.9:53", "forward no-rule wan udp 192.168.1.10:1 > 198.51.100.7:53 ttl 63"},
			{"xdp lan", "udp 192.168.1.10:1 > 198.51.100.8:53", "drop block"},
		}},
		{"an anchor in one that does not match", "block\nanchor in ! tagged t tag t {\nanchor in tagged t tag u {\npass tagged u\n}\n}\npass out", []step{
			goes("udp 192.168.1.10:1 > 198.51.100.9:53"),
		}},
		{"the same with another tag", "block\nmatch in proto udp tag t\nanchor in ! tagged t tag t {\nanchor in tagged t tag u {\npass tagged u\n}\n}\npass out", []step{
			{"xdp lan", "udp 192.168.1.10:1 > 198.51.100.9:53", "drop block"},
		}},
		{"an anchor in which no rule decides", "anchor quick {\nmatch in tag t\n}\nblock in proto udp tagged t", []step{
			{"xdp lan", "udp 192.168.1.10:1 > 198.51.100.9:53", "drop block"},
		}},
	})
}

// Limits of rules and of their sources, over IPv4 and IPv6, in both hooks.
func testRuleLimits(h *harness) {
	h.plays([]play{
		{"max", "block\npass in proto udp keep state (max 2)\npass out", []step{
			goes("udp 192.168.1.10:1 > 198.51.100.9:53"),
			goes("udp 192.168.1.11:2 > 198.51.100.9:53"),
			{"xdp lan", "udp 192.168.1.10:3 > 198.51.100.9:53", "drop max-states"},
			{"tcx lan", "udp 192.168.1.12:3 > 198.51.100.9:53", "drop max-states"},
			{"xdp lan", "udp 192.168.1.10:1 > 198.51.100.9:53", "forward state wan udp 192.168.1.10:1 > 198.51.100.9:53 ttl 63"},
		}},
		{"max-pkt-rate: a rule without a state", "block\npass in proto udp no state max-pkt-rate 2/10\npass out no state", []step{
			goes("udp 192.168.1.10:1 > 198.51.100.9:53"),
			goes("udp 192.168.1.11:2 > 198.51.100.9:53"),
			{"xdp lan", "udp 192.168.1.12:3 > 198.51.100.9:53", "drop block"},
			{"wait", "5", ""},
			{"xdp lan", "udp 192.168.1.12:3 > 198.51.100.9:53", "drop block"}, // 3.0 / 2 + 1
			{"wait", "10", ""},
			goes("udp 192.168.1.12:3 > 198.51.100.9:53"),
		}},
		{"max-pkt-rate: packets of its states, but not their replies", "block\npass in proto udp max-pkt-rate 2/10\npass out", []step{
			goes("udp [fd00:1::10]:1 > [2001:db8:9::1]:53"),
			{"xdp wan", "udp [2001:db8:9::1]:53 > [fd00:1::10]:1", "forward state lan udp [2001:db8:9::1]:53 > [fd00:1::10]:1 ttl 63"},
			{"tcx lan", "udp [fd00:1::10]:1 > [2001:db8:9::1]:53", "forward state wan udp [fd00:1::10]:1 > [2001:db8:9::1]:53 ttl 63"},
			{"xdp lan", "udp [fd00:1::10]:1 > [2001:db8:9::1]:53", "drop max-pkt-rate"},
			{"tcx lan", "udp [fd00:1::10]:1 > [2001:db8:9::1]:53", "drop max-pkt-rate"},
			{"xdp lan", "udp [fd00:1::11]:2 > [2001:db8:9::1]:53", "drop block"},
			{"xdp wan", "udp [2001:db8:9::1]:53 > [fd00:1::10]:1", "forward state lan udp [2001:db8:9::1]:53 > [fd00:1::10]:1 ttl 63"},
			{"wait", "10", ""},
			{"xdp lan", "udp [fd00:1::10]:1 > [2001:db8:9::1]:53", "forward state wan udp [fd00:1::10]:1 > [2001:db8:9::1]:53 ttl 63"},
		}},
		{"max-pkt-rate: a rule of both crossings counts a packet twice", "block\npass proto udp max-pkt-rate 3/10", []step{
			goes("udp 192.168.1.10:1 > 198.51.100.9:53"),
			{"xdp lan", "udp 192.168.1.10:1 > 198.51.100.9:53", "drop max-pkt-rate"},
		}},
		{"max-pkt-rate: a block rule stops blocking", "pass\nblock in quick proto udp max-pkt-rate 1/60", []step{
			{"xdp lan", "udp 192.168.1.10:1 > 198.51.100.9:53", "drop block"},
			goes("udp 192.168.1.10:1 > 198.51.100.9:53"),
		}},
		{"each rule for itself", "pass proto udp to port { 53, 54 } keep state (max 1)", []step{
			goes("udp 192.168.1.10:1 > 198.51.100.9:53"),
			goes("udp 192.168.1.10:1 > 198.51.100.9:54"),
			{"xdp lan", "udp 192.168.1.10:2 > 198.51.100.9:54", "drop max-states"},
			{"counts", "", "1 0; 1 0"},
		}},
		{"max-src-nodes", "pass in proto udp keep state (max-src-nodes 1)\npass out", []step{
			goes("udp 192.168.1.10:1 > 198.51.100.9:53"),
			goes("udp 192.168.1.10:2 > 198.51.100.9:53"),
			{"xdp lan", "udp 192.168.1.11:1 > 198.51.100.9:53", "drop max-src-nodes"},
			{"xdp lan", "udp [fd00:1::10]:1 > [2001:db8:9::1]:53", "drop max-src-nodes"},
		}},
		{"max-src-states, IPv6", "pass in proto udp keep state (max-src-states 2)\npass out", []step{
			goes("udp [fd00:1::10]:1 > [2001:db8:9::1]:53"),
			goes("udp [fd00:1::10]:2 > [2001:db8:9::1]:53"),
			{"tcx lan", "udp [fd00:1::10]:3 > [2001:db8:9::1]:53", "drop max-src-states"},
			goes("udp [fd00:1::11]:3 > [2001:db8:9::1]:53"),
		}},
		{"sources of all rules together", "pass in proto udp keep state (source-track global, max-src-states 2)\npass in proto icmp keep state (source-track global)\npass out", []step{
			goes("icmp 192.168.1.10 > 198.51.100.9 type 8 id 3"),
			goes("udp 192.168.1.10:1 > 198.51.100.9:53"),
			{"xdp lan", "udp 192.168.1.10:2 > 198.51.100.9:53", "drop max-src-states"},
		}},
		{"a limit where it leaves counts nothing where it came in", "pass in proto udp keep state (max 2)\npass out proto udp keep state (max 1)", []step{
			goes("udp 192.168.1.10:1 > 198.51.100.9:53"),
			{"xdp lan", "udp 192.168.1.10:2 > 198.51.100.9:53", "drop max-states"},
			{"xdp lan", "udp 192.168.1.10:3 > 198.51.100.9:53", "drop max-states"},
			{"sources", "", ""},
			{"counts", "", "1 0; 1 0"},
		}},
		{"what makes no state counts nowhere", "pass in proto udp keep state (max 9, max-src-states 9)\npass out on wan0 proto udp nat-to 203.0.113.2 static-port", []step{
			{"xdp lan", "udp 192.168.1.10:1 > 198.51.100.9:53", "forward rule wan udp 203.0.113.2:1 > 198.51.100.9:53 ttl 63"},
			{"xdp lan", "udp 192.168.1.11:1 > 198.51.100.9:53", "drop tuple-taken"},
			{"sources", "", "192.168.1.10 1 0 0.0; 192.168.1.11 0 0 0.0"},
			{"counts", "", "1 0"},
		}},
		{"max-src-conn counts handshakes", "block\npass in proto tcp keep state (max-src-conn 1)\npass out", slices.Concat(
			[]step{goes(opens("192.168.1.10", 1)), goes(opens("192.168.1.10", 2)), goes(opens("192.168.1.10", 3))},
			shake("192.168.1.10", "198.51.100.9", 4, ""),
			[]step{{"sources", "", "192.168.1.10 4 1 0.0"}},
			shake("192.168.1.10", "198.51.100.9", 5, "drop max-src-conn"),
			[]step{
				{"xdp wan", "tcp 198.51.100.9:80 > 192.168.1.10:5 A seq 10 ack 6", "drop block"},
				goes(opens("192.168.1.10", 6)),
			},
		)},
		{"max-src-conn-rate, and its threshold falls", "block\npass in proto tcp keep state (max-src-conn-rate 2/10)\npass out", slices.Concat(
			shake("192.168.1.10", "198.51.100.9", 1, ""),
			shake("192.168.1.10", "198.51.100.9", 2, ""),
			[]step{{"sources", "", "192.168.1.10 2 2 2.0"}},
			shake("192.168.1.10", "198.51.100.9", 3, "drop max-src-conn-rate"),
			shake("fd00:1::10", "2001:db8:9::1", 3, ""),
			[]step{{"wait", "5", ""}},
			shake("192.168.1.10", "198.51.100.9", 4, "drop max-src-conn-rate"), // 3.0 / 2 + 1
			[]step{{"wait", "6", ""}},
			shake("192.168.1.10", "198.51.100.9", 5, ""), // 2.5 * 4 / 10 + 1
			[]step{{"wait", "10", ""}},
			shake("192.168.1.10", "198.51.100.9", 6, ""),
			[]step{{"sources", "", "192.168.1.10 6 6 1.0; fd00:1::10 1 1 1.0"}},
		)},
		{"overload keeps the source out of the rule until it is settled", "block\ntable <bad> persist\npass in proto tcp keep state (max-src-conn 1, overload <bad>)\npass in proto udp\npass out", slices.Concat(
			shake("fd00:1::10", "2001:db8:9::1", 1, ""),
			shake("fd00:1::10", "2001:db8:9::1", 2, "drop max-src-conn"),
			[]step{
				{"xdp lan", "tcp [fd00:1::10]:3 > [2001:db8:9::1]:80 S", "drop overload"},
				{"tcx lan", "tcp [fd00:1::10]:4 > [2001:db8:9::1]:80 S", "drop overload"},
				goes("udp [fd00:1::10]:3 > [2001:db8:9::1]:53"),
				goes("tcp [fd00:1::11]:3 > [2001:db8:9::1]:80 S"),
				{"settle", "", "fd00:1::10 <bad>, 0 states ended"},
				goes("tcp [fd00:1::10]:3 > [2001:db8:9::1]:80 S"),
			},
		)},
		{"flush ends the rule's states", "table <bad> persist\npass in proto tcp keep state (max-src-conn 1, overload <bad> flush)\npass in proto udp\npass out", slices.Concat(
			shake("192.168.1.10", "198.51.100.9", 1, ""),
			shake("fd00:1::10", "2001:db8:9::1", 1, ""),
			[]step{goes("udp 192.168.1.10:1 > 198.51.100.9:53")},
			shake("192.168.1.10", "198.51.100.9", 2, "drop max-src-conn"),
			[]step{
				{"settle", "", "192.168.1.10 <bad>, 1 states ended"},
				{"states", "", "17 192.168.1.10:1 > 198.51.100.9:53 udp.first 1:0 1/0; 6 fd00:1::10:1 > 2001:db8:9::1:80 tcp.established 2:2 2/1"},
			},
		)},
		{"flush global ends all states of the source", "table <bad> persist\npass in proto tcp keep state (max-src-conn 1, overload <bad> flush global)\npass in proto udp\npass out", slices.Concat(
			shake("192.168.1.10", "198.51.100.9", 1, ""),
			shake("fd00:1::10", "2001:db8:9::1", 1, ""),
			[]step{goes("udp 192.168.1.10:1 > 198.51.100.9:53")},
			shake("192.168.1.10", "198.51.100.9", 2, "drop max-src-conn"),
			[]step{
				{"settle", "", "192.168.1.10 <bad>, 2 states ended"},
				{"states", "", "6 fd00:1::10:1 > 2001:db8:9::1:80 tcp.established 2:2 2/1"},
			},
		)},
		{"sloppy: one half of a connection, whatever its sequence numbers", "pass proto tcp keep state (sloppy)", []step{
			goes(opens("192.168.1.10", 1)),
			{"xdp lan", "tcp 192.168.1.10:1 > 198.51.100.9:80 A seq 777777777 ack 10 len 5", "forward state wan tcp 192.168.1.10:1 > 198.51.100.9:80 A seq 777777777 ack 10 len 5 ttl 63"},
			{"states", "", "6 192.168.1.10:1 > 198.51.100.9:80 tcp.established 2:2 2/0"},
			{"tcx lan", "tcp 192.168.1.10:1 > 198.51.100.9:80 FA seq 5 ack 4000000000", "forward state wan tcp 192.168.1.10:1 > 198.51.100.9:80 FA seq 5 ack 4000000000 ttl 63"},
			{"states", "", "6 192.168.1.10:1 > 198.51.100.9:80 tcp.finwait 3:3 3/0"},
		}},
		{"sloppy on one of two sides is not enough", "pass in proto tcp keep state (sloppy)\npass out", []step{
			goes(opens("192.168.1.10", 1)),
			{"xdp lan", "tcp 192.168.1.10:1 > 198.51.100.9:80 A seq 777777777 ack 10 len 5", "drop state-mismatch"},
		}},
		{"sloppy on the only side that keeps state, with a limit", "pass in proto tcp keep state (sloppy, max-src-conn 1)\npass out no state", slices.Concat(
			shake("fd00:1::10", "2001:db8:9::1", 1, ""),
			shake("fd00:1::10", "2001:db8:9::1", 2, "drop max-src-conn"),
			[]step{{"xdp lan", "tcp [fd00:1::10]:1 > [2001:db8:9::1]:80 A seq 99999999 ack 10", "forward state wan tcp [fd00:1::10]:1 > [2001:db8:9::1]:80 A seq 99999999 ack 10 ttl 63"}},
		)},
		{"sloppy: replies of ICMP that nobody here asked for", "block\npass in proto icmp keep state (sloppy)\npass out proto icmp keep state (sloppy)", []step{
			goes("icmp 192.168.1.10 > 198.51.100.9 id 3"),
		}},
		{"a rule's own timeouts let a state live longer", "set timeout udp.first 5\npass proto udp keep state (udp.first 100)\npass proto icmp keep state (udp.first 1)", []step{
			goes("udp 192.168.1.10:1 > 198.51.100.9:53"),
			{"wait", "50", ""},
			{"xdp lan", "udp 192.168.1.10:1 > 198.51.100.9:53", "forward state wan udp 192.168.1.10:1 > 198.51.100.9:53 ttl 63"},
		}},
	})
}

// sourceTexts returns the sources with their states, connections and rate.
func (h *harness) sourceTexts() string {
	var all []string
	for s := range h.dp.View().Sources() {
		all = append(all, fmt.Sprintf("%s %d %d %.1f", s.Addr, s.States, s.Connections, float64(s.Rate)/1000))
	}
	slices.Sort(all)
	return strings.Join(all, "; ")
}

// limitTexts returns the states and sources that the limits of rules count.
func (h *harness) limitTexts() string {
	var all []string
	for _, number := range must(h.dp.View().RuleLimits())(h.tb) {
		if l := h.dp.tables.limits[number]; number != 0 {
			all = append(all, fmt.Sprintf("%d %d", l.States, l.Nodes))
		}
	}
	return strings.Join(all, "; ")
}

// settleTexts does what the daemon does about sources that are over.
func (h *harness) settleTexts() string {
	var all []string
	over := h.dp.Overloaded()
	for _, o := range over {
		all = append(all, fmt.Sprintf("%s <%s>", o.Addr, o.Table))
	}
	slices.Sort(all)
	return fmt.Sprintf("%s, %d states ended", strings.Join(all, "; "), h.dp.Settle(over))
}

// The kernel's garbage collection gives all counts back, whatever ended the states, and
// forgets sources when their time is over.
func TestSourcesEnd(t *testing.T) {
	h := newHarness(t, "set limit { states 500, src-nodes 100 }\nset timeout { udp.first 1, src.track 1 }\npass in proto udp keep state (max 400, max-src-nodes 90, source-track rule)\npass out proto udp keep state (source-track global)",
		func(c *Config) { c.Frozen = false })
	check(t, h.dp.startGC())
	for round := range 3 {
		for i := range 300 {
			h.dp.Heartbeat()
			r := h.in(h.xdp, "lan", fmt.Sprintf("udp 192.168.1.%d:%d > 198.51.100.9:53", 10+i%45, 1000+i))
			if r.verdict != redirect || r.reason != "rule" {
				t.Fatalf("round %d, connection %d: %s %s", round, i, r.verdict, r.reason)
			}
		}
		if round == 1 {
			h.dp.View().KillStates(everyState)
		}
		if used := h.dp.tables.shared.Sources; used != 90 {
			t.Errorf("round %d: %d sources, want 45 of a rule and 45 of all", round, used)
		}
		h.waitEmpty()
		s := h.dp.tables.shared
		for until := time.Now().Add(5 * time.Second); s.Sources != 0 && time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
		}
		if texts := h.sourceTexts(); texts != "" || s.Sources != 0 || h.limitTexts() != "0 0; 0 0" {
			t.Fatalf("round %d: %d sources (%s), limits count %s", round, s.Sources, texts, h.limitTexts())
		}
	}
}

// A full table of sources refuses new sources, and known ones go on.
func TestSourcesFull(t *testing.T) {
	h := newHarness(t, "set limit src-nodes 3\npass in proto udp keep state (source-track)\npass out")
	for i := range 3 {
		h.expect("xdp lan", fmt.Sprintf("udp 192.168.1.%d:1 > 198.51.100.9:53", 10+i), "forward rule")
	}
	h.expect("xdp lan", "udp 192.168.1.20:1 > 198.51.100.9:53", "drop src-nodes")
	h.expect("xdp lan", "udp 192.168.1.10:2 > 198.51.100.9:53", "forward rule")
}

// A million sources are tracked at once. The next one is refused, and known ones are limited.
func TestMillionSources(t *testing.T) {
	const million = 1_000_000
	h := newHarness(t, "set limit { states 1100000, src-nodes 1000000 }\nblock\npass in proto udp keep state (max-src-states 2, source-track rule)\npass out proto udp")
	_, frame := h.arrive("lan", "udp 192.168.1.10:4000 > 198.51.100.9:53")
	newFlow(frame, 0)
	run := newTimer(h, h.net.lan0, frame)
	defer run.pins.Unpin()
	begin := time.Now()
	for source := range million {
		newSource(frame, source)
		run.once(t)
	}
	t.Logf("a million sources: %s", time.Since(begin).Round(time.Millisecond))
	if s := h.dp.tables.shared; s.Sources != million {
		t.Fatalf("%d sources are tracked", s.Sources)
	}
	h.expect("xdp lan", "udp 10.15.66.64:4000 > 198.51.100.9:53", "drop 1000000*rule src-nodes") // those of the million, too
	for _, known := range []string{"10.0.0.0", "10.7.161.32", "10.15.66.63"} {
		h.expect("xdp lan", "udp "+known+":5000 > 198.51.100.9:53", "forward rule")
		h.expect("xdp lan", "udp "+known+":5001 > 198.51.100.9:53", "drop max-src-states")
	}
}

// Rules that are loaded again keep their numbers, and what they count. No number is given
// to another rule while states count under it.
func TestLimitNumbers(t *testing.T) {
	h := newHarness(t, "pass", func(c *Config) { c.Room = 100 })
	const limited = "pass in proto udp keep state (max 2)\npass out"
	h.load(limited)
	numbers := func() []uint16 { return must(h.dp.View().RuleLimits())(t) }
	first := numbers()[0]
	h.expect("xdp lan", "udp 192.168.1.10:1 > 198.51.100.9:53", "forward rule")
	reload := func(rules string) {
		check(t, h.dp.live.load(must(ruleset.Compile(h.parse(rules), h.snapshot()))(t)))
	}
	reload("block in proto icmp\n" + limited)
	if got := numbers(); !slices.Equal(got, []uint16{0, first, 0}) {
		t.Errorf("the same rule among others has number %d, want %d", got, first)
	}
	h.expect("xdp lan", "udp 192.168.1.10:2 > 198.51.100.9:53", "forward rule")
	h.expect("xdp lan", "udp 192.168.1.10:3 > 198.51.100.9:53", "drop max-states")
	for n := range 3 {
		reload(fmt.Sprintf("pass in proto udp keep state (max %d)\npass out", 5+n))
		if got := numbers()[0]; got == first {
			t.Errorf("another rule has the number %d, under which states count", got)
		}
		h.expect("xdp lan", fmt.Sprintf("udp 192.168.1.10:%d > 198.51.100.9:53", 10+n), "forward rule")
	}
	reload(limited + "\n" + limited)
	got := numbers()
	if got[0] != first || got[2] == first || got[2] == 0 {
		t.Errorf("two equal rules have the numbers %d", got)
	}
}

// New tables take the counts over with the states, and the numbers. Rules that are gone
// keep theirs while states count under them.
func TestLimitsAreTakenOver(t *testing.T) {
	n := newNet(t)
	h := &harness{tb: t, net: n}
	config := func(states int, rules string) Config {
		cfg := n.blank()
		rs := h.parse(fmt.Sprintf("set limit { states %d, src-nodes 50 }\n%s", states, rules))
		cfg.Program, cfg.Options = must(ruleset.Compile(rs, h.snapshot()))(t), ruleset.OptionsOf(&rs.Options)
		return cfg
	}
	const rules = "pass in proto udp keep state (max 900, max-src-conn 9, source-track rule)\npass out proto udp keep state (source-track global)"
	first := build(t, config(1024, rules))
	commit(t, first, n.attachments(false))
	numbers := must(first.View().RuleLimits())(t)
	word := uint32(numbers[0]) | uint32(numbers[1])<<limitsShift | 1<<(2*limitsShift)
	enterLimited(t, first, 40, word)
	want := "10.0.0.0 20 0; 10.0.0.0 20 20; 10.0.0.1 20 0; 10.0.0.1 20 20"
	same := func(d *Dataplane, when string) {
		t.Helper()
		h.dp = d
		if got := h.sourceTexts(); got != want {
			t.Errorf("%s, the sources are %s, want %s", when, got, want)
		}
		for _, number := range numbers {
			if l := d.tables.limits[number]; l.States != 40 || l.Name == 0 {
				t.Errorf("%s, the limits %d count %d states, want 40", when, number, l.States)
			}
		}
		if used := d.tables.shared.Sources; used != 4 {
			t.Errorf("%s, %d sources are in use, want 4", when, used)
		}
	}
	want = strings.ReplaceAll(want, "0 0;", "0 0 0.0;")
	want = strings.ReplaceAll(want, "20 20", "20 20 0.0")
	same(first, "entered")
	larger := build(t, config(5000, rules))
	if r := commit(t, larger, n.attachments(false)); r.Copied != 40 {
		t.Fatalf("%d states copied", r.Copied)
	}
	same(larger, "in larger tables")
	other := build(t, config(5000, "pass in proto udp keep state (max 7)\npass in proto tcp keep state (max 8)"))
	commit(t, other, n.attachments(false))
	same(other, "under other rules")
	for _, number := range must(other.View().RuleLimits())(t) {
		if slices.Contains(numbers, number) {
			t.Errorf("another rule has the number %d", number)
		}
	}
	again := build(t, config(6000, rules))
	commit(t, again, n.attachments(false))
	same(again, "under the first rules again")
	if now := must(again.View().RuleLimits())(t); !slices.Equal(now, numbers) {
		t.Errorf("the first rules have the numbers %d, want %d", now, numbers)
	}
}

// enterLimited enters UDP states of two sources that count under the numbers in word.
func enterLimited(tb testing.TB, d *Dataplane, count int, word uint32) {
	tb.Helper()
	enterCounted(tb, d, count, word, 0)
}

// enterCounted is the same for states with limiters.
func enterCounted(tb testing.TB, d *Dataplane, count int, word, limiters uint32) {
	tb.Helper()
	check(tb, d.need(programImport))
	to := newImporter(d.tables, d.objects.Programs[programImport])
	for i := range count {
		var s xdpState
		source := netip.AddrFrom4([4]byte{10, 0, 0, byte(i % 2)})
		s.Forth.Tuple = xdpTuple{Src: rawAddr(source), Sport: uint16(i), Dport: 0xffff, Proto: 17}
		s.Back.Tuple = xdpTuple{Dst: rawAddr(source), Sport: 0xffff, Dport: uint16(i), Proto: 17}
		s.Status, s.Phase, s.Flags = statusLive, uint8(state.UDPMultiple), uint8(state.In|state.Out)
		s.Created = d.tables.shared.Now
		s.CheckAt = d.tables.shared.Now + 100_000
		s.FlowForth.Last, s.FlowBack.Last = d.tables.shared.Now, d.tables.shared.Now
		s.FlowBack.Limits = word
		if index, _, err := to.importState(&s, &beside{limiters: limiters}, false); err != nil || index == 0 {
			tb.Fatalf("state %d was not entered: %v", i, err)
		}
	}
}

func everyState(*state.State) bool { return true }
