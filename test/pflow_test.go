package test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"weir/internal/lab"
	"weir/internal/testenv"
	"weir/test/lib"
)

// flowLine is what nfdump prints of a flow.
type flowLine struct {
	proto, src, dst    string
	sport, dport       string
	packets, bytes     int
	newSrc, newDst     string
	newSport, newDport string
	seconds            float64
}

// readFlows reads what a collector has written so far.
func readFlows(b *lib.Box, dir string) (all []flowLine) {
	b.Helper()
	said, err := b.Try(lab.LAN, "nfdump", "-q", "-N", "-6", "-R", dir, "-o", "fmt:%pr,%sa,%da,%sp,%dp,%pkt,%byt,%nsa,%nda,%nsp,%ndp,%td")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(said) {
		f := strings.Split(line, ",")
		if len(f) != 12 {
			continue
		}
		for i := range f {
			f[i] = strings.TrimSpace(f[i])
		}
		l := flowLine{proto: f[0], src: f[1], dst: f[2], sport: f[3], dport: f[4], newSrc: f[7], newDst: f[8], newSport: f[9], newDport: f[10]}
		var errs [3]error
		l.packets, errs[0] = strconv.Atoi(f[5])
		l.bytes, errs[1] = strconv.Atoi(f[6])
		l.seconds, errs[2] = strconv.ParseFloat(f[11], 64)
		if err := errors.Join(errs[:]...); err != nil {
			b.Fatalf("nfdump says %q: %v", line, err)
		}
		all = append(all, l)
	}
	return all
}

//	lan ── ping, iperf3 ──▶ fw: nat-to, pflow ──▶ wan
//	nfcapd ◀── NetFlow 5, IPFIX ──┘
//
// Each state of a rule with pflow is told when it ends, in both directions, with as many packets and
// bytes as were sent; others are not.
func TestPFlow(t *testing.T) {
	testenv.NeedProgram(t, "nfcapd")
	weir.BothAtOnce(t, func(b *lib.Box) {
		dirs := map[int]string{5: b.TempDir(), 10: b.TempDir()}
		for version, dir := range dirs {
			b.Start(lab.LAN, "nfcapd", "-w", dir, "-p", fmt.Sprint(2050+version), "-t", "2")
		}
		b.Until(10*time.Second, "two collectors", func() bool { return strings.Count(b.Run(lab.LAN, "ss", "-Hlun"), ":20") >= 2 })
		b.WeirRun(fmt.Sprintf(`set pflow to %s port 2055 version 5
set pflow to %[1]s port 2060 version 10
match out on wan0 inet proto { tcp icmp } from (lan0:network) nat-to (wan0)
match out on wan0 inet6 from (lan0:network) nat-to (wan0)
pass
pass in on lan0 proto { tcp icmp icmp6 } keep state (pflow)
`, lanHost))
		b.Run(lab.LAN, "ping", "-n", "-c", "3", "-i", "0.1", "-s", "1000", wanHost)
		b.Run(lab.LAN, "ping", "-n", "-c", "3", "-i", "0.1", "-s", "1000", wanHost6)
		b.Listen(lab.WAN, 5201, "iperf3", "-s")
		b.Run(lab.LAN, "iperf3", "-c", wanHost, "-n", "1M", "--cport", "40000")
		b.Weir("flush", "states")
		for version, dir := range dirs {
			b.Tell(fmt.Sprint("version ", version), func(b *lib.Box) { pflowTold(b, version, dir) })
		}
	})
}

// pflowTold checks what a collector has: pings of 1,028 and of 1,048 bytes, and 1 MiB by TCP.
func pflowTold(b *lib.Box, version int, dir string) {
	want := 6 // two pings' ways, and two connections of iperf3
	if version == 10 {
		want = 8
	}
	b.Until(20*time.Second, fmt.Sprintf("%d flows", want), func() bool { return len(readFlows(b, dir)) >= want })
	all := readFlows(b, dir)
	if len(all) != want {
		b.Errorf("%d flows, want %d: %+v", len(all), want, all)
	}
	find := func(proto, src, dst, sport, dport string) (found flowLine) {
		b.Helper()
		for _, f := range all {
			if f.proto == proto && f.src == src && f.dst == dst && f.sport == sport && f.dport == dport {
				return f
			}
		}
		b.Errorf("there is no flow %s %s:%s to %s:%s in %+v", proto, src, sport, dst, dport, all)
		return found
	}
	for _, f := range []flowLine{find("1", lanHost, wanHost, "0", "8.0"), find("1", wanHost, fwWAN, "0", "0.0")} {
		if f.packets != 3 || f.bytes != 3*1028 || f.seconds < 0.2 || f.seconds > 2 {
			b.Errorf("a ping is told as %+v", f)
		}
	}
	tcp := find("6", lanHost, wanHost, "40000", "5201")
	if least := 1<<20 + 40*tcp.packets; tcp.bytes < least || tcp.bytes > least+20*tcp.packets {
		b.Errorf("1 MiB by TCP is told as %+v", tcp)
	}
	if version != 10 {
		return
	}
	if tcp.newSrc != fwWAN || tcp.newDst != wanHost || tcp.newSport == "0" || tcp.newDport != "5201" {
		b.Errorf("the translated addresses of %+v", tcp)
	}
	find("6", wanHost, fwWAN, "5201", tcp.newSport)
	for _, f := range []flowLine{find("58", lanHost6, wanHost6, "0", "128.0"), find("58", wanHost6, fwWAN6, "0", "129.0")} {
		if f.packets != 3 || f.bytes != 3*1048 {
			b.Errorf("a ping of IPv6 is told as %+v", f)
		}
	}
}
