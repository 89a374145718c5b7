package test

import (
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"weir/internal/lab"
	"weir/test/lib"
)

// answerRules refuse most of what the LAN wants, each in one of the possible ways.
const answerRules = `
set skip on lo
set block-policy return
match out on wan0 inet from (lan0:network) nat-to (wan0)
match out on wan0 inet6 from (lan0:network) nat-to (wan0)
block all label "refused"
block drop in on lan0 proto { tcp, udp } to port 1001
block return-rst (ttl 77) in on lan0 proto tcp to port 1002
block return-icmp (host-prohib, admin-unr) in on lan0 proto { tcp, udp } to port 1003
pass in on lan0 proto { tcp, udp } to port { 7, 1004, 1005 }
pass in on lan0 proto { icmp, icmp6 }
pass out on wan0 proto { tcp, udp } to port 7
pass out on wan0 proto { icmp, icmp6 }
block return-icmp in on lan0 inet proto icmp to 198.51.100.1
block return-icmp6 (admin-unr) in on lan0 inet6 proto icmp6 to 2001:db8:51::1
block drop out on wan0 proto tcp to port 1005
`

//	lan ──── who is there? ───▶ fw ──── wan
//	    ◀─── "nobody" ─────────
//
// If a rule rejects, the client learns it at once, from real programs.
func TestRejects(t *testing.T) {
	weir.BothAtOnce(t, func(b *lib.Box) {
		b.WeirRun(answerRules)
		for _, part := range []struct {
			name string
			tell func(*lib.Box)
		}{
			{"nmap", nmapSeesClosed},
			{"curl", curlIsRefused},
			{"ping", pingIsRefused},
			{"own", ownProgramsAreRefused},
			{"bytes", answersAreWellFormed},
			{"tcpdump", checksumsAreRight},
			{"interfaces", lossIsTold},
		} {
			b.Tell(part.name, part.tell)
		}
	})
}

// lossIsTold checks that weir interfaces says when the other end of a veth pair receives nothing that XDP sends back.
func lossIsTold(b *lib.Box) {
	if b.Hook != "xdp" {
		return
	}
	for _, gro := range []string{"on", "off", "on"} {
		b.Run(lab.LAN, "ethtool", "-K", "eth0", "gro", gro)
		if out := b.Weir("interfaces"); strings.Contains(out, "gets no answer") != (gro == "off") {
			b.Errorf("with GRO %s at lan weir interfaces says:\n%s", gro, out)
		}
	}
}

// mediaRules reject what comes in by some devices and leaves by them, and on lo.
const mediaRules = `
block return quick on { DEVICES }
block return out quick on lo proto tcp to port 81
block return in quick on lo proto { tcp, udp } to port 82
pass
`

//	lan ══ bridge, tun, tagged frames ══ fw ══ lo
//
// The same with a bridge, with packets without Ethernet header, with a VLAN if the kernel
// has such devices, and with what the box sends to itself.
func TestRejectsByOtherDevices(t *testing.T) {
	weir.BothAtOnce(t, func(b *lib.Box) {
		media := []lib.Medium{lib.Bridge, lib.Tunnel}
		if lib.Has(lib.VLAN) {
			media = append(media, lib.VLAN)
		}
		paths, _ := b.Paths(media...)
		var devices []string
		for _, p := range paths {
			devices = append(devices, p.Device)
		}
		b.WeirRun(strings.ReplaceAll(mediaRules, "DEVICES", strings.Join(devices, " ")))
		for _, p := range paths {
			for _, ipv6 := range []bool{false, true} {
				refused(b, lab.LAN, p.Addr(10, ipv6), p.Addr(1, ipv6), 80)
				refused(b, lab.FW, p.Addr(1, ipv6), p.Addr(10, ipv6), 80)
			}
		}
		for _, port := range []uint16{81, 82} { // open ports would not refuse by themselves
			b.Listen(lab.FW, port, "socat", fmt.Sprintf("TCP6-LISTEN:%d,fork,ipv6only=0", port), "EXEC:cat")
		}
		b.Listen(lab.FW, 83, "socat", "-t", "30", "TCP6-LISTEN:83,fork,ipv6only=0", "EXEC:cat")
		for _, own := range []string{"127.0.0.1", "::1", fwLAN} {
			refusedTCP(b, lab.FW, own, own, 81)
			refused(b, lab.FW, own, own, 82)
			if out, err := b.Try(lab.FW, "sh", "-c", "echo hello | socat -t 30 - TCP:"+bracketed(own)+":83"); err != nil || out != "hello\n" {
				b.Errorf("what is not refused on %s: %v %s", own, err, out)
			}
		}
	})
}

