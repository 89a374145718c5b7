package dataplane

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"

	"weir/pf/resolve"
)

// A drawing draws rulesets, as text of pf.conf, and packets.
type drawing struct {
	*rand.Rand
	host   *resolve.Host
	bound  bool // states may be bound to interfaces
	copies bool // rules may have dup-to and divert-packet
}

// one returns one of several values.
func one[T any](r *rand.Rand, all ...T) T { return all[r.IntN(len(all))] }

// some returns a text once in n times.
func (d *drawing) some(n int, text string) string {
	if d.IntN(n) != 0 {
		return ""
	}
	return text
}

// Names in rules and packets. There are few, so that rules and packets often match.
var (
	hosts4 = []string{
		"192.168.1.10", "192.168.1.10", "192.168.1.10", "192.168.1.11", "192.168.1.1", "203.0.113.2", "203.0.113.1",
		"203.0.113.9", "198.51.100.7", "198.51.100.7", "198.51.100.8", "9.9.9.9", "198.18.0.5", "203.0.113.64", "10.9.9.9",
	}
	hosts6 = []string{
		"fd00:1::10", "fd00:1::10", "fd00:1::10", "fd00:1::11", "fd00:1::1", "2001:db8:113::2", "2001:db8:113::1",
		"2001:db8:113::9", "2001:db8:7::7", "2001:db8:7::7", "2001:db8:7::8", "2001:db8:dead::1", "2001:db8:113::64",
		"64:ff9b::c633:6407", "64:ff9b::c633:6408", "64:ff9b::c0a8:10a",
	}
	nets4 = []string{"192.168.1.0/24", "192.168.0.0/16", "198.51.100.0/24", "203.0.113.0/24", "203.0.113.64/30", "10.0.0.0/8", "0.0.0.0/0"}
	nets6 = []string{"fd00:1::/64", "fd00::/8", "2001:db8::/32", "2001:db8:7::/48", "2001:db8:113::/64", "::/0", "64:ff9b::/96"}
	ports = []int{22, 53, 53, 80, 80, 443, 8080, 8081, 4000, 4001, 1000, 1001, 1003, 50001, 65535}
	tags  = []string{"A", "B", "C"}

	systems = []string{"unknown", "unknown", "Alpha", `"Alpha 1.1"`, "Beta", `{ "Beta 2", "Gamma" }`, "Delta", `"Epsilon 2"`, `{ Epsilon, unknown }`}

	priorities = []string{
		"set prio 6", "set prio 0", "set prio (1, 7)", "set queue voice", "set queue (bulk, voice)", "set queue (voice, bulk)",
		"set (queue bulk, prio (3, 4))",
	}

	scrubs = []string{
		"scrub (no-df)", "scrub (random-id)", "scrub (no-df random-id)", "scrub (min-ttl 2)", "scrub (min-ttl 30)", "scrub (min-ttl 100)",
		"scrub (min-ttl 254)", "scrub (min-ttl 255)", "scrub (max-mss 1440)", "scrub (max-mss 1200)", "scrub (max-mss 65535)",
		"set tos 0", "set tos lowdelay", "set tos 0xff", "set tos 8 scrub (min-ttl 40)", "scrub (set-tos 3 max-mss 1440)", "set tos 0x61",
		"scrub (reassemble tcp)", "scrub (reassemble tcp)", "scrub (reassemble tcp min-ttl 40 max-mss 1200)", "scrub (max-mss 500 min-ttl 1)", "scrub (no-df max-mss 1300 min-ttl 64 random-id)",
	}

	otherFamily = map[int]int{4: 6, 6: 4}

	targets = map[int][]string{
		4: {"192.168.1.10", "192.168.1.11", "192.168.1.1", "198.51.100.8", "203.0.113.2", "203.0.113.64"},
		6: {"fd00:1::10", "fd00:1::11", "fd00:1::1", "2001:db8:7::8", "2001:db8:113::2", "2001:db8:113::64"},
	}
)

// portGiven is the port of a translation's target.
var portGiven = regexp.MustCompile(` port [0-9:*]+`)

