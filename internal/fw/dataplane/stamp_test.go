package dataplane

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"weir/internal/fw/ruleset"
	"weir/internal/fw/state"
)

// A stamped connection is one whose packets scrub (reassemble tcp) changes.
type stamped struct {
	*harness
	ends [2]string // the packets of each direction begin so
}

func (h *harness) stamped(six bool) *stamped {
	if six {
		return &stamped{h, [2]string{"tcp [fd00:1::10]:4000 > [2001:db8:9::1]:80 ", "tcp [2001:db8:9::1]:80 > [fd00:1::10]:4000 "}}
	}
	return &stamped{h, [2]string{"tcp 192.168.1.10:4000 > 198.51.100.9:80 ", "tcp 198.51.100.9:80 > 192.168.1.10:4000 "}}
}

// send gives a hook ("xdp" or "tcx") a packet of a direction, and returns what leaves.
func (c *stamped) send(hook string, d int, text string, change func(*pkt)) (result, *pkt) {
	c.tb.Helper()
	p := parsePkt(c.ends[d] + text)
	if change != nil {
		change(p)
	}
	from, to, ifindex := lanHostMAC, lan0MAC, c.net.lan0
	if d == 1 {
		from, to, ifindex = wanHostMAC, wan0MAC, c.net.wan0
	}
	run := c.xdp
	if hook == "tcx" {
		run = c.tcIn
	}
	r := run(ifindex, p.frame(from, to))
	if r.verdict != redirect {
		return r, nil
	}
	got := decodePkt(r.frame[14:])
	if got.sums != "" {
		c.tb.Errorf("%s %s: wrong sums: %s", hook, text, got.sums)
	}
	return r, got
}

// normal returns what is known of the only state.
func (c *stamped) normal() (n [2]state.Normal) {
	c.tb.Helper()
	for s := range c.dp.View().States() {
		return s.Normal
	}
	c.tb.Fatal("there is no state")
	return n
}

// opens lets the connection begin: the timestamps of the two ends are 1000 and 5000 at first.
func (c *stamped) opens(hook string) {
	c.tb.Helper()
	c.send(hook, 0, "S seq 100 ts 1000:0", nil)
	n := c.normal()
	c.send(hook, 1, fmt.Sprintf("SA seq 300 ack 101 ts 5000:%d", 1000+n[0].Offset), nil)
	c.send(hook, 0, fmt.Sprintf("A seq 101 ack 301 ts 1001:%d", 5000+n[1].Offset), nil)
}

// Timestamps get an offset for each direction, and echoes lose it, at both hooks, in both
// families, wherever the option is.
func testStamps(h *harness) {
	for _, six := range []bool{false, true} {
		for _, hook := range []string{"xdp", "tcx"} {
			for _, odd := range []bool{false, true} {
				h.load("match out on wan0 scrub (reassemble tcp)\npass")
				c := h.stamped(six)
				place := func(p *pkt) {
					p.odd = odd
					if odd {
						p.mss = 1400
					}
				}
				_, syn := c.send(hook, 0, "S seq 100 ts 1000:0", place)
				n := c.normal()
				if n[0].Offset == 0 || n[1].Offset == 0 || n[0].Offset == n[1].Offset {
					h.tb.Fatalf("offsets %d and %d", n[0].Offset, n[1].Offset)
				}
				_, ack := c.send(hook, 1, fmt.Sprintf("SA seq 300 ack 101 ts 5000:%d", 1000+n[0].Offset), place)
				_, data := c.send(hook, 0, fmt.Sprintf("A seq 101 ack 301 len 10 ts 1001:%d", 5000+n[1].Offset), place)
				_, reset := c.send(hook, 1, fmt.Sprintf("RA seq 301 ack 111 ts 5003:%d", 1001+n[0].Offset), place)
				for i, want := range []struct {
					got         *pkt
					value, echo uint32
				}{
					{syn, 1000 + n[0].Offset, 0}, {ack, 5000 + n[1].Offset, 1000}, {data, 1001 + n[0].Offset, 5000}, {reset, 5003 + n[1].Offset, 1001},
				} {
					if want.got == nil || want.got.stamp == nil || *want.got.stamp != [2]uint32{want.value, want.echo} {
						h.tb.Errorf("IPv6 %t, %s, odd %t: packet %d became %v, want timestamps %d:%d", six, hook, odd, i, want.got, want.value, want.echo)
					}
				}
			}
		}
	}
}

