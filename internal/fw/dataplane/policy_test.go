package dataplane

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"

	"weir/internal/fw/bpfload"
	"weir/internal/fw/spd"
	"weir/internal/fw/spd/spdtest"
	"weir/internal/host/xfrm"
)

// policies puts IPsec policies in force, from a text such as
//
//	out 192.168.1.0/24 10.9.0.0/16 esp; fwd 10.9.0.0/16 192.168.1.0/24 esp proto 6 dport 80 prio 5; default out
//
// What a policy does is esp, card (a network card encrypts), use (ESP if there is a key), block or clear. It may have
// gone and be held. "all": they are not known.
func (s *scene) policies(text string) string {
	s.tb.Helper()
	if text == "all" {
		check(s.tb, s.dp.SetPolicies(spd.Unknown("a test")))
		return ""
	}
	var policies, held []xfrm.Policy
	var defaults xfrm.Defaults
	for one := range strings.SplitSeq(text, ";") {
		words := strings.Fields(one)
		if len(words) == 0 {
			continue
		}
		if words[0] == "default" {
			defaults.BlockOut, defaults.BlockForward = words[1] == "out", words[1] == "fwd"
			continue
		}
		if p := s.policy(words); slices.Contains(words, "held") {
			held = append(held, p)
		} else {
			policies = append(policies, p)
		}
	}
	check(s.tb, s.dp.SetPolicies(spd.Compile(policies, held, defaults, s.dp.config.Options.MarkMask)))
	return ""
}

func (s *scene) policy(words []string) xfrm.Policy {
	s.tb.Helper()
	p := xfrm.Policy{Direction: xfrm.Out, Selector: xfrm.Selector{Src: netip.MustParsePrefix(words[1]), Dst: netip.MustParsePrefix(words[2])}}
	if words[0] == "fwd" {
		p.Direction = xfrm.Forward
	}
	for i := 3; i < len(words); i++ {
		number := func() uint32 {
			i++
			return uint32(must(strconv.ParseUint(words[i], 0, 32))(s.tb))
		}
		switch words[i] {
		case "esp":
			p.Templates, p.Required = 1, 1
		case "card":
			p.Templates, p.Required, p.Offloaded = 1, 1, true
		case "use":
			p.Templates = 1
		case "block":
			p.Block = true
		case "clear", "held":
		case "proto":
			p.Proto = uint8(number())
		case "sport":
			p.Sport, p.SportMask = uint16(number()), 0xffff
		case "dport":
			p.Dport, p.DportMask = uint16(number()), 0xffff
		case "prio":
			p.Priority = number()
		case "mark":
			p.Mark = number()
			p.MarkMask = number()
		case "wan":
			p.Ifindex = uint32(s.net.wan0)
		case "lan":
			p.Ifindex = uint32(s.net.lan0)
		default:
			s.tb.Fatalf("a policy with %s", words[i])
		}
	}
	return p
}

// What IPsec policies select goes up to the stack, whichever way it would have gone.
func testPolicies(h *harness) {
	defer func() { check(h.tb, h.dp.SetPolicies(&spd.Table{})) }()
	h.policyPlays()
	h.policyPlaysOfRoutes()
	h.policyPlaysOfEgress()
}

const (
	toSite   = "udp 192.168.1.10:4000 > 10.9.0.1:53"
	fromSite = "udp 10.9.0.1:53 > 192.168.1.10:4000"
	siteOut  = "out 192.168.1.0/24 10.9.0.0/16 esp"
	siteBoth = siteOut + "; fwd 10.9.0.0/16 192.168.1.0/24 esp"
)