// ruleset draws a file, one string per line.
func (d *drawing) ruleset() []string {
	lines := []string{
		fmt.Sprintf("set limit states %d", twinStates), d.timeouts(),
		"queue line on wan0 bandwidth 10M", "queue voice parent line bandwidth 1M", "queue bulk parent line bandwidth 9M default",
	}
	if d.IntN(12) == 0 {
		lines = append(lines, "set skip on "+one(d.Rand, "lan0", "wan0", "{ lan0 lo }", "egress"))
	}
	if d.bound && d.IntN(4) == 0 {
		lines = append(lines, "set state-policy if-bound")
	}
	if d.IntN(8) == 0 {
		lines = append(lines, "set block-policy "+one(d.Rand, "drop", "return"))
	}
	if d.IntN(4) == 0 {
		lines = append(lines, "set fail-policy return")
	}
	lines = append(lines, d.table("t1"), d.table("t2"), "table <over> persist", "table <many> persist")
	lines = append(lines, d.limiters()...)
	if d.IntN(10) == 0 {
		lines = append(lines, "antispoof "+d.some(2, "quick ")+"for "+one(d.Rand, "lan0", "wan0", "{ lan0, wan0 }", "(lan0)")+d.some(3, " inet"))
	}
	if d.IntN(3) == 0 {
		lines = append(lines, "block"+d.some(3, " return")+d.some(3, " in"))
	}
	if !d.copies && d.IntN(3) == 0 {
		lines = append(lines, d.etherList(lines)...)
		for range 1 + d.IntN(2) { // what a tag of theirs decides
			lines = append(lines, one(d.Rand, "pass", "block")+one(d.Rand, "", " in", " in", " out")+d.some(2, " quick")+
				one(d.Rand, " ", " ! ")+"tagged "+one(d.Rand, tags...)+d.some(3, " no state"))
		}
	}
	if d.IntN(4) == 0 {
		lines = append(lines, d.scrubList(lines)...)
	}
	if d.IntN(2) == 0 {
		lines = append(lines, d.lists(lines)...)
	}
	for range 1 + d.IntN(4)*d.IntN(5) {
		lines = append(lines, d.valid(lines, d.rule))
	}
	if d.IntN(3) == 0 {
		lines = append(lines, d.valid(lines, func() string { return d.anchor(lines, 1) }))
	}
	if d.IntN(3) == 0 { // what nearly every gateway has
		lines = append(lines, d.valid(lines, func() string { return "match out on wan0 inet" + d.some(2, " from (lan0:network)") + d.nat(4) }))
	}
	if d.IntN(3) == 0 { // later rules see the new destination
		lines = append(lines, d.valid(lines, func() string {
			return "match in" + d.some(3, " on wan0") + " inet proto " + one(d.Rand, "tcp", "udp", "{ tcp, udp }") +
				d.some(2, " to port "+d.port()) + d.rdr(4)
		}), d.valid(lines, func() string {
			return one(d.Rand, "pass", "block", "block") + " in inet proto { tcp, udp } to port " + d.port() + d.some(4, " no state")
		}))
	}
	for _, side := range []string{"in", "out"} { // what counts most is the side where a packet leaves
		if d.IntN(3) == 0 {
			lines = append(lines, "match "+side+d.some(3, " on wan0")+" "+one(d.Rand, priorities...))
		}
	}
	for _, on := range []string{"", " on lan0", " on wan0", " in", " out"} { // values replace each other, and both sides count
		if d.IntN(6) == 0 {
			lines = append(lines, d.valid(lines, func() string {
				return "match" + on + d.some(3, " inet") + d.some(3, " proto tcp") + " " + one(d.Rand, scrubs...)
			}))
		}
	}
	if d.IntN(8) == 0 { // more than are counted
		for range 6 + d.IntN(4) {
			lines = append(lines, "match"+one(d.Rand, "", "", " in", " out", " on wan0", " inet", " inet6"))
		}
	}
	for range 1 + d.IntN(8) {
		lines = append(lines, d.valid(lines, d.rule))
	}
	if d.IntN(3) == 0 { // af-to translates what many packets are
		family := one(d.Rand, 4, 6, 6)
		lines = append(lines, d.valid(lines, func() string {
			return "pass in " + d.some(3, "log (all) ") + "quick " + map[int]string{4: "inet", 6: "inet6"}[family] + d.some(2, " proto "+one(d.Rand, "tcp", "udp")) +
				d.some(3, " "+one(d.Rand, scrubs...)) + d.afTo(family)
		}))
	}
	return lines
}

