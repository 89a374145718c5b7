package test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"weir/internal/lab"
	"weir/test/lib"
)

// A talk is a TCP connection. Each end sends the lines that are appended to its file.
type talk struct {
	b            *lib.Box
	name         string
	files        [2]string
	server, peer *lib.Process
}

// startTalk opens a connection from client to a server at address:port.
func startTalk(b *lib.Box, name, server, listen, client, connect string, port uint16) *talk {
	b.Helper()
	t := &talk{b: b, name: name}
	dir := b.TempDir()
	for i := range t.files {
		t.files[i] = filepath.Join(dir, []string{"client", "server"}[i])
		if err := os.WriteFile(t.files[i], nil, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	say := func(i int) string { return "tail -n +1 -s 0.1 -f " + t.files[i] + " | socat - " }
	t.server = b.Listen(server, port, "sh", "-c", say(1)+listen)
	t.peer = b.Start(client, "sh", "-c", say(0)+connect)
	return t
}

// say makes one end send a line, and waits until the other has received it.
func (t *talk) say(end int, line string) {
	t.b.Helper()
	f, err := os.OpenFile(t.files[end], os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.b.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(line + "\n"); err != nil {
		t.b.Fatal(err)
	}
	hears := []*lib.Process{t.server, t.peer}[end]
	t.b.Until(10*time.Second, t.name+": the other end hears "+line, func() bool {
		return strings.Contains(hears.Said(), line+"\n")
	})
}

// silent makes one end send a line, and reports whether the other does not receive it.
func (t *talk) silent(end int, line string) bool {
	t.b.Helper()
	f, err := os.OpenFile(t.files[end], os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.b.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(line + "\n"); err != nil {
		t.b.Fatal(err)
	}
	time.Sleep(time.Second)
	return !strings.Contains([]*lib.Process{t.server, t.peer}[end].Said(), line)
}

// transferred returns the bytes that fw's connections to a port have sent, with
// acknowledgement, and have received, from the kernel.
func transferred(b *lib.Box, port string) (sent, received int) {
	b.Helper()
	out := b.Run(lab.FW, "ss", "-Htin", "dport", port)
	for _, m := range regexp.MustCompile(`bytes_(acked|received):(\d+)`).FindAllStringSubmatch(out, -1) {
		n, _ := strconv.Atoi(m[2]) //nolint:errcheck // digits by the pattern
		if m[1] == "acked" {
			sent += n
		} else {
			received += n
		}
	}
	return sent, received
}

//	lan ─── fw ─── wan       TCP to the box and from it, through it; then weir run: block all
//
// The box's own connections from before go on, whichever end sends first, at any rate.
// One that it forwarded does not.
func TestConnectionsFromBefore(t *testing.T) {
	weir.BothAtOnce(t, func(b *lib.Box) {
		b.Sysctl(lab.FW, "net/ipv4/ip_forward", "1")
		b.Run(lab.WAN, "ip", "route", "add", "192.168.1.0/24", "via", fwWAN)
		own := []*talk{
			startTalk(b, "v4, accepted", lab.FW, "TCP4-LISTEN:2201", lab.LAN, "TCP4:"+fwLAN+":2201", 2201),
			startTalk(b, "v4-mapped, accepted", lab.FW, "TCP6-LISTEN:2202,ipv6only=0", lab.LAN, "TCP4:"+fwLAN+":2202", 2202),
			startTalk(b, "v6, accepted", lab.FW, "TCP6-LISTEN:2203", lab.WAN, "TCP6:["+fwWAN6+"]:2203", 2203),
			startTalk(b, "v4, opened", lab.WAN, "TCP4-LISTEN:2204", lab.FW, "TCP4:"+wanHost+":2204", 2204),
			startTalk(b, "v6, opened", lab.WAN, "TCP6-LISTEN:2205", lab.FW, "TCP6:["+wanHost6+"]:2205", 2205),
			startTalk(b, "inside", lab.FW, "TCP4-LISTEN:2206", lab.FW, "TCP4:127.0.0.1:2206", 2206),
			startTalk(b, "silent, accepted", lab.FW, "TCP4-LISTEN:2207", lab.LAN, "TCP4:"+fwLAN+":2207", 2207),
		}
		through := startTalk(b, "forwarded", lab.WAN, "TCP4-LISTEN:2210", lab.LAN, "TCP4:"+wanHost+":2210", 2210)
		for _, t := range append(own[:6:6], through) {
			t.say(0, "before")
			t.say(1, "too")
		}
		b.Listen(lab.WAN, 5201, "iperf3", "-s", "-1")
		bulk := b.Start(lab.FW, "iperf3", "-c", wanHost, "-t", "90", "--bidir", "-b", "100M", "-w", "1M")
		b.Until(10*time.Second, "iperf3 sends and receives", func() bool {
			sent, received := transferred(b, "5201")
			return sent > 1e6 && received > 1e6
		})

		weirRun := b.WeirRun("block all\n")
		if !strings.Contains(weirRun.Said(), "kept the TCP connections of this box") {
			b.Errorf("weir run said\n%s", weirRun.Said())
		}
		for i, t := range own {
			for turn := range 2 { // each end sends first once
				t.say((i+turn)%2, "after")
			}
			t.say(i%2, "again")
		}
		if !through.silent(0, "after") {
			b.Error("a connection that was forwarded before goes on under block all")
		}
		if out, err := b.Try(lab.LAN, "socat", "-u", "-T", "1", "TCP4:"+fwLAN+":2201,connect-timeout=1", "-"); err == nil {
			b.Errorf("a new connection to the box is let in: %s", out)
		}
		for _, s := range b.States("proto", "tcp") {
			if s.RuleIn != nil || s.RuleOut != nil {
				b.Errorf("a connection from before has a rule: %+v", s)
			}
		}
		sent, received := transferred(b, "5201")
		b.Until(20*time.Second, "iperf3 goes on in both directions", func() bool {
			s, r := transferred(b, "5201")
			return s > sent+5e6 && r > received+5e6
		})
		bulk.Kill()
	})
}