func (h *harness) policyPlays() {
	const forwarded = "forward state wan " + toSite + " ttl 63"
	h.plays([]play{
		{"new connections", "pass", []step{
			{"policies", siteBoth, ""},
			{"xdp lan", toSite, "up up-policy came"},
			{"xdp lan", toSite, "up up-policy came"},
			{"tcx lan", toSite, "up up-policy came"},
			{"xdp wan", fromSite, "up up-policy came"},
			{"tcx wan", fromSite, "up up-policy came"},
			{"xdp lan", "udp 192.168.1.10:4000 > 198.51.100.9:53", "forward rule wan udp 192.168.1.10:4000 > 198.51.100.9:53 ttl 63"},
			{"xdp lan", "udp 192.168.1.10:4000 > 198.51.100.9:53", "forward state wan udp 192.168.1.10:4000 > 198.51.100.9:53 ttl 63"},
			{"policies", "", ""},
			{"xdp lan", toSite, forwarded},
		}},
		{"a connection that was there before", "pass", []step{
			{"policies", "", ""},
			{"xdp lan", toSite, "forward rule wan " + toSite + " ttl 63"},
			{"xdp lan", toSite, forwarded},
			{"xdp wan", fromSite, "forward state lan " + fromSite + " ttl 63"},
			{"policies", siteOut, ""},
			{"xdp lan", toSite, "up up-policy came"},
			{"tcx lan", toSite, "up up-policy came"},
			{"xdp wan", fromSite, "forward state lan " + fromSite + " ttl 63"},
			{"policies", siteBoth, ""},
			{"tcx wan", fromSite, "up up-policy came"},
			{"policies", "", ""},
			{"tcx lan", toSite, forwarded},
		}},
		{"they are not known", "pass", []step{
			{"policies", "all", ""},
			{"xdp lan", toSite, "up up-policy came"},
			{"xdp lan", toSite, "up up-policy came"},
			{"xdp wan", fromSite, "up up-policy came"},
			{"tcx lan", "udp 192.168.1.10:4000 > 198.51.100.9:53", "up up-policy came"},
			{"out wan came", toSite, "up marked leaves"},
		}},
		{"IPv6", "pass", []step{
			{"policies", "out fd00:1::/64 2001:db8:9::/48 esp", ""},
			{"xdp lan", "udp [fd00:1::10]:4000 > [2001:db8:9::1]:53", "up up-policy came"},
			{"tcx lan", "udp [fd00:1::10]:4000 > [2001:db8:9::1]:53", "up up-policy came"},
			{"xdp lan", "udp [fd00:1::10]:4000 > [2001:db8:8::1]:53", "forward rule wan udp [fd00:1::10]:4000 > [2001:db8:8::1]:53 ttl 63"},
			{"xdp lan", toSite, "forward rule wan " + toSite + " ttl 63"},
		}},
		{"the least priority wins", "pass", []step{
			{"policies", "out 192.168.1.0/24 10.9.0.0/16 esp prio 5; out 192.168.1.10/32 10.0.0.0/8 clear prio 4; out 0.0.0.0/0 10.9.0.2/32 block prio 3", ""},
			{"xdp lan", toSite, "forward rule wan " + toSite + " ttl 63"},
			{"xdp lan", toSite, forwarded},
			{"xdp lan", "udp 192.168.1.10:4000 > 10.9.0.2:53", "up up-policy came"},
			{"policies", "out 192.168.1.0/24 10.9.0.0/16 esp prio 4; out 192.168.1.10/32 10.0.0.0/8 clear prio 4", ""},
			{"xdp lan", toSite, "up up-policy came"},
			{"out wan came", toSite, "up marked leaves"}, // only the kernel knows which of the two is older
		}},
		{"ports and protocols", "pass", []step{
			{"policies", "out 0.0.0.0/0 10.9.0.0/16 esp proto 17 dport 53; out 0.0.0.0/0 0.0.0.0/0 esp proto 1 sport 8", ""},
			{"xdp lan", toSite, "up up-policy came"},
			{"xdp lan", "udp 192.168.1.10:4000 > 10.9.0.1:54", "forward rule wan udp 192.168.1.10:4000 > 10.9.0.1:54 ttl 63"},
			{"xdp lan", "tcp 192.168.1.10:4000 > 10.9.0.1:53 S", "forward rule wan tcp 192.168.1.10:4000 > 10.9.0.1:53 S ttl 63"},
			{"xdp lan", "icmp 192.168.1.10 > 198.51.100.9 type 8 id 7", "up up-policy came"},
			{"xdp lan", "udp 192.168.1.10:4000 > 10.9.0.1:54 frag 0+ id 9 len 1472", "up up-policy came"},
			{"xdp lan", "udp 192.168.1.10 > 10.9.0.1 frag 1480 id 9 len 100", "up up-policy record0"},
			{"xdp lan", "udp 192.168.1.10:4000 > 10.8.0.1:53 frag 0+ id 10 len 1472", "forward rule wan udp 192.168.1.10:4000 > 10.8.0.1:53 frag 0+ id 10 len 1472 ttl 63"},
			{"xdp lan", "47 192.168.1.10 > 10.9.0.1", "forward rule wan 47 192.168.1.10 > 10.9.0.1 ttl 63"},
			{"policies", "out 0.0.0.0/0 10.9.0.0/16 esp proto 47 dport 53", ""},
			{"xdp lan", "47 192.168.1.10 > 10.9.0.1", "up up-policy came"}, // the kernel compares its key
			{"out wan came", "47 192.168.1.10 > 10.9.0.1", "up marked leaves"},
		}},
		{"ports that are not known", "pass", []step{
			{"policies", siteOut + " prio 9; out 0.0.0.0/0 0.0.0.0/0 clear proto 17 dport 500 prio 3", ""},
			{"xdp lan", "47 192.168.1.10 > 10.9.0.1", "up up-policy came"},
			{"out wan came", "47 192.168.1.10 > 10.9.0.1", "drop policy"}, // no policy lets it pass
			{"xdp lan", "udp 192.168.1.10:4000 > 10.9.0.1:500 frag 0+ id 9 len 1472", "up up-policy came"},
			{"out wan came", "udp 192.168.1.10:4000 > 10.9.0.1:500 frag 0+ id 9 len 1472", "up marked leaves"},
			{"out wan came", "udp 192.168.1.10 > 10.9.0.1 frag 1480 id 9 len 100", "up marked leaves"},
			{"xdp lan", "udp 192.168.1.10:4000 > 10.9.0.1:53 frag 0+ id 10 len 1472", "up up-policy came"},
			{"out wan came", "udp 192.168.1.10:4000 > 10.9.0.1:53 frag 0+ id 10 len 1472", "drop policy"}, // its state has the ports
			{"policies", "out 192.168.1.0/24 10.9.0.0/16 esp proto 17 dport 53; out 192.168.1.0/24 10.9.0.0/16 clear proto 17 dport 54 prio 3", ""},
			{"out wan came", "udp 192.168.1.10:4000 > 10.9.0.1:500 frag 0+ id 11 len 1472", "up marked leaves"},
			{"out wan came", "udp 192.168.1.10 > 10.9.0.1 frag 1480 id 11 len 100", "up marked leaves"},
			{"policies", "out 192.168.1.0/24 10.9.0.0/16 esp proto 17 dport 500; out 192.168.1.0/24 10.9.0.0/16 clear proto 17 dport 54 prio 3", ""},
			{"out wan came", "udp 192.168.1.10 > 10.9.0.1 frag 1480 id 11 len 100", "drop policy"},
		}},
		{"ports that are not known, and a policy that is held", "pass", []step{
			{"policies", siteOut + " held prio 9; out 0.0.0.0/0 0.0.0.0/0 clear proto 47 dport 500 prio 3; out 0.0.0.0/0 0.0.0.0/0 clear proto 17 dport 500 prio 3", ""},
			{"xdp lan", "47 192.168.1.10 > 10.9.0.1", "up up-policy came"},
			{"out wan came", "47 192.168.1.10 > 10.9.0.1", "drop policy"},
			{"xdp lan", "udp 192.168.1.10:4000 > 10.9.0.1:500 frag 0+ id 9 len 1472", "up up-policy came"},
			{"out wan came", "udp 192.168.1.10:4000 > 10.9.0.1:500 frag 0+ id 9 len 1472", "up marked leaves"},
			{"xdp lan", toSite, "up up-policy came"},
			{"out wan came", toSite, "drop policy"},
			{"policies", siteOut + " prio 9; out 0.0.0.0/0 0.0.0.0/0 clear proto 47 dport 500 prio 3", ""},
			{"out wan came", "47 192.168.1.10 > 10.9.0.1", "up marked leaves"}, // the kernel has compared its key
		}},
		{"fragments without a state, and a policy that is held", "pass no state", []step{
			{"policies", siteOut + " held prio 9; out 0.0.0.0/0 0.0.0.0/0 clear proto 17 dport 500 prio 3", ""},
			{"xdp lan", "udp 192.168.1.10:4000 > 10.9.0.1:500 frag 0+ id 9 len 1472", "up up-policy record0"},
			{"out wan record0", "udp 192.168.1.10:4000 > 10.9.0.1:500 frag 0+ id 9 len 1472", "drop policy"},
			{"policies", siteOut + " prio 9; out 0.0.0.0/0 0.0.0.0/0 clear proto 17 dport 500 prio 3", ""},
			{"out wan record0", "udp 192.168.1.10:4000 > 10.9.0.1:500 frag 0+ id 9 len 1472", "up marked record0"},
		}},
		{"a policy that a card carries out", "pass", []step{
			{"policies", "out 192.168.1.0/24 10.9.0.0/16 card", ""},
			{"xdp lan", toSite, "up up-policy came"},
			{"out wan came", toSite, "up marked leaves"}, // the card encrypts it
			{"policies", "out 192.168.1.0/24 10.9.0.0/16 block", ""},
			{"out wan came", toSite, "drop policy"},
		}},
		{"interfaces and marks", "pass", []step{
			{"policies", "out 0.0.0.0/0 10.9.0.0/16 esp lan", ""},
			{"xdp lan", toSite, "forward rule wan " + toSite + " ttl 63"},
			{"policies", "out 0.0.0.0/0 10.9.0.0/16 esp wan", ""},
			{"xdp lan", toSite, "up up-policy came"},
			{"policies", "out 0.0.0.0/0 10.9.0.0/16 esp mark 5 0xff", ""},
			{"xdp lan", toSite, forwarded},
		}},
		{"marks of rules", "pass in on lan0 set mark 5\npass out", []step{
			{"policies", "out 0.0.0.0/0 10.9.0.0/16 esp mark 5 0xff", ""},
			{"xdp lan", toSite, "up up-policy came+0x5"},
			{"xdp lan", toSite, "up up-policy came+0x5"},
			{"policies", "out 0.0.0.0/0 10.9.0.0/16 esp mark 6 0xff", ""},
			{"xdp lan", toSite, forwarded},
		}},
		{"blocked by default", "pass", []step{
			{"policies", "default out; out 0.0.0.0/0 198.51.100.0/24 clear", ""},
			{"xdp lan", toSite, "up up-policy came"},
			{"xdp lan", "udp 192.168.1.10:4000 > 198.51.100.9:53", "forward rule wan udp 192.168.1.10:4000 > 198.51.100.9:53 ttl 63"},
			{"policies", "default fwd", ""},
			{"xdp lan", "udp 192.168.1.10:4000 > 198.51.100.9:53", "up up-policy came"},
		}},
	})
}