func bracketed(address string) string {
	if strings.Contains(address, ":") {
		return "[" + address + "]"
	}
	return address
}

// refused checks that TCP and UDP are refused at once.
func refused(b *lib.Box, host, from, to string, port uint16) {
	b.Helper()
	refusedTCP(b, host, from, to, port)
	refusedUDP(b, host, from, to, port)
}

func refusedUDP(b *lib.Box, host, from, to string, port uint16) {
	b.Helper()
	_, err := b.Try(host, "sh", "-c", fmt.Sprintf(untilRefused+"UDP:%s:%d,bind=%s", bracketed(to), port, bracketed(from)))
	if err == nil || !strings.Contains(err.Error(), "Connection refused") {
		b.Errorf("UDP from %s to %s, port %d: %v", from, to, port, err)
	}
}

// untilRefused sends datagrams for 10 s, or until socat hears that the port is closed.
const untilRefused = "(for i in $(seq 100); do echo $i || break; sleep 0.1; done) | socat - "

func refusedTCP(b *lib.Box, host, from, to string, port uint16) {
	b.Helper()
	url := fmt.Sprintf("http://%s:%d", bracketed(to), port)
	out, err := b.Try(host, "curl", "-sS", "--connect-timeout", "20", "--interface", from, url)
	if err == nil || !strings.Contains(err.Error(), curlRefused) {
		b.Errorf("curl %s from %s: %v %s", url, from, err, out)
	}
}

// portState is a line of nmap's report.
var portState = regexp.MustCompile(`(?m)^(\d+/\w+) +(\S+) +\S+ +(\S+)`)

// scan returns how nmap sees ports, "PORT/PROTO STATE REASON" each.
func scan(b *lib.Box, to string, args ...string) []string {
	b.Helper()
	all := append([]string{"-n", "-Pn", "--reason", "--max-retries", "2", "--host-timeout", "30s"}, args...)
	if strings.Contains(to, ":") {
		all = append(all, "-6")
	}
	var found []string
	for _, m := range portState.FindAllStringSubmatch(b.Run(lab.LAN, "nmap", append(all, to)...), -1) {
		found = append(found, strings.Join(m[1:], " "))
	}
	return found
}

//	lan ── nmap -sS -sU ──▶ fw ──▶ wan
//
// A rejected port looks closed, on the box and behind it; a dropped one looks filtered;
// an open one open.
func nmapSeesClosed(b *lib.Box) {
	b.Listen(lab.WAN, 7, "socat", "-t", "30", "TCP6-LISTEN:7,fork,ipv6only=0", "EXEC:cat")
	for _, to := range []string{wanHost, wanHost6} {
		errored := "admin-prohibited"
		if to == wanHost {
			errored = "host-prohibited"
		}
		want := []string{
			"7/tcp open syn-ack", "22/tcp closed reset", "1001/tcp filtered no-response", "1002/tcp closed reset",
			"1003/tcp filtered " + errored, "1004/tcp closed reset", "1005/tcp filtered no-response",
		}
		if got := scan(b, to, "-sS", "-p", "7,22,1001-1005"); fmt.Sprint(got) != fmt.Sprint(want) {
			b.Errorf("nmap -sS %s\n got %q\nwant %q", to, got, want)
		}
	}
	for _, to := range []string{fwLAN, fwLAN6} {
		want := []string{"22/tcp closed reset", "53/udp closed port-unreach", "1001/udp open|filtered no-response"}
		if got := scan(b, to, "-sS", "-sU", "-p", "T:22,U:53,1001"); fmt.Sprint(got) != fmt.Sprint(want) {
			b.Errorf("nmap -sS -sU %s\n got %q\nwant %q", to, got, want)
		}
	}
}