// Both timestamps of a segment change, and its sum may stay what it is.
func testStampsCancel(h *harness) {
	for _, offsets := range [][2]uint32{{7, 7}, {65535, 65535}, {65535, 1 << 17}} {
		h.load("pass scrub (reassemble tcp)")
		c := h.stamped(false)
		c.send("xdp", 0, "S seq 100 ts 1000:0", nil)
		c.setOffsets(offsets)
		_, ack := c.send("xdp", 1, fmt.Sprintf("SA seq 300 ack 101 ts 5000:%d", 1000+offsets[0]), nil)
		_, data := c.send("xdp", 0, fmt.Sprintf("A seq 101 ack 301 ts 1001:%d", 5000+offsets[1]), nil)
		if ack == nil || *ack.stamp != [2]uint32{5000 + offsets[1], 1000} || data == nil || *data.stamp != [2]uint32{1001 + offsets[0], 5000} {
			h.tb.Errorf("offsets %v: %v and %v", offsets, ack, data)
		}
	}
}

// setOffsets changes the offsets of all states.
func (c *stamped) setOffsets(offsets [2]uint32) {
	c.tb.Helper()
	var index uint32
	var n xdpNormal
	all := map[uint32]xdpNormal{}
	normals := c.dp.tables.maps[mapNormals]
	for entries := normals.Iterate(); entries.Next(&index, &n); {
		all[index] = n
	}
	for index, n := range all {
		for d := range offsets {
			n.Way[d].Offset = offsets[d]
		}
		if err := normals.Put(index, n); err != nil {
			c.tb.Fatal(err)
		}
	}
}

// A timestamp 0 is none: it stays, in both fields.
func testStampZero(h *harness) {
	h.load("pass scrub (reassemble tcp)")
	c := h.stamped(false)
	if _, syn := c.send("xdp", 0, "S seq 100 ts 0:0", nil); syn == nil || *syn.stamp != [2]uint32{} {
		h.tb.Errorf("a SYN with timestamps 0 became %v", syn)
	}
}

// What the box sends to itself meets its state twice, where it leaves and where it comes in. It
// stays as it is.
func testStampsOnLo(h *harness) {
	h.load("pass scrub (reassemble tcp)")
	const none = "00:00:00:00:00:00"
	frame := parsePkt("tcp 127.0.0.1:4000 > 127.0.0.1:80 S seq 100 ts 1000:0").frame(none, none)
	r := h.tcOut(1, frame, 0)
	if r.verdict == drop {
		h.tb.Fatalf("a SYN over lo: %s (%s)", r.verdict, r.reason)
	}
	states := 0
	for s := range h.dp.View().States() {
		states++
		if s.Flow[0].Flags&state.FlowNormal != 0 || s.Flags&state.Log != 0 {
			h.tb.Errorf("the state of a SYN over lo is %+v", *s)
		}
	}
	if states != 1 {
		h.tb.Errorf("a SYN over lo has made %d states", states)
	}
	if p := decodePkt(r.frame[14:]); *p.stamp != [2]uint32{1000, 0} {
		h.tb.Errorf("a SYN over lo became %s", p)
	}
}