// Ways that a rule has changed.
func (h *harness) policyPlaysOfRoutes() {
	h.plays([]play{
		{"without a state", "pass no state", []step{
			{"policies", siteBoth, ""},
			{"xdp lan", toSite, "up up-policy record0"},
			{"tcx lan", toSite, "up up-policy record0"},
			{"xdp wan", fromSite, "up up-policy record0"},
		}},
		{"a side without a state", "pass in on lan0 keep state\npass out on wan0 no state\npass in on wan0", []step{
			{"policies", siteOut, ""},
			{"xdp lan", toSite, "up up-policy came"},
			{"xdp lan", toSite, "up up-policy came"},
			{"tcx lan", toSite, "up up-policy came"},
		}},
		{"by its address in the LAN", "match out on wan0 nat-to (wan0)\npass", []step{
			{"policies", siteOut, ""},
			{"xdp lan", toSite, "up up-policy came"},
			{"xdp lan", toSite, "up up-policy came"},
			{"out wan came", toSite, "drop policy"}, // the stack has not encrypted it
		}},
		{"by its address in the WAN", "match out on wan0 nat-to (wan0)\npass", []step{
			{"policies", "out 203.0.113.2/32 10.9.0.0/16 esp", ""},
			{"xdp lan", toSite, "up up-policy came"},
			{"xdp lan", toSite, "up up-policy came"},
			{"out wan came", toSite, "drop policy"}, // the stack does not see that address
			{"policies", "", ""},
			{"out wan came", toSite, "up marked leaves udp 203.0.113.2:$p > 10.9.0.1:53"},
			{"policies", "fwd 10.9.0.0/16 192.168.1.0/24 esp", ""},
			{"xdp wan", "udp 10.9.0.1:53 > 203.0.113.2:$p", "up up-policy leaves " + fromSite},
			{"out lan leaves", fromSite, "up marked leaves"},
		}},
		{"translated, at the device below", "match out on wan0 nat-to (wan0)\npass", []step{
			{"policies", "out 192.168.1.0/24 10.8.0.0/16 esp", ""},
			{"xdp lan", toSite, "forward rule wan udp 203.0.113.2:$p > 10.9.0.1:53 ttl 63"},
			{"out wan came", toSite, "up marked leaves udp 203.0.113.2:$p > 10.9.0.1:53"},
			{"out wan leaves", "udp 203.0.113.2:$p > 10.9.0.1:53", "up marked leaves"}, // it is not the box's own
			{"policies", "all", ""},
			{"out wan leaves", "udp 203.0.113.2:$p > 10.9.0.1:53", "up marked leaves"},
		}},
		{"redirected", "match in on lan0 proto udp to 192.168.1.1 rdr-to 10.9.0.1\npass", []step{
			{"policies", siteOut, ""},
			{"xdp lan", "udp 192.168.1.10:4000 > 192.168.1.1:53", "up up-policy leaves " + toSite},
			{"tcx lan", "udp 192.168.1.10:4000 > 192.168.1.1:53", "up up-policy leaves " + toSite},
		}},
		{"route-to", "pass in on lan0 route-to (wan0 203.0.113.1)\npass", []step{
			{"policies", siteOut, ""},
			{"xdp lan", toSite, "up up-policy came"},
			{"xdp lan", toSite, "up up-policy came"},
			{"tcx lan", toSite, "up up-policy came"},
			{"policies", "", ""},
			{"xdp lan", toSite, "forward state wan " + toSite + " ttl 63"},
		}},
		{"route-to without a state", "pass in on lan0 route-to (wan0 203.0.113.1) no state\npass no state", []step{
			{"policies", siteOut, ""},
			{"xdp lan", toSite, "up up-policy record0"},
			{"tcx lan", toSite, "up up-policy record0"},
		}},
		{"route-to a neighbour that is not known", "pass in on lan0 route-to (wan0 203.0.113.7)\npass", []step{
			{"policies", siteOut, ""},
			{"xdp lan", toSite, "up up-policy came"},
			{"tcx lan", toSite, "up up-policy came"},
		}},
		{"reply-to", "pass in on wan0 reply-to (wan0 203.0.113.1)\npass", []step{
			{"policies", siteOut, ""},
			{"xdp wan", "udp 10.9.0.1:4000 > 192.168.1.10:53", "forward rule lan udp 10.9.0.1:4000 > 192.168.1.10:53 ttl 63"},
			{"xdp lan", "udp 192.168.1.10:53 > 10.9.0.1:4000", "up up-policy came"},
			{"tcx lan", "udp 192.168.1.10:53 > 10.9.0.1:4000", "up up-policy came"},
		}},
		{"af-to", nat64, []step{
			{"policies", "out 203.0.113.2/32 198.51.100.0/24 esp", ""},
			{"xdp lan", "udp [fd00:1::10]:4000 > [64:ff9b::c633:6409]:53", "drop policy"},
			{"tcx lan", "udp [fd00:1::10]:4000 > [64:ff9b::c633:6409]:53", "drop policy"},
			{"policies", "out 203.0.113.2/32 10.9.0.0/16 esp", ""},
			{"tcx lan", "udp [fd00:1::10]:4000 > [64:ff9b::c633:6409]:53", "forward state wan udp 203.0.113.2:$p > 198.51.100.9:53 ttl 63"},
			{"policies", "fwd fd00:1::/64 64:ff9b::/96 esp", ""},
			{"xdp lan", "udp [fd00:1::10]:4000 > [64:ff9b::c633:6409]:53", "drop policy"},
			{"policies", "out 64:ff9b::c633:6401/128 fd00:1::/64 esp proto 58 sport 3", ""}, // an error of a router
			{"xdp wan", "icmp 198.51.100.1 > 203.0.113.2 type 11 quote udp 203.0.113.2:$p > 198.51.100.9:53 ttl 1", "drop policy"},
			{"policies", "out 64:ff9b::c633:6409/128 fd00:1::/64 esp", ""},
			{"xdp wan", "icmp 198.51.100.1 > 203.0.113.2 type 11 quote udp 203.0.113.2:$p > 198.51.100.9:53 ttl 1",
				"forward state lan icmp6 64:ff9b::c633:6401 > fd00:1::10 type 3 ttl 63 quote udp [fd00:1::10]:4000 > [64:ff9b::c633:6409]:53 ttl 1"},
		}},
		{"fragments", "pass", []step{
			{"policies", siteOut, ""},
			{"xdp lan", "udp 192.168.1.10:4000 > 10.9.0.1:53 frag 0+ id 9 len 1472", "up up-policy came"},
			{"xdp lan", "udp 192.168.1.10 > 10.9.0.1 frag 1480+ id 9 len 104", "up up-policy record0"},
			{"tcx lan", "udp 192.168.1.10 > 10.9.0.1 frag 1584 id 9 len 100", "up up-policy record0"},
		}},
		{"errors", "pass", []step{
			{"policies", "", ""},
			{"xdp wan", "udp 10.9.0.1:4000 > 192.168.1.10:53", "forward rule lan udp 10.9.0.1:4000 > 192.168.1.10:53 ttl 63"},
			{"policies", siteOut, ""},
			{"xdp lan", "icmp 192.168.1.10 > 10.9.0.1 type 3 code 3 quote udp 10.9.0.1:4000 > 192.168.1.10:53", "up up-policy record0"},
			{"tcx lan", "icmp 192.168.1.10 > 10.9.0.1 type 3 code 3 quote udp 10.9.0.1:4000 > 192.168.1.10:53", "up up-policy record0"},
		}},
	})
}

