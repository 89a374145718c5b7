package test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"weir/internal/lab"
	"weir/test/lib"
)

// scrubRules normalise what the LAN sends, and the MSS of both ends.
const scrubRules = `
match out on wan0 inet from (lan0:network) nat-to (wan0)
match out on wan0 inet6 from (lan0:network) nat-to (wan0)
match in on lan0 inet scrub (no-df random-id min-ttl 20)
match in on lan0 inet6 scrub (min-ttl 20)
match on wan0 scrub (max-mss 1200)
match out on wan0 scrub (max-mss 1300)
pass
`

// scrubLists say the same by FreeBSD's lists.
const scrubLists = `
scrub in on lan0 inet all no-df random-id min-ttl 20 fragment reassemble
scrub in on lan0 inet6 all min-ttl 20
scrub on wan0 all max-mss 1300
nat on wan0 inet from (lan0:network) to any -> (wan0)
nat on wan0 inet6 from (lan0:network) to any -> (wan0)
pass
`

// sniff starts tcpdump at a host's eth0.
func sniff(b *lib.Box, host, filter string) *lib.Process {
	b.Helper()
	p := b.Start(host, "tcpdump", "-n", "-v", "-l", "--immediate-mode", "-i", "eth0", filter)
	b.Until(10*time.Second, "tcpdump listens", func() bool { return strings.Contains(p.Said(), "listening on") })
	return p
}

// awaitAll waits until a process has said all of these patterns, each within one packet's
// lines, and returns what it said.
func awaitAll(b *lib.Box, who string, p *lib.Process, patterns ...string) string {
	b.Helper()
	for _, pattern := range patterns {
		re := regexp.MustCompile(pattern)
		b.Until(10*time.Second, fmt.Sprintf("%s sees %s", who, pattern), func() bool { return re.MatchString(p.Said()) })
	}
	return p.Said()
}

// ids returns the ids of the echo requests that tcpdump has shown, by sequence number.
func echoIDs(said string) map[string]string {
	ids := make(map[string]string)
	for _, m := range regexp.MustCompile(`id (\d+), offset 0[^\n]*\n[^\n]*echo request, id \d+, seq (\d+),`).FindAllStringSubmatch(said, -1) {
		ids[m[2]] = m[1]
	}
	return ids
}

//	lan ── iperf3, ping ──▶ fw: scrub ──▶ wan
//	tcpdump                               tcpdump
//
// What scrub says is seen at both ends of the wire: the MSS that both offer, DF, ids and
// TTLs, in both families. A packet that has lost its DF is cut where the MTU is smaller.
func TestScrub(t *testing.T) {
	scrubStory(t, scrubRules, "scrub (no-df random-id min-ttl 20 in max-mss 1300)")
}

// The same by FreeBSD's lists. Only what they say of a direction applies to it.
func TestScrubLists(t *testing.T) {
	scrubStory(t, scrubLists, "scrub (no-df random-id min-ttl 20 in max-mss 1300), replies scrub (max-mss 1300)")
}

// scrubStory tells the story under rules. shown is how states show them.
func scrubStory(t *testing.T, rules, shown string) {
	weir.BothAtOnce(t, func(b *lib.Box) {
		b.WeirRun(rules)
		for _, part := range []struct {
			name string
			tell func(*lib.Box)
		}{
			{"the MSS of both ends", scrubMSS},
			{"DF, ids and TTLs", scrubPings},
			{"IPv6", scrubIPv6},
			{"cut after all", scrubThenFragments},
		} {
			b.Tell(part.name, part.tell)
		}
		if states := b.Weir("states", "-v", "proto", "tcp"); !strings.Contains(states, shown) {
			b.Errorf("weir states -v does not show %q:\n%s", shown, states)
		}
	})
}

func scrubMSS(b *lib.Box) {
	for port, to := range map[uint16]string{5301: wanHost, 5302: wanHost6} {
		lan, wan := sniff(b, lab.LAN, fmt.Sprintf("tcp port %d", port)), sniff(b, lab.WAN, fmt.Sprintf("tcp port %d", port))
		server := b.Listen(lab.WAN, port, "iperf3", "-s", "-1", "-p", fmt.Sprint(port))
		b.Run(lab.LAN, "iperf3", "-c", to, "-p", fmt.Sprint(port), "-n", "2M")
		server.Wait(10*time.Second, 0)
		awaitAll(b, "lan", lan, `Flags \[S\][^\n]*mss 14[46]0`, `Flags \[S\.\][^\n]*mss 1300`)
		awaitAll(b, "wan", wan, `Flags \[S\][^\n]*mss 1300`, `Flags \[S\.\][^\n]*mss 14[46]0`)
		for who, said := range map[string]string{"lan": lan.Said(), "wan": wan.Said()} {
			if strings.Contains(said, "incorrect") {
				b.Logf("%s: sums that tcpdump calls incorrect are left to the device", who)
			}
		}
		if to == wanHost {
			awaitAll(b, "wan", wan, `flags \[none\], proto TCP[^\n]*\n[^\n]*Flags \[S\]`, `ttl 63,`)
		}
		lan.Interrupt()
		wan.Interrupt()
	}
}

func scrubPings(b *lib.Box) {
	lan, wan := sniff(b, lab.LAN, "icmp"), sniff(b, lab.WAN, "icmp")
	b.Run(lab.LAN, "ping", "-n", "-M", "do", "-t", "5", "-c", "4", "-i", "0.1", "-W", "2", wanHost)
	sent := awaitAll(b, "lan", lan, `ttl 5,[^\n]*flags \[DF\][^\n]*\n[^\n]*echo request[^\n]*seq 4,`)
	got := awaitAll(b, "wan", wan, `ttl 19,[^\n]*flags \[none\][^\n]*\n[^\n]*echo request[^\n]*seq 4,`)
	before, after := echoIDs(sent), echoIDs(got)
	same := 0
	for seq, id := range before {
		if after[seq] == id {
			same++
		}
	}
	if len(after) < 4 || same > 1 { // one id of 65,535 may be the old one
		b.Errorf("ids of requests as they were sent: %v; behind the router: %v", before, after)
	}
	if regexp.MustCompile(`flags \[DF\][^\n]*\n[^\n]*echo request`).MatchString(got) {
		b.Errorf("a request has DF behind the router:\n%s", got)
	}
	lan.Interrupt()
	wan.Interrupt()
}

func scrubIPv6(b *lib.Box) {
	wan := sniff(b, lab.WAN, "icmp6")
	b.Run(lab.LAN, "ping", "-n", "-t", "5", "-c", "2", "-i", "0.1", "-W", "2", wanHost6)
	awaitAll(b, "wan", wan, `hlim 19,[^\n]*echo request`)
	wan.Interrupt()
}

func scrubThenFragments(b *lib.Box) {
	b.IP(lab.FW, "link set wan0 mtu 1400")
	b.IP(lab.WAN, "link set eth0 mtu 1400")
	wan := sniff(b, lab.WAN, "icmp")
	out := b.Run(lab.LAN, "ping", "-n", "-M", "do", "-s", "1472", "-c", "3", "-i", "0.1", "-W", "2", wanHost)
	if !strings.Contains(out, " 3 received") {
		b.Errorf("packets with DF, of which the rules take it:\n%s", out)
	}
	awaitAll(b, "wan", wan, `flags \[\+\]`)
	wan.Interrupt()
}
