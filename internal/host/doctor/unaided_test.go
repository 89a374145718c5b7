package doctor

import (
	"slices"
	"strings"
	"testing"
)

// set gives the box a sysctl.
func (b *box) set(name, value string) *box {
	b.s.Sysctls[name] = value
	return b
}

// helps says of a card's features that they are on.
func (b *box) helps(name string, features ...string) *box {
	for i := range b.s.Interfaces {
		if n := &b.s.Interfaces[i]; n.Name == name {
			if n.Features == nil {
				n.Features = map[string]bool{}
			}
			for _, feature := range features {
				n.Features[feature] = true
			}
		}
	}
	return b
}

// resends lets the box's own TCP send a tenth of its segments again.
func (b *box) resends() *box { return b.stack("Tcp.OutSegs", 90000).stack("Tcp.RetransSegs", 9900) }

// TestUncounted checks causes that no card and no queue counts: what the stack counts of them, or which help of a card is on,
// beside a machine that looks much like it.
func TestUncounted(t *testing.T) {
	geneve := func(b *box) *box {
		return b.attach(Interface{Name: "genev_sys_6081", Kind: "geneve", MTU: 65000}, Link{RxPackets: 5000, TxPackets: 5000})
	}
	const cut = "ethtool -K eth0 tx-udp_tnl-segmentation off"
	for _, c := range []struct {
		name, check, remedy string
		box, like           *box
	}{
		{"clients behind one address", "SOCK-2", "tcp_tw_recycle=0", two(4).set("net.ipv4.tcp_tw_recycle", "1").stack("Tcp.PassiveOpens", 2400).stack("TcpExt.PAWSPassive", 310),
			two(4).set("net.ipv4.tcp_tw_recycle", "1").stack("Tcp.PassiveOpens", 2400).stack("TcpExt.PAWSPassive", fewLost-1)},
		{"clocks that are remembered", "SOCK-2", "ip tcp_metrics flush", two(4).set("net.ipv4.tcp_tw_recycle", "0").stack("Tcp.PassiveOpens", 2400).stack("TcpExt.PAWSPassive", 310),
			two(4).set("net.ipv4.tcp_tw_recycle", "1").stack("Tcp.PassiveOpens", 2400).stack("TcpExt.PAWSPassive", 310)},
		{"a proxy before slow clients", "MEM-2", "net.ipv4.tcp_rmem='4096 131072 6291456'", two(4).set("net.ipv4.tcp_rmem", "4096\t131072\t67108864").core(0, 95, 1, 1).stack("Tcp.InSegs", 300000).stack("TcpExt.TCPRcvCollapsed", 90000),
			two(4).set("net.ipv4.tcp_rmem", "4096\t131072\t67108864").core(0, 95, 1, 1).stack("Tcp.InSegs", 300000).stack("TcpExt.TCPRcvCollapsed", 9000)},
		{"full receive buffers, and idle cores", "MEM-2", "tcp_rmem", two(4).core(0, 95, 1, 1).stack("Tcp.InSegs", 300000).stack("TcpExt.TCPRcvCollapsed", 90000),
			two(4).stack("Tcp.InSegs", 300000).stack("TcpExt.TCPRcvCollapsed", 90000)},
		{"a translator", "PATH-1", "gro off", two(4).helps("eth0", "rx-gro").stack("Ip6.InReceives", 3000).stack("Icmp6.OutPktTooBigs", 600),
			two(4).helps("eth0", "rx-gro").stack("Ip6.InReceives", 3000).stack("Icmp6.OutPktTooBigs", 600).stack("Ip6.FragFails", 600).stack("Ip6.InTooBigErrors", 600)},
		{"IPsec to many destinations", "IPSEC-2", "net.ipv4.xfrm4_gc_thresh=2147483647", two(4).set("net.ipv4.xfrm4_gc_thresh", "1024").stack("Xfrm.OutBundleGenError", 900),
			two(4).set("net.ipv4.xfrm4_gc_thresh", "2147483647").stack("Xfrm.OutBundleGenError", 900)},
		{"a tunnel whose packets the card cuts", "PATH-2", cut, geneve(two(4)).helps("eth0", "tx-udp_tnl-segmentation").resends(), two(4).helps("eth0", "tx-udp_tnl-segmentation").resends()},
		{"a tunnel whose packets the stack cuts", "PATH-2", "rx off tx off", geneve(two(4)).helps("eth0", "tx-udp_tnl-segmentation", "tx-checksum-ipv4").resends(), geneve(two(4)).helps("eth0", "tx-udp_tnl-segmentation")},
		{"a board that fills in checksums", "PATH-2", "ethtool -K eth0 rx off tx off", two(4).helps("eth0", "tx-checksum-ip-generic").resends(), two(4).helps("eth0", "rx-gro").resends()},
	} {
		for want, b := range map[bool]*box{true: c.box, false: c.like} {
			r, err := Examine(b.s, nil)
			if err != nil {
				t.Fatal(err)
			}
			got := slices.ContainsFunc(r.Findings, func(f Finding) bool {
				return f.Check == c.check && f.Severity > Notice && slices.ContainsFunc(f.Remedies, func(m Remedy) bool { return strings.Contains(m.Command+m.Text, c.remedy) })
			})
			if got != want || want && r.Verdict.Check != c.check {
				t.Errorf("%s: found %t, want %t; first: %s %s", c.name, got, want, r.Verdict.Check, r.Verdict.Sentence)
			}
		}
	}
}

// TestFullReceiversExplain checks that full receive buffers stand above the full core, whose queue they seem to load.
func TestFullReceiversExplain(t *testing.T) {
	b := newBox(4)
	b.card("eth0", "ixgbe", 10000, 4, 4)
	b.traffic("eth0", 1000, 90000, 9000, 9000, 9000).core(0, 95, 1, 1).stack("Tcp.InSegs", 110000).stack("TcpExt.TCPRcvCollapsed", 400000)
	r, err := Examine(b.s, nil)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Check == "RSS-1" })
	if r.Verdict.Check != "MEM-2" || r.Findings[0].Severity != Critical || i < 0 || r.Findings[i].Because != "MEM-2" {
		t.Errorf("%s: %s: %+v", r.Verdict.Check, r.Verdict.Sentence, r.Findings)
	}
}

// TestTimeouts checks that timeouts of ended connections are named where tracking is full and they are several times the
// kernel's own.
func TestTimeouts(t *testing.T) {
	const name = "net.netfilter.nf_conntrack_tcp_timeout_close_wait"
	for value, want := range map[string]bool{"3600": true, "60": false, "239": false, "": false} {
		b := two(4).tracked(900, 0, 0)
		if value != "" {
			b.set(name, value)
		}
		r, err := Examine(b.s, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := slices.ContainsFunc(r.Findings, func(f Finding) bool {
			return f.Check == "CT-1" && slices.ContainsFunc(f.Remedies, func(m Remedy) bool { return m.Command == "sysctl -w "+name+"=60" })
		})
		if got != want {
			t.Errorf("%q: %t: %+v", value, got, r.Findings)
		}
	}
}