// What leaves by the stack, and what weir itself sends.
func (h *harness) policyPlaysOfEgress() {
	const esp = "50 203.0.113.2 > 203.0.113.1 len 100"
	h.plays([]play{
		{"the stack has not encrypted it", "pass", []step{
			{"policies", siteOut, ""},
			{"xdp lan", toSite, "up up-policy came"},
			{"out wan came", toSite, "drop policy"},
			{"policies", "out 192.168.1.0/24 10.9.0.0/16 use", ""},
			{"xdp lan", toSite, "up up-policy came"},
			{"out wan came", toSite, "up marked leaves"}, // there is no key, and none is needed
			{"policies", "out 192.168.1.0/24 10.9.0.0/16 block", ""},
			{"out wan came", toSite, "drop policy"},
		}},
		{"what is encrypted", "block\npass in on lan0\npass out on wan0 proto { udp, esp }", []step{
			{"policies", siteOut, ""},
			{"xdp lan", toSite, "up up-policy came"},
			{"out wan came", esp, "up rule"}, // as what the box itself sends
			{"out wan came", esp, "up state"},
			{"out wan leaves", esp, "up state"}, // of what was redirected
			{"out wan record0", "udp 203.0.113.2:4500 > 203.0.113.1:4500 len 100", "up rule"},
			{"out wan came", "50 192.168.1.10 > 203.0.113.1 len 100", "drop guard"},
			{"out wan", esp, "up state"},
			{"policies", "", ""},
			{"out wan", esp, "up state"},
		}},
		{"what is encrypted meets the rules", "block out on wan0 proto esp\npass proto udp", []step{
			{"policies", siteOut, ""},
			{"out wan came", esp, "drop block"},
		}},
		{"answers of weir", "block return in on wan0\npass in on lan0\npass out", []step{
			{"policies", siteOut, ""},
			{"xdp wan", "tcp 10.9.0.1:4000 > 192.168.1.10:81 S", "drop block"},
			{"tcx wan", "udp 10.9.0.1:4000 > 192.168.1.10:82", "drop block"},
			{"xdp wan", "tcp 198.51.100.9:4000 > 192.168.1.10:81 S seq 5", "forward block wan tcp 192.168.1.10:81 > 198.51.100.9:4000 RA ack 6 win 0"},
			{"policies", "out 203.0.113.2/32 198.51.100.0/24 esp proto 1", ""},
			{"xdp wan", "udp 198.51.100.9:4000 > 192.168.1.10:81", "drop block"},
			{"policies", "out 203.0.113.2/32 198.51.100.0/24 esp proto 1 sport 3", ""}, // destination unreachable
			{"xdp wan", "udp 198.51.100.9:4000 > 192.168.1.10:81", "drop block"},
			{"policies", "out 203.0.113.2/32 198.51.100.0/24 esp proto 17 sport 3", ""},
			{"xdp wan", "udp 198.51.100.9:4000 > 192.168.1.10:81", "forward block wan icmp 203.0.113.2 > 198.51.100.9 type 3 code 3 quote udp 198.51.100.9:4000 > 192.168.1.10:81"},
		}},
	})
}