// Which timestamps and which lack of them end a packet.
func testStampChecks(h *harness) {
	for _, test := range []struct {
		name string
		d    int
		text string // value:echo of the other end, as it was sent
		bad  bool
	}{
		{"the same again", 0, "A seq 101 ack 301 ts 1001:5000", false},
		{"the largest that may be", 0, fmt.Sprintf("A seq 101 ack 301 ts %d:5000", 1001+30*1100), false},
		{"from the future", 0, fmt.Sprintf("A seq 101 ack 301 ts %d:5000", 1002+30*1100), true},
		{"as old as the last that was echoed", 0, "A seq 101 ack 301 ts 1000:5000", false},
		{"older than the last that was echoed", 0, "A seq 101 ack 301 ts 999:5000", true},
		{"half of all numbers older", 0, fmt.Sprintf("A seq 101 ack 301 ts %d:5000", uint32(1001)+1<<31), true},
		{"an echo of what was never sent", 0, "A seq 101 ack 301 ts 1002:5001", true},
		{"an echo of what was before the first", 0, "A seq 101 ack 301 ts 1002:4999", true},
		{"no echo", 0, "A seq 101 ack 301 ts 1002:0", false},
		{"of the other end: an echo of what was never sent", 1, "A seq 301 ack 101 ts 5001:1002", true},
		{"of the other end: an echo of the last", 1, "A seq 301 ack 101 ts 5001:1001", false},
		{"an acknowledgement without timestamps", 0, "A seq 101 ack 301", false},
		{"first data without timestamps", 0, "A seq 101 ack 301 len 10", false},
	} {
		h.load("pass scrub (reassemble tcp)")
		c := h.stamped(false)
		c.opens("xdp")
		n := c.normal()
		r, _ := c.send("xdp", test.d, test.text, func(p *pkt) {
			if p.stamp != nil && p.stamp[1] != 0 {
				p.stamp[1] += n[1-test.d].Offset
			}
		})
		if dropped := r.reason == "bad-timestamp"; dropped != test.bad || !dropped && r.verdict == drop {
			h.tb.Errorf("%s: %s (%s)", test.name, r.verdict, r.reason)
		}
		if test.bad && c.normal() != n {
			h.tb.Errorf("%s: it has changed the state from %+v to %+v", test.name, n, c.normal())
		}
	}
	h.load("pass scrub (reassemble tcp)")
	c := h.stamped(false)
	c.opens("tcx")
	echo := c.normal()[1].Offset + 5000
	for _, test := range []struct{ text, want string }{
		{fmt.Sprintf("A seq 101 ack 301 len 10 ts 1002:%d", echo), "forward state"},
		{"A seq 111 ack 301 len 10", "drop bad-timestamp"}, // the first data had them
		{"A seq 111 ack 301", "forward state"},
		{fmt.Sprintf("A seq 111 ack 301 len 10 ts 1003:%d twice", echo), "drop bad-timestamp"},
		{fmt.Sprintf("A seq 111 ack 301 len 10 ts 1003:%d", echo), "forward state"},
		{"RA seq 121 ack 301", "forward state"},
	} {
		text, twice := strings.CutSuffix(test.text, " twice")
		r, _ := c.send("tcx", 0, text, func(p *pkt) { p.twice = twice })
		if got := fmt.Sprintf("%s %s", r.verdict, r.reason); got != test.want {
			h.tb.Errorf("%s: %s, want %s", test.text, got, test.want)
		}
	}
}

// After a time without packets a timestamp may be larger, and after 12 days it is not checked.
func testStampTime(h *harness) {
	defer func(timeouts [14]uint32, now uint32) {
		h.dp.tables.shared.Timeout, h.dp.tables.shared.Now = timeouts, now
	}(h.dp.tables.shared.Timeout, h.dp.tables.shared.Now)
	const day = 24 * 60 * 60 * state.TicksPerSecond
	for _, test := range []struct {
		ticks uint32
		value uint32
		bad   bool
	}{
		{100, 1001 + 31*1100, false}, {100, 1002 + 31*1100, true}, {11 * day, 1001 + 1_000_000_000, false}, {11 * day, 1001 + 1_060_000_000, true}, {13 * day, 5, false},
	} {
		h.load("pass scrub (reassemble tcp)")
		c := h.stamped(false)
		c.opens("xdp")
		n := c.normal()
		h.dp.tables.shared.Timeout[state.TCPEstablished] = 1<<31 - 1
		h.dp.tables.shared.Now += test.ticks
		r, _ := c.send("xdp", 0, fmt.Sprintf("A seq 101 ack 301 ts %d:%d", test.value, 5000+n[1].Offset), nil)
		if dropped := r.reason == "bad-timestamp"; dropped != test.bad || !dropped && r.verdict == drop {
			h.tb.Errorf("after %d ticks, timestamp %d: %s (%s)", test.ticks, test.value, r.verdict, r.reason)
		}
	}
	h.load("pass scrub (reassemble tcp)")
	usual, less := h.dp.config.Options, h.parse("set timeout tcp.tsdiff 5")
	options := ruleset.OptionsOf(&less.Options)
	setTimeouts(h.dp.tables.shared, &options)
	defer setTimeouts(h.dp.tables.shared, &usual)
	c := h.stamped(false)
	c.opens("xdp")
	r, _ := c.send("xdp", 0, fmt.Sprintf("A seq 101 ack 301 ts %d:%d", 1002+5*1100, 5000+c.normal()[1].Offset), nil)
	if r.reason != "bad-timestamp" {
		h.tb.Errorf("with tcp.tsdiff 5: %s (%s)", r.verdict, r.reason)
	}
}

