package test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"weir/internal/fw/pktrecord"
	"weir/internal/lab"
	"weir/test/lib"
)

// captureReads is how weir capture begins its message that it misses nothing.
const captureReads = "weir: capturing on"

// capture starts weir capture in fw and waits until it captures.
func capture(b *lib.Box, args ...string) *lib.Process {
	b.Helper()
	p := b.WeirCommand(append([]string{"capture"}, args...)...)
	b.AwaitSaid(p, captureReads)
	return p
}

// interrupt ends a capture as Ctrl-C does, and returns its output.
func interrupt(p *lib.Process) string {
	p.Signal(syscall.SIGINT)
	return p.Wait(10*time.Second, 0)
}

//	lan ── curl ──▶ fw ──▶ wan            fw: weir capture any -w FILE, read by tshark
//	       ✕ port 23                          weir capture any -w - | tcpdump
//
// tcpdump and Wireshark read what weir captures: a connection before and after its
// translation, and a blocked packet with the rule that blocked it.
func TestCapture(t *testing.T) {
	weir.BothAtOnce(t, func(b *lib.Box) {
		b.WeirRun(gatewayConf(t))
		b.Ping(lab.LAN, wanHost, 2) // neighbours are known
		file := filepath.Join(b.TempDir(), "c.pcapng")
		toFile := capture(b, "any", "proto", "tcp", "-w", file)
		pipe := b.Start(lab.FW, "sh", "-c", fmt.Sprintf("%s capture any inet proto tcp --replies -w - | tcpdump -lnr -", weir))
		b.AwaitSaid(pipe, captureReads)
		b.ServeHello(lab.WAN, 8000)
		if got := b.Run(lab.LAN, "curl", "-sS", "http://"+wanHost+":8000/"); got != "hello\n" {
			b.Errorf("curl got %q", got)
		}
		if out, err := b.Try(lab.LAN, "curl", "-sS", "--connect-timeout", "1", "http://"+wanHost+":23/"); err == nil {
			b.Errorf("telnet is not blocked: %s", out)
		}
		b.Until(10*time.Second, "tcpdump shows the connection's end", func() bool {
			return strings.Count(pipe.Said(), "Flags [F.]") >= 4
		})
		for _, want := range []string{"IP " + lanHost + ".", "IP " + fwWAN + ".", "> " + wanHost + ".8000: Flags [S]", wanHost + ".8000 > " + lanHost + "."} {
			if !strings.Contains(pipe.Said(), want) {
				b.Errorf("tcpdump does not show %q:\n%s", want, pipe.Said())
			}
		}
		if said := interrupt(toFile); !strings.Contains(said, " 0 lost") {
			b.Errorf("the capture said\n%s", said)
		}
		b.Tell("wireshark", func(b *lib.Box) { wireshark(b, file) })
	})
}

// wireshark reads the file of TestCapture.
func wireshark(b *lib.Box, file string) {
	read := func(filter string) []string {
		out := b.Run(lab.FW, "tshark", "-r", file, "-Y", filter, "-T", "fields", "-E", "separator=|",
			"-e", "frame.interface_name", "-e", "ip.src", "-e", "frame.comment")
		return strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	}
	syn := read("tcp.dstport == 8000 && tcp.flags.syn == 1")
	if len(syn) != 2 || !strings.HasPrefix(syn[0], "lan0|"+lanHost+"|as it came: in on lan0") ||
		!strings.HasPrefix(syn[1], "wan0|"+fwWAN+"|rule ") || !strings.Contains(syn[1], "pass in on lan0, out on wan0") {
		b.Errorf("the SYN before and after translation:\n%s", strings.Join(syn, "\n"))
	}
	telnet := read("tcp.dstport == 23")
	if len(telnet) < 2 || !strings.Contains(telnet[1], "block in on lan0") || !strings.Contains(telnet[1], "verdict drop, reason block") ||
		!strings.Contains(telnet[1], "gateway.conf:") || !strings.Contains(telnet[1], `label "telnet"`) {
		b.Errorf("the blocked SYN:\n%s", strings.Join(telnet, "\n"))
	}
	if bad := read("_ws.malformed || ip.checksum.status == 0"); len(bad) != 1 || bad[0] != "" {
		b.Errorf("frames that Wireshark finds fault with:\n%s", strings.Join(bad, "\n"))
	}
}

//	lan ═══ 4 × ping -i 0.002 ═══▶ wan    fw: weir capture any, text, JSON and pcapng
//
// Capturing affects no packets, whoever reads, or stops reading.
func TestCaptureLosesNoPacket(t *testing.T) {
	weir.InTurn(t, func(b *lib.Box) {
		b.WeirRun(gatewayConf(t))
		b.Ping(lab.LAN, wanHost, 2)
		lines := filepath.Join(b.TempDir(), "lines")
		var floods []*lib.Flood
		for range 4 {
			floods = append(floods, b.Flood(lab.LAN, wanHost))
		}
		text := b.Start(lab.FW, "sh", "-c", fmt.Sprintf("exec %s capture any proto icmp > %s", weir, lines))
		asleep := capture(b, "wan0", "-w", filepath.Join(b.TempDir(), "f.pcapng"))
		asleep.Signal(syscall.SIGSTOP)
		b.AwaitSaid(text, captureReads)
		time.Sleep(2 * time.Second)
		said := interrupt(text)
		asleep.Signal(syscall.SIGCONT)
		interrupt(asleep)
		for _, f := range floods {
			f.AllAnsweredAtRate(100)
		}
		var records, lost uint64
		if _, err := fmt.Sscanf(said[strings.LastIndex(said, "weir: ")+6:], "%d records, %d lost", &records, &lost); err != nil || lost > 0 || records < 4*4*100 {
			b.Errorf("%d records, %d lost (%v):\n%s", records, lost, err, said)
		}
		text2, err := os.ReadFile(lines)
		if err != nil || uint64(strings.Count(string(text2), "\n")) != records || !strings.Contains(string(text2), "ICMP echo request") {
			b.Errorf("%d lines are written of %d records (%v)", strings.Count(string(text2), "\n"), records, err)
		}
	})
}

