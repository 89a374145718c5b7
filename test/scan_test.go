package test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/fw/reason"
	"weir/internal/lab"
	"weir/test/lib"
)

//	lan ─────── fw ─────── wan
//	httpd :80   weir       nmap
//
// nmap finds what the rules say: the forwarded port is open, the one that only replies is
// closed, and all others are silent.
func TestNmapFindsTheRules(t *testing.T) {
	weir.BothAtOnce(t, func(b *lib.Box) {
		rules := gatewayText(t) + "pass in on wan0 proto tcp to (wan0) port 9000\npass in on wan0 inet proto udp to (wan0) port 9001\n"
		b.WeirRun(rules)
		b.Listen(lab.LAN, 80, "busybox", "httpd", "-f", "-p", "80", "-h", b.TempDir())
		b.Listen(lab.FW, 22, "socat", "-t", "30", "TCP-LISTEN:22,fork", "EXEC:cat")
		for _, scan := range []struct {
			args []string
			want []string
		}{
			{[]string{"-p", "21-23,80,443,8080,9000", fwWAN}, []string{"8080/open", "9000/closed"}},
			{[]string{"-6", "-p", "21-23,80,443,8080,9000", fwWAN6}, []string{"9000/closed"}},
			{[]string{"-sU", "-p", "53,123,9001", fwWAN}, []string{"9001/closed"}},
			{[]string{"-sA", "-p", "22,8080,9000", fwWAN}, nil}, // no state: flags S/SA
			{[]string{"-sF", "-p", "22,8080", fwWAN}, nil},
		} {
			args := append([]string{"-n", "-Pn", "--max-retries", "2", "--initial-rtt-timeout", "500ms", "--max-rtt-timeout", "600ms", "-oG", "-"}, scan.args...)
			out := b.Run(lab.WAN, "nmap", args...)
			if got := answered(out); !slices.Equal(got, scan.want) {
				b.Errorf("nmap %v found %v, want %v:\n%s", scan.args, got, scan.want, out)
			}
		}
	})
}

// answered returns the ports that nmap got a reply from, as port/state.
func answered(out string) []string {
	var all []string
	_, ports, _ := strings.Cut(out, "Ports: ")
	ports, _, _ = strings.Cut(ports, "\t")
	for p := range strings.SplitSeq(ports, ", ") {
		f := strings.Split(p, "/")
		if len(f) > 1 && (f[1] == "open" || f[1] == "closed" || f[1] == "unfiltered") {
			all = append(all, f[0]+"/"+f[1])
		}
	}
	return all
}