// A TTL never falls: packets leave with the largest that their sender has had. Where rules ask
// for it on the way out alone, that is counted there.
func testStampTTL(h *harness) {
	const (
		syn  = "tcp 192.168.1.10:4000 > 198.51.100.9:80 S seq 100"
		ack  = "tcp 198.51.100.9:80 > 192.168.1.10:4000 SA seq 300 ack 101"
		data = "tcp 192.168.1.10:4000 > 198.51.100.9:80 A seq 101 ack 301 len 1"
	)
	const out6 = "tcp [fd00:1::10]:4000 > [2001:db8:7::7]:80 "
	for _, rules := range []string{"match in on lan0 scrub (reassemble tcp)\npass", "match out on wan0 scrub (reassemble tcp)\npass", "scrub on wan0 reassemble tcp\npass"} {
		raised := "ttl 99"
		steps := []step{
			{"xdp lan", syn + " ttl 90", "forward rule wan " + syn + " ttl 89"},
			{"xdp lan", syn + " ttl 9", "forward state wan " + syn + " ttl 89"},
			{"xdp wan", ack + " ttl 60", "forward state lan " + ack + " ttl 59"},
			{"tcx wan", ack + " ttl 2", "forward state lan " + ack + " ttl 59"},
			{"tcx lan", data + " ttl 100", "forward state wan " + data + " " + raised},
			{"tcx lan", data + " ttl 3", "forward state wan " + data + " " + raised},
			{"xdp lan", "tcp 192.168.1.10:4000 > 198.51.100.9:80 A seq 101 ack 301 frag 0+ id 7 len 28 ttl 3", "forward state wan tcp 192.168.1.10:4000 > 198.51.100.9:80 A seq 101 ack 301 frag 0+ id 7 len 28 " + raised},
			{"xdp lan", "tcp 192.168.1.10 > 198.51.100.9 frag 48 id 7 len 24 ttl 3", "forward state wan tcp 192.168.1.10 > 198.51.100.9 frag 48 id 7 len 24 " + raised},
			{"xdp lan", out6 + "S seq 100 ttl 90", "forward rule wan " + out6 + "S seq 100 ttl 89"},
			{"tcx lan", out6 + "S seq 100 ttl 9", "forward state wan " + out6 + "S seq 100 ttl 89"},
			{"xdp lan", "udp 192.168.1.10:1 > 198.51.100.9:53 ttl 9", "forward rule wan udp 192.168.1.10:1 > 198.51.100.9:53 ttl 8"},
			{"xdp lan", "udp 192.168.1.10:1 > 198.51.100.9:53 ttl 7", "forward state wan udp 192.168.1.10:1 > 198.51.100.9:53 ttl 6"},
		}
		h.plays([]play{{rules, rules, steps}})
	}
	h.plays([]play{
		{"where packets come in: also one whose TTL would end", "match in on lan0 scrub (reassemble tcp)\npass", []step{
			{"xdp lan", syn, "forward rule wan " + syn + " ttl 63"},
			{"xdp lan", syn + " ttl 1", "forward state wan " + syn + " ttl 63"},
		}},
		{"where they leave: that is gone before", "match out on wan0 scrub (reassemble tcp)\npass", []step{
			{"xdp lan", syn, "forward rule wan " + syn + " ttl 63"},
			{"xdp lan", syn + " ttl 1", "up up-ttl came"},
		}},
		{"what the box sends", "pass out on wan0 scrub (reassemble tcp)", []step{
			{"own wan", "tcp 203.0.113.2:5 > 198.51.100.9:80 S seq 100", "up rule"},
			{"own wan", "tcp 203.0.113.2:5 > 198.51.100.9:80 S seq 100 ttl 9", "up state tcp 203.0.113.2:5 > 198.51.100.9:80 S seq 100"},
		}},
		{"sloppy", "pass keep state (sloppy) scrub (reassemble tcp)", []step{
			{"xdp lan", syn + " ts 1000:0", "forward rule wan " + syn + " ts 1000:0 ttl 63"},
			{"xdp lan", syn + " ts 1000:0 ttl 9", "forward state wan " + syn + " ts 1000:0 ttl 8"},
		}},
		{"without a state", "pass no state scrub (reassemble tcp)", []step{
			{"xdp lan", syn + " ts 1000:0", "forward rule wan " + syn + " ts 1000:0 ttl 63"},
			{"xdp lan", syn + " ts 1000:0 ttl 9", "forward rule wan " + syn + " ts 1000:0 ttl 8"},
		}},
	})
}