//	fw: weir capture, which is killed; weir run, which is killed
//
// A capture ends with its reader and with its daemon, however these end, and says so. The
// next one begins where the last has ended.
func TestCaptureEnds(t *testing.T) {
	t.Parallel()
	b := weir.Box(t, "tcx")
	if out, status := b.WeirStatus("capture", "any"); status != 1 || !strings.Contains(out, "no daemon runs") {
		t.Errorf("without a daemon: status %d, %s", status, out)
	}
	daemon := b.WeirRun(gatewayConf(t))
	awaitCapturing := func(want bool) {
		b.Helper()
		b.Until(10*time.Second, fmt.Sprintf("capturing is %v", want), func() bool { return b.Info().Capturing == want })
	}
	awaitCapturing(false)
	capture(b, "any").Kill()
	awaitCapturing(false)
	first, second := capture(b, "any", "proto", "udp"), capture(b, "lan0")
	interrupt(first)
	awaitCapturing(true)
	b.Weir("load", gatewayConf(t))
	awaitCapturing(true)
	daemon.Kill()
	if said := second.Wait(10*time.Second, 1); !strings.Contains(said, "the daemon has ended") {
		t.Errorf("the capture said\n%s", said)
	}
	awaitCapturing(true)
	b.WeirRun(gatewayConf(t))
	awaitCapturing(false)
	broken := b.Start(lab.FW, "sh", "-c", fmt.Sprintf("%s capture any -w - | head -c 100 > /dev/null", weir))
	b.AwaitSaid(broken, captureReads)
	b.Ping(lab.LAN, wanHost, 3)
	broken.Wait(10*time.Second, 0)
	awaitCapturing(false)
}

//	lan ── ping ──▶ fw                    fw: weir capture lan0 FILTER
//
// Filters are parts of rules, with lists, operators and a caret under faults.
func TestCaptureFilters(t *testing.T) {
	t.Parallel()
	b := weir.Box(t, "xdp")
	b.WeirRun(gatewayConf(t))
	for _, c := range []struct {
		filter string
		want   []string // parts of the output
	}{
		{"proto tpc", []string{"filter:1:", "^", "as in pf.conf, not as for tcpdump"}},
		{"from <bogons>", []string{"it takes only addresses, networks and interfaces"}},
		{"in proto tcp", []string{"filter: write it like this part of a rule"}},
		{"proto tcp flags S/SA", []string{"filter: write it like this part of a rule"}},
		{"proto icmp to port 80", []string{"filter:1:", "^"}},
		{"from 192.0.2.1 { port }", []string{"filter:1:", "^"}},
		{"proto tcp to port { 1 2 3 4 5 6 7 8 9 } from { 10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.4 10.0.0.5 10.0.0.6 10.0.0.7 10.0.0.8 }", []string{"filter:1:"}},
		{"proto tcp from { 10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.4 10.0.0.5 10.0.0.6 10.0.0.7 10.0.0.8 } to port { 1 2 3 4 5 6 7 8 9 }", []string{"72 alternatives in all filters, at most 64"}},
	} {
		out, status := b.WeirStatus("capture", "lan0", c.filter)
		if status != 1 {
			t.Errorf("filter %q: status %d", c.filter, status)
		}
		for _, part := range c.want {
			if !strings.Contains(out, part) {
				t.Errorf("filter %q is refused without %q:\n%s", c.filter, part, out)
			}
		}
	}
	if out, status := b.WeirStatus("capture", "nosuch0"); status != 1 || !strings.Contains(out, "no interface nosuch0") {
		t.Errorf("an interface that is not there: status %d: %s", status, out)
	}
	pings := b.WeirCommand("capture", "lan0", "inet", "proto", "icmp", "from", "lan0:network", "--json", "-c", "4", "-s", "60")
	b.AwaitSaid(pings, captureReads)
	b.Ping(lab.LAN, fwLAN, 2)
	var kinds []string
	for line := range strings.Lines(pings.Wait(10*time.Second, 0)) {
		if !strings.HasPrefix(line, "{") {
			continue
		}
		var r pktrecord.Record
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if r.Interface != "lan0" || r.Length != 98 || len(r.Data) != 60 || r.Family != 4 || time.Since(r.Time).Abs() > time.Minute {
			t.Errorf("%+v", r)
		}
		kinds = append(kinds, r.Kind+" "+r.Direction)
	}
	if want := []string{"before in", "after in", "before out", "after out"}; !slices.Equal(kinds, want) {
		t.Errorf("records %q, want %q", kinds, want)
	}
}
