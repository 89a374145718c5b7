package model

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/fw/reason"
	"weir/pf/resolve"
)

// load returns the model of a configuration in the box of these tests.
func load(t *testing.T, config string) *Model {
	t.Helper()
	box := testBox()
	host := &resolve.Host{}
	for _, i := range box.Interfaces {
		host.Interfaces = append(host.Interfaces, resolve.HostInterface{Name: i.Name, Groups: i.Groups, Addresses: i.Addresses})
	}
	rules, list := resolve.Load("test", []byte(config), host)
	if rules == nil {
		t.Fatalf("%s\n%v", config, list.Err())
	}
	return New(box, rules, 0)
}

// fate describes a packet as it leaves; otherwise it is "block" or the reason.
func fate(t *testing.T, config string, f Frame) string {
	t.Helper()
	w := load(t, config).Trace(&f)
	switch {
	case !w.Pass && w.Reason == reason.Block:
		return "block"
	case !w.Pass:
		return w.Reason.Text()
	}
	return w.Src.text() + " > " + w.Dst.text()
}

func TestTranslationLists(t *testing.T) {
	out := Frame{Interface: lanIndex, Bytes: udp(t, client, 4000, server, 53, "q")}
	in := Frame{Interface: wanIndex, Bytes: udp(t, server, 4000, addr("203.0.113.9"), 80, "q")}
	own := Frame{Interface: wanIndex, Bytes: udp(t, server, 4000, gateway, 80, "q")}
	for _, c := range []struct {
		name, config string
		frame        Frame
		want         string
	}{
		{"the first match translates, not the last",
			"nat on wan inet from any to any -> 203.0.113.8\nnat on wan inet from any to any -> 203.0.113.9", out,
			"203.0.113.8:50001-65535 > 198.51.100.7:53"},
		{"no stops its list",
			"no nat on wan from 192.168.1.10 to any\nnat on wan from any to any -> 203.0.113.8", out,
			"192.168.1.10:4000 > 198.51.100.7:53"},
		{"no of another packet does not",
			"no nat on wan from 192.168.1.11 to any\nnat on wan from any to any -> 203.0.113.8", out,
			"203.0.113.8:50001-65535 > 198.51.100.7:53"},
		{"nat is asked where the packet leaves",
			"nat on lan from any to any -> 203.0.113.8", out, "192.168.1.10:4000 > 198.51.100.7:53"},
		{"the filter sees the translated source",
			"nat on wan inet from any to any -> 203.0.113.8\nblock\npass in\npass out from 203.0.113.8", out,
			"203.0.113.8:50001-65535 > 198.51.100.7:53"},
		{"and no longer the one before",
			"nat on wan inet from any to any -> 203.0.113.8\nblock\npass in\npass out from 192.168.1.10", out, "block"},
		{"translation alone opens nothing",
			"rdr on wan proto udp from any to 203.0.113.9 port 80 -> 192.168.1.20 port 8080\nblock in on wan", in, "block"},
		{"rdr pass does not ask the filter; the way out is asked",
			"rdr pass on wan proto udp from any to 203.0.113.9 port 80 -> 192.168.1.20 port 8080\nblock in on wan", in,
			"198.51.100.7:4000 > 192.168.1.20:8080"},
		{"rdr pass is for the interface that it came in by",
			"rdr pass on wan proto udp from any to 203.0.113.9 port 80 -> 192.168.1.20 port 8080\nblock", in, "block"},
		{"the filter sees the translated destination",
			"rdr on wan proto udp from any to 203.0.113.9 port 80 -> 192.168.1.20 port 8080\nblock\n" +
				"pass proto udp from any to 192.168.1.20 port 8080", in, "198.51.100.7:4000 > 192.168.1.20:8080"},
		{"ports are counted from the start of the range",
			"rdr on wan proto udp from any to 203.0.113.9 port 70:90 -> 192.168.1.20 port 1000:*", in,
			"198.51.100.7:4000 > 192.168.1.20:1010"},
		{"a shorter range repeats",
			"rdr on wan proto udp from any to 203.0.113.9 port 70:90 -> 192.168.1.20 port 1000:1003", in,
			"198.51.100.7:4000 > 192.168.1.20:1002"},
		{"static-port",
			"nat on wan inet from any to any -> (wan) static-port", out, "203.0.113.5:4000 > 198.51.100.7:53"},
		{"a range of source ports",
			"nat on wan inet from any to any -> (wan) port 1024:2047", out, "203.0.113.5:1024-2047 > 198.51.100.7:53"},
		{"a port without a protocol",
			"nat on wan inet from any to any port 54 -> 203.0.113.8\nnat on wan inet from any to any port 53 -> 203.0.113.9", out,
			"203.0.113.9:50001-65535 > 198.51.100.7:53"},
		{"binat out moves a network and keeps the port",
			"binat on wan from 192.168.1.0/24 to any -> 203.0.114.0/24", out, "203.0.114.10:4000 > 198.51.100.7:53"},
		{"binat in moves it back",
			"binat on wan from 192.168.1.0/28 to 198.51.100.0/24 -> 203.0.113.0/28", in, "198.51.100.7:4000 > 192.168.1.9:80"},
		{"binat asks who it comes from",
			"binat on wan from 192.168.1.0/28 to 198.51.101.0/24 -> 203.0.113.0/28", in, "198.51.100.7:4000 > 203.0.113.9:80"},
		{"binat is asked before nat",
			"nat on wan inet from any to any -> 203.0.113.8\nbinat on wan from 192.168.1.10 to any -> 203.0.113.7", out,
			"203.0.113.7:4000 > 198.51.100.7:53"},
		{"rdr is asked before binat",
			"binat on wan from 192.168.1.10 to any -> 203.0.113.9\nrdr on wan inet from any to any -> 192.168.1.20", in,
			"198.51.100.7:4000 > 192.168.1.20:80"},
		{"no rdr does not stop binat",
			"no rdr on wan inet from any to any\nbinat on wan from 192.168.1.10 to any -> 203.0.113.9\n" +
				"rdr on wan inet from any to any -> 192.168.1.20", in,
			"198.51.100.7:4000 > 192.168.1.10:80"},
		{"no binat does not stop nat",
			"no binat on wan from 192.168.1.10 to any\nbinat on wan from 192.168.1.10 to any -> 203.0.113.7\n" +
				"nat on wan inet from any to any -> 203.0.113.8", out, "203.0.113.8:50001-65535 > 198.51.100.7:53"},
		{"tags are for the filter too",
			"rdr on wan inet from any to 203.0.113.9 tag R -> 192.168.1.20\nblock\npass tagged R", in,
			"198.51.100.7:4000 > 192.168.1.20:80"},
		{"tagged, and of what is not translated",
			"no rdr on wan inet from any to 203.0.113.9 tag R\nblock\npass tagged R", in, "198.51.100.7:4000 > 203.0.113.9:80"},
		{"one redirection to several",
			"rdr on wan inet from any to 203.0.113.9 -> { 192.168.1.20, 192.168.1.21 }", in,
			"198.51.100.7:4000 > {192.168.1.20/32 192.168.1.21/32}:80"},
		{"both crossings translate",
			"rdr on wan inet from any to 203.0.113.5 -> 192.168.1.20\nnat on lan inet from any to 192.168.1.20 -> (lan)", own,
			"192.168.1.1:50001-65535 > 192.168.1.20:80"},
		{"an anchor that is asked, in its place",
			"anchor a {\nnat on wan inet from any to any -> 203.0.113.8\n}\nnat-anchor a\nnat on wan inet from any to any -> 203.0.113.9", out,
			"203.0.113.8:50001-65535 > 198.51.100.7:53"},
		{"no in an anchor ends the list too",
			"anchor a {\nanchor b {\nno nat on wan from any to any\n}\n}\nnat-anchor \"a/*\"\nnat on wan inet from any to any -> 203.0.113.9", out,
			"192.168.1.10:4000 > 198.51.100.7:53"},
		{"an anchor that asks for another packet",
			"anchor a {\nnat on wan inet from any to any -> 203.0.113.8\n}\nnat-anchor a from 10/8\nnat on wan inet from any to any -> 203.0.113.9", out,
			"203.0.113.9:50001-65535 > 198.51.100.7:53"},
		{"only rules of the anchor's kind are asked",
			"anchor a {\nrdr on wan inet from any to any -> 192.168.1.20\n}\nnat-anchor a", in, "198.51.100.7:4000 > 203.0.113.9:80"},
		{"set skip is before the lists",
			"set skip on wan\nnat on wan inet from any to any -> 203.0.113.8", out, "192.168.1.10:4000 > 198.51.100.7:53"},
		{"no address of the family is no way out",
			"nat on wan inet from any to any -> (lo:0)\n", Frame{Interface: lanIndex, Bytes: udp(t, client6, 4000, server6, 53, "q")},
			"fd00:1::10:4000 > 2001:db8:7::7:53"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, fate(t, c.config+"\n", c.frame)); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", c.config, diff)
			}
		})
	}
}