// anchor draws an anchor, and others in it.
func (d *drawing) anchor(before []string, depth int) string {
	lines := []string{strings.Join([]string{"anchor", one(d.Rand, "", "", "in", "out"), one(d.Rand, "quick", "quick", ""), d.conditions(), "{"}, " ")}
	for range 1 + d.IntN(4) {
		lines = append(lines, d.valid(before, d.rule))
		if depth > 0 && d.IntN(3) == 0 {
			lines = append(lines, d.anchor(before, depth-1))
		}
	}
	return strings.Join(append(lines, "}"), "\n")
}

// conditions draws those of an anchor. Its rules can take over some of them.
func (d *drawing) conditions() string {
	if d.IntN(2) == 0 {
		return ""
	}
	family := one(d.Rand, 4, 4, 6)
	return strings.Join([]string{
		d.on(), map[int]string{4: "inet", 6: "inet6"}[family], one(d.Rand, "", "proto tcp", "proto udp"), d.end("from", family, false), d.end("to", family, false),
		one(d.Rand, "", "", "tagged "+one(d.Rand, tags...), "! tagged "+one(d.Rand, tags...), "tag "+one(d.Rand, tags...), "max-pkt-rate 3/2", "received-on lan0"),
	}, " ")
}

// timeouts are short, so that states expire while packets go on.
func (d *drawing) timeouts() string {
	var items []string
	for _, name := range []string{
		"tcp.first", "tcp.opening", "tcp.established", "tcp.closing", "tcp.finwait", "tcp.closed", "udp.first", "udp.single",
		"udp.multiple", "icmp.first", "icmp.error", "other.first", "other.single", "other.multiple", "frag",
	} {
		items = append(items, fmt.Sprintf("%s %d", name, one(d.Rand, 1, 2, 5, 10, 30, 60, 600)))
	}
	if d.IntN(3) == 0 {
		items = append(items, fmt.Sprintf("adaptive.start %d", 10+d.IntN(40)), fmt.Sprintf("adaptive.end %d", 60+d.IntN(100)))
	}
	return "set timeout { " + strings.Join(items, ", ") + " }"
}

func (d *drawing) table(name string) string {
	var entries []string
	for range 1 + d.IntN(4) {
		entries = append(entries, d.some(4, "!")+one(d.Rand, one(d.Rand, hosts4...), one(d.Rand, hosts6...), one(d.Rand, nets4[:6]...), one(d.Rand, nets6[:5]...)))
	}
	return fmt.Sprintf("table <%s> const %s{ %s }", name, d.some(2, "counters "), strings.Join(entries, ", "))
}

// valid draws until a line fits the ones before it.
func (d *drawing) valid(before []string, draw func() string) string {
	for range 30 {
		line := draw()
		text := strings.Join(append(before[:len(before):len(before)], line), "\n")
		if rs, faults := loadTest(text, d.host); !faults.HasErrors() && len(rs.Sequence()) < twinRoom/2 && !slices.ContainsFunc(rs.Sequence(), isRefused) {
			return line
		}
	}
	return "pass"
}

// isRefused reports whether the dataplane does not do a rule's af-to or divert-packet.
func isRefused(r *resolve.Rule) bool {
	what, _ := r.AfToRefused()
	return what != "" || r.Divert.Kind == resolve.DivertPacket && !r.DivertsPackets()
}