// States show the option. With new tables they keep what it has given them, and the
// timestamps are checked again as soon as both ends have sent one.
func TestStampsStay(t *testing.T) {
	h := newHarness(t, "match on wan0 scrub (reassemble tcp)\npass", func(c *Config) { c.Room = 10 })
	c := h.stamped(false)
	c.opens("xdp")
	before := c.normal()
	var shown []string
	for s := range h.dp.View().States() {
		v := s.View(&state.Context{Rule: func(uint32) (state.RuleRef, bool) { return state.RuleRef{}, true }})
		shown = append(shown, v.Scrub, v.ScrubBack)
	}
	if want := []string{"reassemble tcp", ""}; !slices.Equal(shown, want) {
		t.Errorf("states show %q, want %q", shown, want)
	}
	commit(t, h.dp, nil)
	next := func(limit uint32, rules string) {
		cfg := h.net.config()
		cfg.Frozen, cfg.later = true, true
		rs := h.parse(rules)
		cfg.Program, cfg.Options = must(ruleset.Compile(rs, h.snapshot()))(t), ruleset.OptionsOf(&rs.Options)
		cfg.Options.MaxStates = limit
		d := build(t, cfg)
		commit(t, d, nil)
		h.dp = d
	}
	next(h.dp.tables.limit(), "pass proto tcp scrub (reassemble tcp)") // in the same tables
	if now := c.normal(); now != before {
		t.Errorf("after a reload: %+v became %+v", before, now)
	}
	next(77777, "pass")
	after := c.normal()
	for d := range after {
		if after[d].Offset != before[d].Offset || after[d].TTL != before[d].TTL || after[d].Flags != before[d].Flags&^state.NormalChecked {
			t.Errorf("direction %d: %+v became %+v", d, before[d], after[d])
		}
	}
	_, got := c.send("xdp", 0, fmt.Sprintf("A seq 101 ack 301 len 10 ttl 5 ts 1009:%d", 5000+before[1].Offset), nil)
	if got == nil || *got.stamp != [2]uint32{1009 + before[0].Offset, 5000} || got.ttl != 63 {
		t.Errorf("the next packet became %v", got)
	}
	c.send("xdp", 1, fmt.Sprintf("A seq 301 ack 111 ts 5009:%d", 1009+before[0].Offset), nil)
	if r, _ := c.send("xdp", 0, fmt.Sprintf("A seq 111 ack 301 ts 1008:%d", 5000+before[1].Offset), nil); r.reason != "bad-timestamp" {
		t.Errorf("an old timestamp: %s (%s)", r.verdict, r.reason)
	}
	h.dp.config.Frozen = false
	check(t, h.dp.startGC())
	h.dp.View().KillStates(everyState)
	h.waitEmpty()
	if index := uint32(0); h.dp.tables.maps[mapNormals].Iterate().Next(&index, new(xdpNormal)) {
		t.Error("without states there still is an entry")
	}
}

// TestStampsBegunMeanwhile: the SYN was copied, and its answer meets the old generation. Both ends
// keep their offsets.
func TestStampsBegunMeanwhile(t *testing.T) {
	h := newHarness(t, "pass scrub (reassemble tcp)", func(c *Config) { c.Room = 10 })
	c := h.stamped(false)
	commit(t, h.dp, nil)
	c.send("xdp", 0, "S seq 100 ts 1000:0", nil)
	n := c.normal()
	cfg := h.net.config()
	cfg.Frozen, cfg.later = true, true
	rs := h.parse("pass scrub (reassemble tcp)")
	cfg.Program, cfg.Options = must(ruleset.Compile(rs, h.snapshot()))(t), ruleset.OptionsOf(&rs.Options)
	cfg.Options.MaxStates = 77777
	d := build(t, cfg)
	defer func(was func(*Dataplane) error) { copyLast = was }(copyLast)
	copyLast = func(d *Dataplane) error { // the SYN's state is a copy now
		if _, ack := c.send("xdp", 1, fmt.Sprintf("SA seq 300 ack 101 ts 5000:%d", 1000+n[0].Offset), nil); ack == nil {
			t.Error("the old generation has dropped the answer")
		}
		return d.copyStates()
	}
	commit(t, d, nil)
	h.dp = d
	_, data := c.send("xdp", 0, fmt.Sprintf("A seq 101 ack 301 ts 1001:%d", 5000+n[1].Offset), nil)
	_, back := c.send("xdp", 1, fmt.Sprintf("A seq 301 ack 101 ts 5001:%d", 1001+n[0].Offset), nil)
	if data == nil || *data.stamp != [2]uint32{1001 + n[0].Offset, 5000} || back == nil || *back.stamp != [2]uint32{5001 + n[1].Offset, 1001} {
		t.Errorf("offsets %d and %d: %v and %v", n[0].Offset, n[1].Offset, data, back)
	}
}