// curl's exit statuses.
const curlRefused = "exit status 7"

//	lan ── curl ──▶ fw ✕
//
// Connections are rejected at once, where they enter and where they would leave.
func curlIsRefused(b *lib.Box) {
	for _, url := range []string{
		"http://" + wanHost + ":22", "http://[" + wanHost6 + "]:22", "http://" + wanHost + ":1004", "http://[" + wanHost6 + "]:1004",
		"http://" + fwLAN + ":22", "http://[" + fwLAN6 + "]:1002", "http://" + wanHost + ":1003",
	} {
		began := time.Now()
		out, err := b.Try(lab.LAN, "curl", "-sS", "--connect-timeout", "20", url)
		if err == nil || !strings.Contains(err.Error(), curlRefused) || time.Since(began) > 10*time.Second {
			b.Errorf("curl %s after %v: %v %s", url, time.Since(began), err, out)
		}
	}
}

// lan ── ping ──▶ fw ✕        ◀── unreachable
func pingIsRefused(b *lib.Box) {
	out, _ := b.Try(lab.LAN, "ping", "-n", "-c", "1", "-W", "2", "198.51.100.1") //nolint:errcheck // its output shows that it failed
	if !strings.Contains(out, "From "+fwLAN) || !strings.Contains(out, "Destination Port Unreachable") {
		b.Errorf("ping of what is refused:\n%s", out)
	}
	out, _ = b.Try(lab.LAN, "ping", "-n", "-c", "1", "-W", "2", "2001:db8:51::1") //nolint:errcheck // the same
	if !strings.Contains(out, "From "+fwLAN6) || !strings.Contains(out, "Destination unreachable: Administratively prohibited") {
		b.Errorf("ping of what is refused with a code of ICMPv6:\n%s", out)
	}
}

//	fw: curl, socat ──✕ wan0
//
// The box's own programs learn it too, with any offloads.
func ownProgramsAreRefused(b *lib.Box) {
	for _, url := range []string{"http://" + wanHost + ":22", "http://[" + wanHost6 + "]:22"} {
		out, err := b.Try(lab.FW, "curl", "-sS", "--connect-timeout", "20", url)
		if err == nil || !strings.Contains(err.Error(), curlRefused) {
			b.Errorf("curl %s by the box: %v %s", url, err, out)
		}
	}
	// the same with IP options (a router alert) in front of a checksum that is left
	// to the device
	if _, err := b.Try(lab.FW, "socat", "-u", "TCP4:"+wanHost+":22,ip-options=x94040000,connect-timeout=20", "-"); err == nil || !strings.Contains(err.Error(), "Connection refused") {
		b.Errorf("socat with IP options by the box: %v", err)
	}
	for _, to := range []string{"UDP4:" + wanHost + ":53", "UDP6:[" + wanHost6 + "]:53"} {
		_, err := b.Try(lab.FW, "sh", "-c", untilRefused+to)
		if err == nil || !strings.Contains(err.Error(), "Connection refused") {
			b.Errorf("socat to %s by the box: %v", to, err)
		}
	}
}