// The programs find what the kernel would find, for random policies and packets.
func TestPoliciesAreThoseOfTheKernel(t *testing.T) {
	h := newHarness(t, "pass no state")
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	s := scene{harness: h}
	seen := make(map[string]int)
	for range 300 {
		policies, defaults := spdtest.Random(r, uint32(h.net.lan0), uint32(h.net.wan0))
		check(t, h.dp.SetPolicies(spd.Compile(policies, nil, defaults, h.dp.config.Options.MarkMask)))
		for range 10 {
			h.forget() // of hand-offs
			text, flow := s.randomFlow(r)
			want := "forward"
			for _, d := range []xfrm.Direction{xfrm.Out, xfrm.Forward} {
				if spdtest.Verdict(policies, defaults, &flow, d) != spd.Clear {
					want = "up"
				}
			}
			got := h.in(h.xdp, "lan", text)
			seen[want]++
			if string(got.verdict) != want || (want == "up") != (got.reason == "up-policy") {
				t.Fatalf("%s: %s %s, want %s\n%+v\n%+v", text, got.verdict, got.reason, want, policies, defaults)
			}
		}
	}
	if seen["up"] < 100 || seen["forward"] < 100 {
		t.Errorf("the packets were too much alike: %v", seen)
	}
}

// A table is written when no program searches it any more: not before a grace period after others took its place.
func TestPoliciesWaitForSearches(t *testing.T) {
	h := newHarness(t, "pass")
	s := scene{harness: h}
	t.Cleanup(func() { waitForRuns = bpfload.WaitForRuns })
	entries := func() map[xdpPolicyKey]xdpPolicy {
		all := make(map[xdpPolicyKey]xdpPolicy)
		var key xdpPolicyKey
		var value xdpPolicy
		some := h.dp.tables.maps[mapPolicies].Iterate()
		for some.Next(&key, &value) {
			all[key] = value
		}
		check(t, some.Err())
		return all
	}
	before, lists := entries(), h.dp.tables.shared.PolicyLists
	waits := 0
	waitForRuns = func() error {
		waits++
		if now := entries(); !maps.Equal(now, before) || h.dp.tables.shared.PolicyLists != lists {
			t.Errorf("wait %d comes after the first write: %d entries, there were %d", waits, len(now), len(before))
		}
		return bpfload.WaitForRuns()
	}
	for round, text := range []string{siteOut, siteBoth, "", "", siteBoth, siteOut} {
		if round == 3 {
			s.policies("all") // writes nothing
		}
		before, lists = entries(), h.dp.tables.shared.PolicyLists
		s.policies(text)
		if waits != round {
			t.Fatalf("after %d tables there were %d waits", round+1, waits)
		}
	}
	failed := errors.New("no grace period")
	waitForRuns = func() error { return failed }
	before, lists = entries(), h.dp.tables.shared.PolicyLists
	if err := h.dp.SetPolicies(&spd.Table{}); !errors.Is(err, failed) {
		t.Errorf("without a grace period: %v", err)
	}
	if !maps.Equal(entries(), before) || h.dp.tables.shared.PolicyLists != lists || h.dp.tables.shared.Policies&policyAll == 0 {
		t.Error("without a grace period a table is written, or not everything goes up")
	}
}

