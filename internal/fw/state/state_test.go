package state

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/pf/resolve"
)

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

// context gives rules 1 to 100 the numbers 0 to 99. Higher ones belong to earlier
// rulesets.
func context(now Tick) *Context {
	c := &Context{
		Now:       now,
		Rule:      func(global uint32) (RuleRef, bool) { return RuleRef{Nr: int(global) - 1}, global <= 100 },
		Interface: func(uint16) string { return "em0" },
		Gateway: func(nextHop uint16) netip.Addr {
			if nextHop == 5 {
				return addr("203.0.113.1")
			}
			return netip.Addr{}
		},
		Queue: func(number uint16) string { return map[uint16]string{3: "bulk", 4: "bulk, voice"}[number] },
	}
	c.Timeouts[TCPEstablished] = 86400 * TicksPerSecond
	c.Timeouts[UDPSingle] = 30 * TicksPerSecond
	return c
}

// natted returns a forwarded TCP connection with source translation.
func natted() *State {
	forth := Tuple{
		Src: addr("192.168.1.10"), SPort: 40000, Dst: addr("198.51.100.7"), DPort: 443, Proto: protoTCP,
	}
	back := forth.Reverse()
	back.Dst, back.DPort = addr("203.0.113.5"), 50001
	return &State{
		Index: 7, NextHops: [2]uint16{5, 6}, Tuple: [2]Tuple{forth, back}, Phase: TCPEstablished, Flags: In | Out | NAT,
		RuleIn: 4, RuleOut: 8, Created: 1000,
		Flow: [2]Flow{
			{Packets: 6, Bytes: 455, Last: 1400, SeqLo: 5000, SeqHi: 5100, MaxWin: 1 << 16, WScale: 7,
				Peer: PeerEstablished, Flags: FlowSeen | FlowScaled},
			{Packets: 4, Bytes: 311, Last: 1300, SeqLo: 9000, SeqHi: 9100, Grant: 71000, MaxWin: 1 << 16, WScale: 6,
				Peer: PeerEstablished, Flags: FlowSeen | FlowScaled | FlowGranted},
		},
	}
}