// answerChecks sends packets and compares each reject with one that scapy builds itself,
// including checksums. The Ethernet addresses must be exchanged.
const answerChecks = `
conf.verb = 0
mine = get_if_hwaddr("eth0")

def heard(p, seconds):
    "The first reset or error that comes back when a packet is sent."
    told = "ether src " + gateway + " and (icmp[0] == 3 or icmp6[0] == 1 or tcp[13] & 4 != 0 or (ip6[6] == 6 and ip6[53] & 4 != 0))"
    s = AsyncSniffer(iface="eth0", filter=told, count=1, timeout=seconds, started_callback=lambda: sendp(Ether(src=mine, dst=gateway)/p, iface="eth0"))
    s.start()
    s.join()
    return s.results[0] if s.results else None

def answer(p):
    a = heard(p, 5)
    assert a is not None, "no answer to " + p.summary()
    assert a.src == gateway and a.dst == mine, a.summary()
    whole = bytes(a.payload)
    return a.payload.__class__(whole[:a.payload.len if IP in a else a.payload.plen + 40])

def whole(p):
    "The packet with its own checksums made anew; what it quotes stays."
    p = p.copy()
    for l in p.layers() if TCP in p else p.layers()[:2]:
        for f in ("chksum", "cksum"):
            if f in p[l].fields:
                delattr(p[l], f)
    if TCP not in p:
        quoted = bytes(p.payload.payload)
        p.payload.remove_payload()
        p = p/Raw(quoted)
    return bytes(p)

for ip, ttl in ((lambda **k: IP(dst=wan, **k), "ttl"), (lambda **k: IPv6(dst=wan6, **({"hlim": k["ttl"]} if k else {})), "hlim")):
    six = ttl == "hlim"
    # SYN with data: all of it is acknowledged
    sent = ip()/TCP(sport=4000, dport=22, seq=0xfffffffe, flags="S", options=[("MSS", 1400)])/b"hello"
    a = answer(sent)
    assert bytes(a) == whole(a), "checksums of " + repr(a)
    assert (a[TCP].flags, a[TCP].seq, a[TCP].ack, a[TCP].sport, a[TCP].dport) == ("RA", 0, 4, 22, 4000), repr(a)
    assert a.src == sent.dst and getattr(a, ttl) == 64 and a[TCP].window == 0
    # a segment in the middle of nothing
    a = answer(ip()/TCP(sport=4000, dport=22, seq=5, ack=0x12345678, flags="A"))
    assert bytes(a) == whole(a) and (a[TCP].flags, a[TCP].seq, a[TCP].ack) == ("R", 0x12345678, 0), repr(a)
    a = answer(ip()/TCP(sport=4000, dport=1002, seq=5, flags="SF")/b"xyz")
    assert bytes(a) == whole(a) and (a[TCP].flags, a[TCP].ack, getattr(a, ttl)) == ("RA", 9, 77), repr(a) # the FIN of a SYN is ignored
    # errors quote what was sent, as far as they may
    for size in (0, 1, 2, 3, 100, 1400):
        sent = ip(ttl=33)/UDP(sport=4000, dport=1003)/bytes(i & 255 for i in range(size))
        a = answer(sent)
        assert bytes(a) == whole(a), "checksums of " + repr(a)
        error = a[ICMPv6DestUnreach] if six else a[ICMP]
        assert (error.type, error.code) == ((1, 1) if six else (3, 10)), repr(a)
        quoted = bytes(sent)[:1232 if six else 548]
        assert error.original[8:] == quoted, (error.original[8:].hex(), quoted.hex()) # dissected it may be split (RFC 4884)
        assert a.src == (own6 if six else own), a.src
    # what must not be answered
    for silent in (
        ip()/TCP(sport=4000, dport=22, flags="R"), ip()/TCP(sport=4000, dport=22, flags="RA", ack=9),
        ip()/UDP(sport=4000, dport=1001)/b"x",
        (IPv6(dst=wan6)/ICMPv6DestUnreach(code=4)/IPv6(src=wan6, dst=lan6)/UDP(sport=9, dport=9)) if six else
        (IP(dst="198.51.100.1")/ICMP(type=3, code=3)/IP(src="198.51.100.1", dst=lan)/UDP(sport=9, dport=9)),
        (IPv6(dst="ff0e::7", hlim=8) if six else IP(dst="239.1.2.3", ttl=8))/UDP(sport=4000, dport=9)/b"x",
        (IPv6(dst=wan6)/IPv6ExtHdrFragment(offset=10, m=0, id=7, nh=17) if six else IP(dst=wan, frag=10, proto=17))/b"later one",
    ):
        a = heard(silent, 0.3)
        assert a is None, "an answer to " + silent.summary() + ": " + a.summary()
`

//	lan: scapy ── packets with whole checksums ──▶ fw
//	           ◀── is every byte what it has to be?
//
// Rejects byte by byte: sequence numbers, checksums, quotes, sources; and silence when it
// is due.
func answersAreWellFormed(b *lib.Box) {
	values := fmt.Sprintf("gateway, wan, wan6, own, own6, lan, lan6 = %q, %q, %q, %q, %q, %q, %q\n",
		"02:77:65:00:00:01", wanHost, wanHost6, fwLAN, fwLAN6, lanHost, lanHost6)
	b.Scapy(lab.LAN, values+answerChecks)
}