// malformed are packets by scapy that no rule passes, with the reason. They are for a
// host behind the box; the rules pass all.
var malformed = []struct {
	packet string
	reason reason.Reason
}{
	{`IP(dst=wan, ihl=4)/UDP(sport=1, dport=9)`, reason.Malformed},
	{`IP(dst=wan, version=6)/UDP(sport=1, dport=9)`, reason.Malformed},
	{`IP(dst=wan, len=15)/UDP(sport=1, dport=9)`, reason.Malformed},
	{`IP(dst=wan, len=2000)/UDP(sport=1, dport=9)`, reason.Malformed},
	{`IP(dst=wan)/UDP(sport=1, dport=9, len=7)/b"123456789"`, reason.Malformed},
	{`IP(dst=wan)/UDP(sport=1, dport=9, len=99)/b"123456789"`, reason.Malformed},
	{`IP(dst=wan)/TCP(sport=1, dport=9, dataofs=4)`, reason.Malformed},
	{`IP(dst=wan)/TCP(sport=1, dport=9, dataofs=15)`, reason.Malformed},
	{`IP(dst=wan, chksum=0x1234)/UDP(sport=1, dport=9)`, reason.IPChecksum},
	{`IP(dst=wan)/TCP(sport=1, dport=9, flags="")`, reason.TCPFlags},
	{`IP(dst=wan)/TCP(sport=1, dport=9, flags="SR")`, reason.TCPFlags},
	{`IP(dst=wan)/TCP(sport=1, dport=9, flags="SPU")`, reason.TCPFlags},
	{`IPv6(dst=wan6)/TCP(sport=1, dport=9, flags="FPU")`, reason.TCPFlags},
	{`IP(dst=wan, proto=6)/b"0123456789"`, reason.Short},
	{`IP(dst=wan, proto=1)/b"\x08\x00"`, reason.Short},
	{`IP(dst=wan, flags="MF", proto=6)/b"01234567"`, reason.FragmentShort},
	{`IP(dst=wan, frag=100, id=7)/b"01234567"`, reason.FragmentHeld},
	{`IP(dst=wan, frag=8191)/b"0123456789abcdef"`, reason.Malformed},
	{`IP(src=wan, dst=wan)/UDP(sport=1, dport=9)`, reason.Land},
	{`IP(src="127.0.0.1", dst=wan)/UDP(sport=1, dport=9)`, reason.MartianSource},
	{`IP(src="224.0.0.5", dst=wan)/UDP(sport=1, dport=9)`, reason.MartianSource},
	{`IP(src="192.168.1.1", dst=wan)/UDP(sport=1, dport=9)`, reason.MartianSource},
	{`IP(src=lan, dst="240.0.0.1")/UDP(sport=1, dport=9)`, reason.MartianDest},
	{`IP(src=lan, dst="127.0.0.1")/UDP(sport=1, dport=9)`, reason.MartianDest},
	{`IP(dst=wan, options=[IPOption_LSRR(routers=["1.2.3.4"])])/UDP(sport=1, dport=9)`, reason.Options},
	{`IPv6(dst=wan6, plen=2000)/UDP(sport=1, dport=9)`, reason.Malformed},
	{`IPv6(dst=wan6)/IPv6ExtHdrRouting(type=0, addresses=["2001:db8::1"])/UDP(sport=1, dport=9)`, reason.RoutingHeader},
	{`IPv6(dst=wan6)/IPv6ExtHdrDestOpt()/IPv6ExtHdrHopByHop()/UDP(sport=1, dport=9)`, reason.Malformed},
	{`IPv6(dst=wan6)/IPv6ExtHdrFragment(m=1)/IPv6ExtHdrFragment()/UDP(sport=1, dport=9)`, reason.Malformed},
	{`IPv6(dst=wan6)/IPv6ExtHdrFragment(offset=8, id=7)/b"01234567"`, reason.FragmentHeld},
	{`IPv6(dst=wan6, nh=6)/b"0123456789"`, reason.Short},
	{`IPv6(src="::1", dst=wan6)/UDP(sport=1, dport=9)`, reason.MartianSource},
	{`IPv6(src="ff02::1", dst=wan6)/UDP(sport=1, dport=9)`, reason.MartianSource},
	{`IPv6(src="::ffff:1.2.3.4", dst=wan6)/UDP(sport=1, dport=9)`, reason.MartianSource},
	{`IPv6(src=lan6, dst="::1")/UDP(sport=1, dport=9)`, reason.MartianDest},
}

//	lan ── scapy ──▶ fw ─✕─ wan
//
// Malformed packets are dropped, each with its reason, and none arrives.
func TestMalformedPackets(t *testing.T) {
	weir.BothAtOnce(t, func(b *lib.Box) {
		b.WeirRun("set skip on lo\npass\n")
		seen := b.Start(lab.WAN, "tcpdump", "-n", "-i", "eth0", "-l", "(ip or ip6) and not icmp6 and not igmp and dst host ("+wanHost+" or "+wanHost6+")")
		b.Until(10*time.Second, "tcpdump listens", func() bool { return strings.Contains(seen.Said(), "listening on") })
		want := make(map[reason.Reason]uint64)
		script := fmt.Sprintf("wan, wan6, lan, lan6 = %q, %q, %q, %q\nframe = Ether(dst=%q, src=%q)\n", wanHost, wanHost6, lanHost, lanHost6, fwLANMAC, lanMAC)
		for _, m := range malformed {
			script += "sendp(frame/" + m.packet + ", iface='eth0', verbose=0)\n"
			want[m.reason]++
		}
		b.Scapy(lab.LAN, script+"sendp(frame/IP(dst=wan)/UDP(sport=1, dport=9)/b'well-formed', iface='eth0', verbose=0)\n")
		b.Until(5*time.Second, "what is well-formed arrives", func() bool { return strings.Contains(seen.Said(), "length 11") })
		for why, n := range want {
			if got := b.Packets("lan0", why); got != n {
				b.Errorf("%d packets were dropped as %s, want %d", got, why, n)
			}
		}
		for line := range strings.Lines(seen.Said()) {
			if strings.Contains(line, " > ") && !strings.Contains(line, "length 11") {
				b.Errorf("a malformed packet has arrived: %s", line)
			}
		}
	})
}