// rule draws a rule, which may be invalid.
func (d *drawing) rule() string {
	family := one(d.Rand, 0, 4, 4, 4, 6, 6)
	action := one(d.Rand, "pass", "pass", "pass", "pass", "block", "block", "match")
	direction := one(d.Rand, "", "in", "in", "out", "out")
	block := one(d.Rand, "", "", "drop", "return", "return", "return-rst", "return-rst (ttl 7)", "return-icmp", "return-icmp (net-unr, 1)", "return-icmp6 (addr-unr)")
	first := ""
	if action == "pass" && direction != "" && d.IntN(6) == 0 {
		first = d.hopsFirst(one(d.Rand, family, family, otherFamily[family])) // with af-to
	}
	words := []string{action, block, direction, d.log(action), d.some(5, "quick"), d.on(), first, []string{"", "", "", "", "inet", "", "inet6"}[family]}
	if action != "block" {
		words[1] = ""
	}
	proto := d.proto(family)
	if d.IntN(6) == 0 {
		words = append(words, proto, "all")
	} else {
		ports := strings.Contains(proto, "tcp") && !strings.Contains(proto, "icmp") && !strings.Contains(proto, "47") || strings.Contains(proto, "sctp") || proto == "proto udp"
		from := d.end("from", family, ports)
		if strings.Contains(proto, "tcp") && d.IntN(4) == 0 {
			from = cmp.Or(from, "from any") + " os " + one(d.Rand, systems...)
		}
		words = append(words, proto, from, d.end("to", family, ports))
	}
	words = append(words, d.options(action, direction, proto, family))
	if d.copies && action == "pass" && first == "" && d.IntN(12) == 0 {
		words = append(words, "divert-packet port 700")
	}
	return strings.Join(strings.Fields(strings.Join(words, " ")), " ")
}

func (d *drawing) log(action string) string {
	if action == "match" && d.IntN(4) == 0 {
		return one(d.Rand, "log (matches)", "log (matches, user)", "log (all, matches)")
	}
	return one(d.Rand, "", "", "", "", "log", "log (all)", "log (user)", "log (all, user, to pflog3)")
}

func (d *drawing) on() string {
	return one(d.Rand, "", "", "on lan0", "on lan0", "on wan0", "on wan0", "on !lan0", "on egress", "on lan", "on { lan0, wan0 }")
}

func (d *drawing) proto(family int) string {
	if d.IntN(3) == 0 {
		return ""
	}
	icmp := map[int]string{0: "icmp", 4: "icmp", 6: "icmp6"}[family]
	return "proto " + one(d.Rand, "tcp", "tcp", "udp", "udp", "{ tcp, udp }", "{ tcp, udp, "+icmp+" }", icmp, "47", "{ 47, udp }", "sctp", "{ udp, sctp }")
}

// end draws one side of from and to.
func (d *drawing) end(word string, family int, ports bool) string {
	address := ""
	if d.IntN(3) != 0 {
		address = d.address(family)
	}
	port := ""
	if ports && d.IntN(2) == 0 {
		port = " port " + d.port()
	}
	switch {
	case address == "" && port == "":
		return ""
	case address == "" && d.IntN(2) == 0:
		address = "any"
	}
	return word + " " + address + port
}

func (d *drawing) address(family int) string {
	hosts, nets := hosts4, nets4
	if family == 6 || family == 0 && d.IntN(2) == 0 {
		hosts, nets = hosts6, nets6
	}
	not := d.some(5, "! ")
	switch d.IntN(10) {
	case 0, 1, 2:
		return not + one(d.Rand, hosts...)
	case 9:
		return not + one(d.Rand, "no-route", "no-route", "urpf-failed") // the last is valid in from alone
	case 3:
		return not + one(d.Rand, nets...)
	case 4:
		return not + one(d.Rand, "<t1>", "<t2>")
	case 5:
		return not + one(d.Rand, "(lan0)", "(wan0)", "(lan0:network)", "(wan0:network)", "(wan0:0)", "(egress)", "(self)", "(wan0)/28")
	case 6:
		return one(d.Rand, "lan0", "wan0", "lan0:network", "wan0:network", "self", "egress")
	case 7:
		return "{ " + one(d.Rand, hosts...) + ", " + one(d.Rand, nets...) + " }"
	}
	return "{ " + one(d.Rand, nets...) + ", !" + one(d.Rand, hosts...) + " }"
}