//	lan ── curl, socat ──▶ fw
//	    tcpdump -vv: (correct)
//
// If veth has offloads, what a socket sends has no checksum yet. Rejects of it are right
// for the sender, and on the wire after fw's device completes them.
func checksumsAreRight(b *lib.Box) {
	b.Run(lab.FW, "ethtool", "-K", "lan0", "tx", "off")
	dump := b.Start(lab.LAN, "tcpdump", "-n", "-vv", "-l", "-i", "eth0", "icmp or icmp6 or tcp[13] & 4 != 0 or (ip6 and ip6[53] & 4 != 0)")
	b.Until(5*time.Second, "tcpdump listens", func() bool { return strings.Contains(dump.Said(), "listening on") })
	for _, to := range []string{wanHost, "[" + wanHost6 + "]"} {
		b.Try(lab.LAN, "curl", "-sS", "--connect-timeout", "5", "http://"+to+":22")                                                  //nolint:errcheck // refused, see above
		b.Try(lab.LAN, "curl", "-sS", "--connect-timeout", "5", "http://"+to+":1003")                                                //nolint:errcheck // the same
		b.Try(lab.LAN, "sh", "-c", "head -c 1400 /dev/zero | socat -b 1400 - UDP:"+to+":1003; echo hello | socat - UDP:"+to+":1003") //nolint:errcheck // the same
	}
	b.Until(5*time.Second, "tcpdump has seen all answers", func() bool {
		said := dump.Said()
		return strings.Count(said, "Flags [R") >= 2 && strings.Count(said, "nreachable") >= 6
	})
	for line := range strings.Lines(dump.Said()) {
		// the quoted packet, whose checksum is not known yet
		if from := strings.TrimSpace(line); strings.HasPrefix(from, lanHost+".") || strings.HasPrefix(from, lanHost6+".") {
			continue
		}
		if strings.Contains(line, "incorrect") || strings.Contains(line, "wrong") || strings.Contains(line, "bad cksum") {
			b.Errorf("tcpdump: %s", line)
		}
	}
	b.Run(lab.FW, "ethtool", "-K", "lan0", "tx", map[string]string{"tcx": "on", "xdp": "off"}[b.Hook])
}

// answersASecond and answersAtOnce are REJECT_RATE and REJECT_BURST of bpf/config.h.
const (
	answersASecond = 1000
	answersAtOnce  = 200
)

//	lan ══ nping, 20,000 a second ══▶ fw ✕
//	lan ── 2 ping, 1,000 a second each ──▶ fw ──▶ wan
//
// Under a flood of blocked packets no more rejects leave than documented, and connections
// are not affected.
func TestRejectsAreLimited(t *testing.T) {
	const packets = 60_000
	weir.InTurn(t, func(b *lib.Box) {
		b.WeirRun(answerRules)
		b.Ping(lab.LAN, wanHost, 2) // neighbours are known
		var flows []*lib.Flood      // 2,000 packets a second, there and back
		for range 2 {
			flows = append(flows, b.FloodEvery(lab.LAN, wanHost, time.Millisecond))
		}
		before, began := b.Info().Rejects, time.Now()
		b.Run(lab.LAN, "nping", "--udp", "-p", "53", "--rate", "20000", "-c", fmt.Sprint(packets), "-H", "-q", "-N", wanHost)
		b.Until(20*time.Second, "all packets of the flood are handled", func() bool {
			a := b.Info().Rejects
			return a.Errors+a.KeptBack-before.Errors-before.KeptBack >= packets*9/10
		})
		took := time.Since(began)
		a := b.Info().Rejects
		given, kept := a.Errors-before.Errors, a.KeptBack-before.KeptBack
		limit := uint64(float64(runtime.NumCPU()) * (took.Seconds()*answersASecond + answersAtOnce))
		if given > limit || kept == 0 {
			b.Errorf("%d answers in %v, and %d kept back; %d are allowed", given, took, kept, limit)
		}
		b.Logf("%d packets in %v: %d answers, %d kept back", packets, took, given, kept)
		for _, f := range flows {
			f.AllAnsweredAtRate(100)
		}
	})
}