// Programs see what has been decrypted wherever there is IPsec.
func TestSeesDecrypted(t *testing.T) {
	newNet(t)
	sees, err := bpfload.SeesDecrypted()
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := xfrm.Policies(); !sees && err == nil {
		t.Error("the kernel has policies, but does not show what it has decrypted")
	}
}

// randomFlow returns a packet from the LAN to hosts of the WAN, and what the kernel would compare of it.
func (s *scene) randomFlow(r *rand.Rand) (text string, f spdtest.Flow) {
	six := r.IntN(3) == 0
	f.Src = netip.MustParseAddr("192.168.1.10")
	if six {
		f.Src = netip.MustParseAddr("fd00:1::10")
	}
	for f.Dst = f.Src; s.isNear(f.Dst); f.Dst = spdtest.RandomAddress(r, six) { //nolint:revive // the loop is all
	}
	f.Ifindex = uint32(s.net.wan0)
	f.Sport, f.Dport = spdtest.RandomPort(r), spdtest.RandomPort(r)
	name := [...]string{"tcp", "udp", "sctp", "icmp"}[r.IntN(4)]
	f.Proto = map[string]uint8{"tcp": 6, "udp": 17, "sctp": 132, "icmp": 1}[name]
	if name != "icmp" {
		text = fmt.Sprintf("%s %s > %s", name, netip.AddrPortFrom(f.Src, f.Sport), netip.AddrPortFrom(f.Dst, f.Dport))
		if name == "tcp" {
			text += " S"
		}
		return text, f
	}
	f.Sport, f.Dport = 8, 0
	if six {
		name, f.Proto, f.Sport = "icmp6", 58, 128
	}
	return fmt.Sprintf("%s %s > %s type %d id 7", name, f.Src, f.Dst, f.Sport), f
}

func (s *scene) isNear(a netip.Addr) bool {
	return netip.MustParsePrefix("192.168.1.0/24").Contains(a) || netip.MustParsePrefix("fd00:1::/64").Contains(a) ||
		a == netip.MustParseAddr("192.168.3.4") || a == netip.MustParseAddr("fd00:3::4")
}