func (d *drawing) port() string {
	p, q := one(d.Rand, ports...), one(d.Rand, ports...)
	low, high := min(p, q), max(p, q)
	return one(d.Rand,
		fmt.Sprint(p), fmt.Sprint(p), fmt.Sprintf("{ %d, %d }", p, q), fmt.Sprintf("!= %d", p), fmt.Sprintf("< %d", p),
		fmt.Sprintf(">= %d", p), fmt.Sprintf("> %d", p), fmt.Sprintf("<= %d", p), fmt.Sprintf("%d:%d", low, high),
		fmt.Sprintf("%d >< %d", low, high), fmt.Sprintf("%d <> %d", low, high))
}

// options draws what follows from and to.
func (d *drawing) options(action, direction, proto string, family int) string {
	var words []string
	add := func(n int, texts ...string) {
		if d.IntN(n) == 0 {
			words = append(words, one(d.Rand, texts...))
		}
	}
	switch proto {
	case "proto tcp":
		add(3, "flags S/SA", "flags any", "flags A/A", "flags /RF", "flags SA/SAFR")
	case "proto icmp":
		add(2, "icmp-type echoreq", "icmp-type { echoreq, unreach }", "icmp-type timex code 0", "icmp-type echorep", "icmp-type unreach code 4")
	case "proto icmp6":
		add(2, "icmp6-type echoreq", "icmp6-type { echoreq, toobig }", "icmp6-type timex code 0", "icmp6-type neighbrsol")
	}
	if len(words) == 0 && proto != "proto tcp" {
		add(12, "fragment")
	}
	if action == "pass" {
		add(2, "no state", "keep state", d.limits(), d.limits())
		add(3, "allow-opts")
	}
	add(5, "tag "+one(d.Rand, tags...))
	add(6, "tagged "+one(d.Rand, tags...), "! tagged "+one(d.Rand, tags...))
	add(8, "marked 1/3", "! marked 1/3", "marked 0x40000/0xff0000", "marked 0", "! marked 0")
	if action != "block" {
		add(8, "set mark 1/3", "set mark 2/2", "set mark 0x40000/0xff0000", "set mark 0x40001", "set mark 0/1")
	}
	switch proto {
	case "proto tcp", "proto udp", "proto { tcp, udp }":
		add(6, "user "+d.owner(), "group "+d.owner(), "user "+d.owner()+" group "+d.owner())
	default:
		add(30, "user "+d.owner(), "group "+d.owner())
	}
	add(8, one(d.Rand, "", "! ")+"received-on "+one(d.Rand, "lan0", "wan0", "egress", "lan", "any", "none0"))
	add(8, fmt.Sprintf("prio %d", one(d.Rand, 0, 1, 3, 3, 5, 6)))
	add(8, "tos lowdelay", "tos 0xff", "dscp 4", "dscp cs0", "max-pkt-size 40", "max-pkt-size 100")
	if action != "match" {
		add(12, "once")
	}
	if action == "pass" {
		add(5, "state limiter s1", "state limiter s2", "state limiter s1 (block)", "state limiter id 2 (block)", "state limiter s2 (no-match)", "state limiter id 9")
		add(5, "source limiter c1", "source limiter c2", "source limiter c1 (block)", "source limiter id 2 (block)", "source limiter id 9 (block)")
	}
	add(12, fmt.Sprintf("max-pkt-rate %d/%d", 1+d.IntN(4), one(d.Rand, 0, 1, 2, 10)))
	if action != "block" && direction != "out" {
		add(12, "rtable 7", "rtable 7", "rtable 8", "rtable 0")
	}
	add(20, `label "$if:$nr"`)
	if action != "block" {
		add(4, priorities...)
		add(6, scrubs...)
	}
	if action != "block" && direction == "out" && d.IntN(3) == 0 {
		words = append(words, d.nat(family))
	}
	if action != "block" && (direction == "in" && d.IntN(3) == 0 || direction == "out" && d.IntN(8) == 0) {
		to := d.rdr(family)
		if strings.Contains(proto, "sctp") { // its ports stay
			to = portGiven.ReplaceAllString(to, "")
		}
		words = append(words, to)
	}
	if action != "block" && direction == "in" && d.IntN(6) == 0 {
		words = append(words, d.nat(family))
	}
	if action == "pass" && direction == "in" && d.IntN(4) == 0 {
		words = append(words, d.afTo(family))
	} else if action == "pass" && direction != "" && d.IntN(4) == 0 {
		words = append(words, d.hops(family))
	}
	return strings.Join(words, " ")
}