func TestPrint(t *testing.T) {
	local := &State{
		Tuple: [2]Tuple{{Src: addr("192.0.2.1"), SPort: 51000, Dst: addr("192.0.2.2"), DPort: 22, Proto: protoTCP}},
		Flags: In, Phase: TCPEstablished, RuleIn: 5,
		Flow: [2]Flow{{Peer: PeerEstablished, SeqLo: 10, SeqHi: 11}, {Peer: PeerSynSent}},
	}
	local.Tuple[1] = local.Tuple[0].Reverse()
	redirected := &State{
		Tuple: [2]Tuple{
			{Src: addr("198.51.100.7"), SPort: 5353, Dst: addr("203.0.113.5"), DPort: 8053, Proto: protoUDP},
			{Src: addr("192.168.1.2"), SPort: 53, Dst: addr("198.51.100.7"), DPort: 5353, Proto: protoUDP},
		},
		Flags: In | Out | NAT, Phase: UDPSingle, RuleIn: 101, RuleOut: 3,
		Flow: [2]Flow{{Peer: PeerSynSent, Packets: 1, Bytes: 60}, {}},
	}
	ping6 := &State{
		Tuple: [2]Tuple{{Src: addr("fe80::1"), SPort: 77, Dst: addr("fe80::2"), DPort: 128, Proto: protoICMPv6, Zone: 3}},
		Flags: Out, Flow: [2]Flow{{Peer: PeerSynSent}, {}},
	}
	ping6.Tuple[1] = ping6.Tuple[0].Reverse()
	gre := &State{
		Tuple: [2]Tuple{{Src: addr("10.0.0.1"), Dst: addr("10.0.0.2"), Proto: 47}},
		Flags: In | Out, Flow: [2]Flow{{Peer: PeerEstablished}, {Peer: PeerEstablished}},
	}
	gre.Tuple[1] = gre.Tuple[0].Reverse()
	for _, c := range []struct {
		state *State
		want  string
	}{
		{natted(), `
all tcp 203.0.113.5:50001 (192.168.1.10:40000) -> 198.51.100.7:443       ESTABLISHED:ESTABLISHED
   [5000 + 66000] wscale 7  [9000 + 100] wscale 6
   age 00:00:05, expires in 23:59:59, 6:4 pkts, 455:311 bytes, rule 3, out rule 7`},
		{local, `
all tcp 192.0.2.2:22 <- 192.0.2.1:51000       SYN_SENT:ESTABLISHED
   [0 + 0]  [10 + 1]
   age 00:00:15, expires in 23:59:45, 0:0 pkts, 0:0 bytes, rule 4`},
		{redirected, `
all udp 198.51.100.7:5353 -> 192.168.1.2:53 (203.0.113.5:8053)       SINGLE:NO_TRAFFIC
   age 00:00:15, expires in 00:00:15, 1:0 pkts, 60:0 bytes, rule old, out rule 2`},
		{ping6, `
em0 ipv6-icmp fe80::1[77] -> fe80::2[128]       0:0
   age 00:00:15, expires in 00:00:00, 0:0 pkts, 0:0 bytes`},
		{gre, `
all gre 10.0.0.1 -> 10.0.0.2       MULTIPLE:MULTIPLE
   age 00:00:15, expires in 00:00:00, 0:0 pkts, 0:0 bytes`},
	} {
		v := c.state.View(context(1500))
		if diff := cmp.Diff(strings.TrimPrefix(c.want, "\n"), v.Verbose()); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
}

// A redirected connection has the form that pf prints where it came in, with brackets after the
// first end. All others stay as they are.
func TestPrintOfPf(t *testing.T) {
	redirected := func(rule uint32) *State {
		return &State{
			Tuple: [2]Tuple{
				{Src: addr("198.51.100.7"), SPort: 5353, Dst: addr("203.0.113.5"), DPort: 8053, Proto: protoUDP},
				{Src: addr("192.168.1.2"), SPort: 53, Dst: addr("198.51.100.7"), DPort: 5353, Proto: protoUDP},
			},
			Flags: In | Out | NAT, Phase: UDPSingle, RuleIn: rule, RuleOut: 3, Flow: [2]Flow{{Peer: PeerSynSent}, {}},
		}
	}
	for _, c := range []struct {
		state *State
		want  string
	}{
		{redirected(5), "all udp 192.168.1.2:53 (203.0.113.5:8053) <- 198.51.100.7:5353       NO_TRAFFIC:SINGLE"},
		{redirected(0), "all udp 198.51.100.7:5353 -> 192.168.1.2:53 (203.0.113.5:8053)       SINGLE:NO_TRAFFIC"}, // the box redirects itself
		{natted(), "all tcp 203.0.113.5:50001 (192.168.1.10:40000) -> 198.51.100.7:443       ESTABLISHED:ESTABLISHED"},
	} {
		v := c.state.View(context(1500))
		if got := v.OfPf().String(); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}

func TestJSON(t *testing.T) {
	v := natted().View(context(1500))
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var back View
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(v, back, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Errorf("through JSON (-before +after):\n%s", diff)
	}
	for _, want := range []string{
		`"proto":"tcp"`, `"direction":"forward"`, `"phase":"tcp.established"`,
		`"src":{"addr":"192.168.1.10","port":40000,"new_addr":"203.0.113.5","new_port":50001,"state":"ESTABLISHED"`,
		`"dst":{"addr":"198.51.100.7","port":443,"state":"ESTABLISHED","packets":4`, `"rule_out":{"nr":7}`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
}

func TestFilter(t *testing.T) {
	v := natted().View(context(1500))
	for words, want := range map[string]bool{
		"":                                   true,
		"proto tcp":                          true,
		"proto 6 port 50001":                 true,
		"proto udp":                          false,
		"host 192.168.1.10":                  true,
		"host 203.0.113.0/24":                true,
		"host 203.0.113.5 host 198.51.100.7": true,
		"host 203.0.113.5 host 192.168.1.10": false, // both belong to the source
		"host 10.0.0.1":                      false,
		"port 443 rule 7":                    true,
		"rule 4":                             false,
		"phase tcp.established":              true,
		"phase tcp.closed":                   false,
		"port 80":                            false,
		"gateway 203.0.113.1":                true,
		"gateway 203.0.113.2":                false,
		"gateway 203.0.113.0/24":             true,
		"gateway 203.0.114.0/24":             false,
		"nat 203.0.113.5":                    true,
		"nat 203.0.113.0/24 proto tcp":       true,
		"nat 192.168.1.10":                   false, // its own address
		"nat 198.51.100.7":                   false, // not translated
	} {
		f, err := ParseFilter(strings.Fields(words))
		if err != nil {
			t.Errorf("%q: %v", words, err)
		} else if got := f.Match(&v); got != want {
			t.Errorf("%q: %v, want %v", words, got, want)
		}
	}
}

// A key selects the connection between its two ends, as they are or as they were
// translated, and not the one in the other direction.
func TestKey(t *testing.T) {
	v := natted().View(context(1500))
	for key, want := range map[string]bool{
		"tcp 192.168.1.10:40000 -> 198.51.100.7:443": true,
		"tcp 203.0.113.5:50001 -> 198.51.100.7:443":  true,
		"tcp 198.51.100.7:443 <- 203.0.113.5:50001":  true,
		"tcp 198.51.100.7:443 -> 203.0.113.5:50001":  false,
		"udp 192.168.1.10:40000 -> 198.51.100.7:443": false,
		"tcp 192.168.1.10:40001 -> 198.51.100.7:443": false,
		"tcp 2001:db8::1[80] -> 2001:db8::2[443]":    false,
		"icmp 10.0.0.1 -> 10.0.0.2":                  false,
	} {
		f, err := ParseKey(key)
		if err != nil {
			t.Errorf("%q: %v", key, err)
		} else if got := f.Match(&v); got != want {
			t.Errorf("%q: %v, want %v", key, got, want)
		}
	}
	for _, key := range []string{"", "tcp 10.0.0.1:1 10.0.0.2:2", "tcp 10.0.0.1:1 -> lan", "tcp 2001:db8::1[x] -> 2001:db8::2[1]", "quick 10.0.0.1:1 -> 10.0.0.2:2"} {
		if f, err := ParseKey(key); err == nil {
			t.Errorf("%q is read as %+v", key, f)
		}
	}
}

func TestFilterErrors(t *testing.T) {
	for words, want := range map[string]string{
		"proto":          `"proto" must be followed by a value`,
		"proto quick":    "proto quick: unknown protocol; give its number",
		"host localhost": "host localhost: not an address",
		"host 10.0.0/8":  "host 10.0.0/8: not a network",
		"port 0":         "port 0: a port is a number from 1 to 65535",
		"phase tcp":      `phase tcp: unknown phase "tcp"`,
		"rule -1":        "rule -1: a rule is a number from 0",
		"state x":        `"state": expected proto, host, from, to, port, phase, rule, label, on, id, gateway or nat`,
		"gateway wan":    "gateway wan: not an address",
	} {
		_, err := ParseFilter(strings.Fields(words))
		if err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", words, err, want)
		}
	}
}

func TestTimeouts(t *testing.T) {
	set := TimeoutsOf(&resolve.Timeouts{TCPFirst: 120, OtherMultiple: 60, ICMPError: 10})
	if set[TCPFirst] != 12000 || set[OtherMultiple] != 6000 || set[ICMPError] != 1000 || set[UDPFirst] != 0 {
		t.Errorf("in ticks: %v", set)
	}
	for _, c := range []struct{ n, start, end, want uint32 }{
		{100, 0, 0, 12000}, {60000, 60000, 120000, 12000}, {90000, 60000, 120000, 6000},
		{119999, 60000, 120000, 0}, {120000, 60000, 120000, 0}, {200000, 60000, 120000, 0}, {0, 0, 10, 12000}, {5, 0, 10, 6000},
	} {
		if got := set.Adapt(c.n, c.start, c.end)[TCPFirst]; got != c.want {
			t.Errorf("%d states, adaptive %d to %d: %d ticks, want %d", c.n, c.start, c.end, got, c.want)
		}
	}
}

// The clock wraps after 497 days. Spans across the wrap are still right.
func TestWrap(t *testing.T) {
	s := &State{Created: ^Tick(0) - 99, Phase: UDPSingle}
	s.Flow[0].Last, s.Flow[1].Last = ^Tick(0)-49, 100
	if s.Last() != 100 {
		t.Errorf("last %d", s.Last())
	}
	v := s.View(context(200))
	if v.Age != 3*time.Second || v.Expires != 29*time.Second {
		t.Errorf("age %v, expires in %v", v.Age, v.Expires)
	}
}

// TestGiven checks what is printed of the queues and marks that rules set.
func TestGiven(t *testing.T) {
	for _, test := range []struct {
		queues [2]uint16
		mark   uint32
		masks  [2]uint32
		want   string
	}{
		{[2]uint16{}, 0, [2]uint32{}, ""},
		{[2]uint16{3, 3}, 0, [2]uint32{}, ", queue bulk"},
		{[2]uint16{4, 9}, 0, [2]uint32{}, ", queue (bulk, voice), replies queue old"},
		{[2]uint16{0, 3}, 2, [2]uint32{0xf, 0xf0}, ", replies queue bulk, mark 0x2/0xff"},
		{[2]uint16{}, 0, [2]uint32{0, 1}, ", mark 0x0/0x1"},
	} {
		s := natted()
		s.Queues, s.Mark, s.MarkMask = test.queues, test.mark, test.masks
		if test.masks != [2]uint32{} {
			s.Flags |= Marked
		}
		v := s.View(context(2000))
		if got := v.given(); got != test.want {
			t.Errorf("queues %d, mark %#x/%#x print %q, want %q", test.queues, test.mark, test.masks, got, test.want)
		}
	}
}

// TestPrio checks the printed form of set prio, and which of two priorities a packet
// gets.
func TestPrio(t *testing.T) {
	for _, test := range []struct {
		forth, back Prio
		want        string
	}{
		{0, 0, ""},
		{PrioOf(6, 6), PrioOf(6, 6), ", prio 6"},
		{PrioOf(0, 7), 0, ", prio (0, 7)"},
		{PrioOf(3, 3), PrioOf(1, 2), ", prio 3, replies prio (1, 2)"},
		{0, PrioOf(5, 5), ", replies prio 5"},
	} {
		v := View{Src: End{Prio: test.forth.String()}, Dst: End{Prio: test.back.String()}}
		if got := v.given(); got != test.want {
			t.Errorf("%d and %d print %q, want %q", test.forth, test.back, got, test.want)
		}
	}
	p := PrioOf(0, 7)
	if n, ok := p.Of(false); n != 0 || !ok {
		t.Errorf("a packet has %d, %t", n, ok)
	}
	if n, ok := p.Of(true); n != 7 || !ok {
		t.Errorf("an urgent packet has %d, %t", n, ok)
	}
	if _, ok := Prio(0).Of(true); ok {
		t.Error("where nothing is given a packet has something")
	}
}

// What queues have dropped is printed for both directions, if there is any.
func TestLostPrint(t *testing.T) {
	lost := [2]Loss{{12, 18456}, {}}
	s := &State{}
	c := &Context{Rule: func(uint32) (RuleRef, bool) { return RuleRef{}, false }, Queue: func(uint16) string { return "" }, Lost: func(*State) [2]Loss { return lost }}
	v := s.View(c)
	if got, want := v.lost(), ", lost in queues 12:0 pkts, 18456:0 bytes"; got != want || !strings.HasSuffix(v.Verbose(), want) {
		t.Errorf("prints %q, want %q; in full:\n%s", got, want, v.Verbose())
	}
	lost[0] = Loss{}
	if v = s.View(c); v.lost() != "" {
		t.Errorf("without losses it prints %q", v.lost())
	}
}
