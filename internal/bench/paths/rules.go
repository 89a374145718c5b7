package paths

import (
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	"weir/examples"
	"weir/internal/bench/traffic"
)

const (
	// MaxRules leaves room for the example's rules below weir's limit of 65,536.
	MaxRules = 64_000
	// MaxTable is the largest number of addresses in a further table.
	MaxTable = 1_000_000
	// defaultStates is pf's default for "set limit states".
	defaultStates = 100_000

	// Further rules go before these lines of the examples: the first filter rule, and
	// the first rule that every new connection reaches.
	weirFilter = "block all "
	nftSets    = "\tset martians {\n"
	nftFilter  = "\t\tiifname \"wan0\" ip saddr @martians drop\n"
)

// limitLine matches the limit of states in a rule file.
var limitLine = regexp.MustCompile(`(?m)^(set limit states[ \t]+)([0-9]+)[ \t]*$`)

// weirRules returns examples/gateway.conf with the further rules of a case. Its limit of
// states is the case's, or twice its flows.
func weirRules(c traffic.Case) string {
	text := before(examples.GatewayConf, weirFilter, moreAddresses(c, "table <strangers> { ", " ", " }\nblock in quick on $lan from <strangers>\n")+moreRules(c, func(source netip.Addr, port int) string {
		return fmt.Sprintf("block in quick on $lan proto %s from %s to port %d\n", c.Protocol, source, port)
	}))
	if c.Limit > 0 {
		return setLimit(text, c.Limit)
	}
	have, want := defaultStates, max(2*c.Flows, c.Needed())
	if m := limitLine.FindStringSubmatch(text); m != nil {
		have, _ = strconv.Atoi(m[2]) // a number that is too long becomes 0, and is replaced
	}
	if have >= want {
		return text
	}
	return setLimit(text, want)
}

// setLimit returns a rule file with another limit of states.
func setLimit(text string, limit int) string {
	if !limitLine.MatchString(text) {
		return fmt.Sprintf("set limit states %d\n", limit) + text
	}
	return limitLine.ReplaceAllString(text, fmt.Sprintf("${1}%d", limit))
}

// nftRules returns examples/gateway.nft with the same further rules.
func nftRules(c traffic.Case) string {
	family, kind := "ip", "ipv4_addr"
	if c.IPv6() {
		family, kind = "ip6", "ipv6_addr"
	}
	text := before(examples.GatewayNft, nftSets, moreAddresses(c, "\tset strangers {\n\t\ttype "+kind+"\n\t\telements = { ", ", ", " }\n\t}\n\n"))
	ask := ""
	if c.Tables > 0 {
		ask = fmt.Sprintf("\t\tiifname \"lan0\" %s saddr @strangers drop\n", family)
	}
	return before(text, nftFilter, ask+moreRules(c, func(source netip.Addr, port int) string {
		return fmt.Sprintf("\t\tiifname \"lan0\" %s saddr %s %s dport %d drop\n", family, source, c.Protocol, port)
	}))
}

// before inserts lines before a place in the text.
func before(text, place, lines string) string {
	i := strings.Index(text, place)
	if i < 0 {
		panic("an example has no line " + strconv.Quote(place)) // a test checks for it
	}
	return text[:i] + lines + text[i:]
}

// moreRules returns rules that no frame of the benchmark matches. Each blocks a different
// source and port, so no two of them can be merged.
func moreRules(c traffic.Case, rule func(source netip.Addr, port int) string) string {
	const (
		firstPort = 1024
		ports     = 1<<16 - firstPort
		scatter   = 40_503 // prime: neighbouring rules have distant ports
	)
	var b strings.Builder
	for i := range c.Rules {
		b.WriteString(rule(stranger(i, c.IPv6()), firstPort+i*scatter%ports))
	}
	return b.String()
}

// moreAddresses lists the addresses of a further table.
func moreAddresses(c traffic.Case, head, between, end string) string {
	if c.Tables == 0 {
		return ""
	}
	const (
		addresses = 1 << 22
		scatter   = 1_640_531 // odd: no address occurs twice
	)
	list := make([]string, c.Tables)
	for i := range list {
		list[i] = strangerIn(i*scatter%addresses, c.IPv6()).String()
	}
	return head + strings.Join(list, between) + end
}

// strangerIn returns one of the 2^22 addresses for carriers' NAT, or of a /48 for
// documentation.
func strangerIn(i int, ipv6 bool) netip.Addr {
	if ipv6 {
		return netip.AddrFrom16([16]byte{0x20, 0x01, 0x0d, 0xb8, 0xff, 0xff, byte(i >> 14), byte(i >> 6), 15: byte(i&0x3f + 1)})
	}
	return netip.AddrFrom4([4]byte{100, 64 + byte(i>>16), byte(i >> 8), byte(i)})
}

// stranger returns an address that none of the benchmark's hosts has, reserved for
// carriers' NAT or for documentation.
func stranger(i int, ipv6 bool) netip.Addr {
	high, low := byte(i>>8), byte(i)
	if ipv6 {
		return netip.AddrFrom16([16]byte{0x20, 0x01, 0x0d, 0xb8, 0xff, 0xff, 14: high, 15: low})
	}
	return netip.AddrFrom4([4]byte{100, 64 + high>>6, high, low})
}