// owner draws a condition on the numbers of testSockets.
func (d *drawing) owner() string {
	n := one(d.Rand, 0, 33, 1000)
	return one(d.Rand,
		fmt.Sprint(n), fmt.Sprint(n), "unknown", "!= unknown", fmt.Sprintf("!= %d", n), fmt.Sprintf("< %d", n), fmt.Sprintf(">= %d", n),
		fmt.Sprintf("{ %d, unknown }", n), "0 >< 1000", "33 <> 1000", "33:1000")
}

func (d *drawing) nat(family int) string {
	pool := one(d.Rand, "(wan0)", "(wan0)", "wan0", "lan0", "<t1>", "{ 203.0.113.64, 203.0.113.66 }", "203.0.113.64/30", "203.0.113.2", "(lan0)", "(egress)")
	if family == 6 {
		pool = one(d.Rand, "(wan0)", "(wan0)", "wan0", "lan0", "<t2>", "{ 2001:db8:113::64, 2001:db8:113::66 }", "2001:db8:113::64/126", "2001:db8:113::2", "(lan0)")
	}
	return " nat-to " + pool + one(d.Rand, "", "", "", "", " port 1000:1003", " port 50001:50004", " port 4000", " map-e-portset 6/8/52", " map-e-portset 2/14/5", " map-e-portset 2/12/0xabc") + d.pool() + d.some(5, " static-port") + d.some(4, " endpoint-independent")
}

// afTo draws a translation to the other family.
func (d *drawing) afTo(family int) string {
	ports := one(d.Rand, "", "", " port 1000:1003", " static-port") + d.some(3, " endpoint-independent")
	if family == 6 {
		return " af-to inet from " + one(d.Rand, "(wan0)", "(wan0)", "203.0.113.64/30", "{ 203.0.113.64, 203.0.113.66 }", "<t1>") + ports +
			one(d.Rand, "", "", "", " to 198.51.100.7", " to { 198.51.100.7, 192.168.1.10 }", " to 198.51.100.8 port 53")
	}
	return " af-to inet6 from " + one(d.Rand, "2001:db8:46::/96", "2001:db8::/32", "2001:db8:46::/64", "2001:db8:113::64", "{ 2001:db8:113::64, 2001:db8:113::65 }", "(wan0)", "(wan0:network)", "(lan0)/64", "<t2>") + ports +
		one(d.Rand, "", "", " to (lan0:network)", " to <t2>", " to fd00:1::10", " to fd00:1::10", " to { fd00:1::10, 2001:db8:7::7 }", " to 2001:db8:7::/96", " to fd00:1::10 port 80")
}

func (d *drawing) rdr(family int) string {
	if family == 0 {
		family = 4
	}
	pool := one(d.Rand, targets[family]...)
	switch d.IntN(6) {
	case 0:
		pool = "{ " + pool + ", " + one(d.Rand, targets[family]...) + " }"
	case 1:
		pool = one(d.Rand, "<t1>", "(lan0)", "lan0", "(wan0)")
	}
	return " rdr-to " + pool + one(d.Rand, "", "", " port 8080", " port 80", " port 1000:1003", " port 1000:*", " port 53") + d.pool()
}

// hops draws next hops in OpenBSD's form. Some are reachable, some unresolved, some lead
// nowhere.
func (d *drawing) hops(family int) string {
	hops := []string{"203.0.113.1", "203.0.113.1", "192.168.1.10", "192.168.1.11", "203.0.113.9", "10.9.9.9", "198.18.0.5", "192.168.1.1", "203.0.113.0/30"}
	if family == 6 {
		hops = []string{"2001:db8:113::1", "2001:db8:113::1", "fd00:1::10", "fd00:1::11", "2001:db8:113::9", "2001:db8:dead::1", "fd00:1::1", "fe80::1%wan0"}
	}
	if d.IntN(3) == 0 && family != 6 { // IPv4 packets by next hops of both families
		others := []string{"2001:db8:113::1", "2001:db8:113::1", "fd00:1::10", "fd00:1::11", "2001:db8:dead::1", "2001:db8:113::/127"}
		hop := one(d.Rand, append(others, "{ "+one(d.Rand, others...)+", "+one(d.Rand, hops...)+" }", "{ "+one(d.Rand, hops...)+", "+one(d.Rand, others...)+" }", "<t2>", "203.0.113.1")...)
		return " " + d.routeOption() + hop + one(d.Rand, "", "", " random", " source-hash secret", " least-states") + d.some(4, " sticky-address") + " prefer-ipv6-nexthop"
	}
	hop := one(d.Rand, hops...)
	switch d.IntN(6) {
	case 0:
		hop = "{ " + hop + ", " + one(d.Rand, hops...) + " }"
	case 1:
		hop = "<t1>"
	}
	return " " + d.routeOption() + hop + d.pool()
}

// routeOption draws what next hops are for.
func (d *drawing) routeOption() string {
	if d.copies && d.IntN(2) == 0 {
		return "dup-to "
	}
	return one(d.Rand, "route-to ", "route-to ", "reply-to ")
}

// hopsFirst draws next hops in FreeBSD's form.
func (d *drawing) hopsFirst(family int) string {
	if family == 0 {
		return ""
	}
	hops := []string{"(wan0 203.0.113.1)", "(wan0 203.0.113.1)", "(lan0 192.168.1.10)", "(lan0 192.168.1.11)", "(wan0 203.0.113.9)", "(lan0 203.0.113.1)", "(wan0 198.18.0.5)", "(wan0 10.9.9.9)", "wan0", "lan0"}
	if family == 6 {
		hops = []string{"(wan0 2001:db8:113::1)", "(wan0 2001:db8:113::1)", "(lan0 fd00:1::10)", "(lan0 fd00:1::11)", "(lan0 2001:db8:113::1)", "(wan0 fe80::1)", "(lan0 fe80::7)", "wan0", "lan0"}
	}
	hop := one(d.Rand, hops...)
	if hop[0] == '(' && d.IntN(4) == 0 {
		hop = "{ " + hop + d.some(2, " weight 2") + ", " + one(d.Rand, hops[:5]...) + d.some(3, " weight 3") + " }"
	}
	if family == 4 && d.IntN(4) == 0 {
		other := one(d.Rand, "(wan0 2001:db8:113::1)", "(lan0 fd00:1::10)", "(wan0 fe80::1)", "(lan0 2001:db8:113::1)")
		if hop[0] == '(' && d.IntN(2) == 0 {
			other = "{ " + hop + ", " + other + " }"
		}
		return d.routeOption() + other + one(d.Rand, "", "", " random", " source-hash secret") + d.some(5, " sticky-address") + " prefer-ipv6-nexthop"
	}
	return d.routeOption() + hop + one(d.Rand, "", "", " round-robin", " random", " source-hash secret") + d.some(5, " sticky-address")
}

// pool draws how an address is chosen. Without a key source-hash would draw another one
// for the model.
func (d *drawing) pool() string {
	return one(d.Rand, "", "", " round-robin", " random", " source-hash secret", " source-hash other", " bitmask", " least-states", " least-states") + d.some(4, " sticky-address")
}
