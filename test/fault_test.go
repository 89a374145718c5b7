package test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/internal/fw/reason"
	"weir/internal/lab"
	"weir/test/lib"
)

//	lan ═══ more connections than there are places or ports ═══▶ wan
//
// A packet that finds no state or no port is dropped and counted. Existing connections go
// on, and there is room again when others end.
func TestFullTables(t *testing.T) {
	const rules = `
set limit states 100
set timeout { udp.first 2, udp.single 2, udp.multiple 2, icmp.first 2, icmp.error 2 }
match out on wan0 inet proto udp to port { 9, 10 } nat-to (wan0) port 1000:1003
match out on wan0 inet proto icmp nat-to (wan0)
pass keep state
`
	weir.BothAtOnce(t, func(b *lib.Box) {
		b.WeirRun(rules)
		ping := b.Flood(lab.LAN, wanHost)
		b.ManyUDP(lab.LAN, wanHost, 9, 6, 100)
		b.ManyUDP(lab.LAN, wanHost, 10, 4, 100) // the ports are free towards another destination
		if n := b.Packets("lan0", reason.NATPorts); n != 2 {
			b.Errorf("%d packets found no port, want 2:\n%s", n, b.Weir("info"))
		}
		b.ManyUDP(lab.LAN, wanHost, 11, 200, 2000)
		if info := b.Info(); info.States.Current > 100 || b.Packets("lan0", reason.StateLimit) < 50 {
			b.Errorf("200 connections where there is room for 100:\n%s", b.Weir("info"))
		}
		b.Until(10*time.Second, "there is room again", func() bool {
			before := b.Packets("lan0", reason.StateLimit)
			b.ManyUDP(lab.LAN, wanHost, 12, 1, 1000)
			return b.Packets("lan0", reason.StateLimit) == before
		})
		ping.AllAnswered(50)
	})
}

//	lan ─── fw (wan0 has fewer receive queues than its peer has for sending) ─── wan
//
// weir quotes a driver that refuses XDP. With --hook xdp the start is an error. An
// interface that appears later gets TCX, and weir interfaces says why.
func TestDriverRefusesXDP(t *testing.T) {
	t.Parallel()
	const words = "veth: XDP expects number of rx queues not less than peer tx queues"
	b := weir.Box(t, "xdp")
	b.Run(lab.WAN, "ethtool", "-L", "eth0", "tx", "2")
	b.Run(lab.FW, "ethtool", "-L", "wan0", "rx", "1")
	found := b.Machine(lab.FW)
	said := b.WeirStart("pass\n").Wait(lib.StartPatience, 1)
	if !strings.Contains(said, "wan0") || !strings.Contains(said, words) || !strings.Contains(said, "--hook auto") {
		t.Errorf("weir run --hook xdp said\n%s", said)
	}
	b.SameMachine(lab.FW, found, "after a start that a driver's refusal prevented")

	b.Run(lab.FW, "ethtool", "-L", "wan0", "rx", "2")
	b.WeirRun("pass\n")
	b.IP(lab.FW, "link add dmz0 type veth peer name eth1 netns "+b.Namespace(lab.LAN))
	b.Run(lab.LAN, "ethtool", "-L", "eth1", "tx", "2")
	b.IP(lab.LAN, "link set eth1 up")
	b.IP(lab.FW, "link set dmz0 up")
	b.Until(10*time.Second, "weir interfaces says why dmz0 has TCX", func() bool {
		return strings.Contains(b.Weir("interfaces"), "the driver refuses XDP: "+words)
	})
}

//	lan ─── tap0 fw          (the driver of taps has room for XDP's metadata since Linux 6.15)
//
// If a driver has no room in front of the frame for XDP's decision, only the packet that
// reveals this is lost. TCX takes over from then on, and XDP is detached.
func TestDriverWithoutRoom(t *testing.T) {
	t.Parallel()
	b := weir.Box(t, "xdp")
	b.Taps(lab.FW, "tap0", lab.LAN, "tap")
	b.Address(lab.FW, "tap0", "10.9.0.1/24")
	b.Address(lab.LAN, "tap", "10.9.0.2/24")
	b.WeirRun("set skip on lo\npass\n")
	if n := b.Hooks()["tap0"]; n.Hook != "xdp" {
		t.Fatalf("tap0 has %s: %s", n.Hook, n.Why)
	}
	b.Try(lab.LAN, "ping", "-n", "-c", "1", "-W", "1", "10.9.0.1") //nolint:errcheck // it may be lost
	lost := b.Packets("tap0", reason.Metadata)
	if lost > 0 {
		b.Until(10*time.Second, "tap0 has TCX", func() bool {
			n := b.Hooks()["tap0"]
			return n.Hook == "tcx" && strings.Contains(n.Why, "no room for XDP's verdicts")
		})
	}
	b.Ping(lab.LAN, "10.9.0.1", 5)
	if n, now := b.Hooks()["tap0"], b.Packets("tap0", reason.Metadata); now != lost || lost > 1 || (n.Hook == "xdp") != (lost == 0) {
		t.Errorf("tap0 has %s, and lost %d packets, then %d", n.Hook, lost, now-lost)
	}
	if roomless := lib.KernelBefore(t, 6, 15); roomless != (lost == 1) {
		t.Errorf("this kernel's taps have no room: %t, and %d packets were lost", roomless, lost)
	}
}

//	lan ═══ ping ═══▶ fw ─── wan      (the kernel refuses what weir load builds)
//
// If the kernel refuses a load, weir says so, and the rules before stay in force: what
// they pass loses nothing, what they block stays blocked.
func TestKernelRefusesLoad(t *testing.T) {
	const rules = "block\nmatch out on wan0 inet nat-to (wan0)\npass inet proto icmp keep state\n"
	weir.BothAtOnce(t, func(b *lib.Box) {
		p := b.WeirRun(rules)
		ping := b.Flood(lab.LAN, wanHost)
		before := b.Weir("rules")
		// Enough for the request's connection and for looking at the machine, not
		// for maps and programs.
		lift := p.LimitFiles(12)
		said, status := b.WeirStatus("load", b.Rules("set mark-mask 0x07000000\npass\n")) // another option: not in place
		lift()
		if status != 1 || !strings.HasPrefix(said, "weir: ") || !strings.Contains(said, "build the dataplane: ") || !strings.Contains(said, "too many open files") {
			b.Errorf("weir load: exit status %d, and it said\n%s", status, said)
		}
		if after := b.Weir("rules"); after != before {
			b.Errorf("the rules in force are\n%s\n--- they were:\n%s", after, before)
		}
		blocked := b.Packets("lan0", reason.Block)
		if b.ManyUDP(lab.LAN, wanHost, 9, 3, 100); b.Packets("lan0", reason.Block) < blocked+3 {
			b.Errorf("what the rules block is not blocked:\n%s", b.Weir("info"))
		}
		b.Ping(lab.LAN, wanHost, 2)
		ping.AllAnswered(50)
		b.Weir("load", b.Rules("pass\n"))
	})
}

//	lan ─── fw, without nft or with it; weir's programs are taken off lan0 ─── wan
//
// What is forwarded past weir is dropped by nftables, or by TCX egress if there is no
// nft; weir says so.
func TestGuard(t *testing.T) {
	t.Parallel()
	for name, run := range map[string]func(*lib.Box) *lib.Process{
		"nft":    func(b *lib.Box) *lib.Process { return b.WeirRun(gatewayConf(t)) },
		"no nft": func(b *lib.Box) *lib.Process { return b.WeirRunWithout(gatewayConf(t)) },
	} {
		nft := name == "nft"
		story := func(b *lib.Box) {
			p := run(b)
			if said := strings.Contains(p.Said(), "the nft program is not installed"); said == nft {
				b.Errorf("nft is there: %t, and weir run said\n%s", nft, p.Said())
			}
			tables := b.Run(lab.FW, "nft", "list", "tables")
			if stands := strings.Contains(tables, "inet weir"); stands != nft {
				b.Errorf("nft is there: %t, and its tables are\n%s", nft, tables)
			}
			b.Ping(lab.LAN, wanHost, 2)
			p.Kill()
			b.TakeOff("lan0")
			if out, err := b.Try(lab.LAN, "ping", "-n", "-c", "3", "-i", "0.1", "-W", "1", wanHost); err == nil {
				b.Errorf("past weir, the box forwards:\n%s", out)
			}
			if n := b.Packets("wan0", reason.Guard); nft != (n == 0) || !nft && n < 3 {
				b.Errorf("nft is there: %t, and %d packets are counted as dropped by TCX egress\n%s", nft, n, b.Weir("info"))
			}
		}
		t.Run(name, func(t *testing.T) { weir.BothAtOnce(t, story) })
	}
}

//	fw: forward chains of others, with policy drop
//
// Foreign forward chains see what weir hands to the stack. So they are named at the
// start, and by weir interfaces.
func TestForeignForwardChains(t *testing.T) {
	t.Parallel()
	b := weir.Box(t, "tcx")
	none := b.Weir("interfaces", "--json")
	if strings.Contains(none, "foreign_forward_drops") {
		t.Errorf("chains without any:\n%s", none)
	}
	b.Run(lab.FW, "nft", "add table ip docker; add chain ip docker FORWARD { type filter hook forward priority filter; policy drop; }")
	b.Run(lab.FW, "iptables-legacy", "-P", "FORWARD", "DROP")
	b.Run(lab.FW, "ip6tables-legacy", "-P", "FORWARD", "DROP")
	said := b.WeirRun("pass\n").Said()
	text, json := b.Weir("interfaces"), b.Weir("interfaces", "--json")
	for _, chain := range []string{"nftables ip docker FORWARD", "iptables filter FORWARD", "ip6tables filter FORWARD"} {
		want := fmt.Sprintf("the forward chain %s of another firewall drops packets by default", chain)
		if !strings.Contains(said, "another firewall drops forwarded packets by default") || !strings.Contains(said, chain) || !strings.Contains(text, want) || !strings.Contains(json, `"`+chain+`"`) {
			t.Errorf("%s is not named:\n%s\n%s\n%s", chain, said, text, json)
		}
	}
	b.Run(lab.FW, "nft", "delete table ip docker")
	b.Run(lab.FW, "iptables-legacy", "-P", "FORWARD", "ACCEPT")
	b.Run(lab.FW, "iptables-legacy", "-A", "FORWARD", "-p", "tcp", "-j", "DROP") // a rule, not the policy
	if text := b.Weir("interfaces"); strings.Contains(text, ", iptables filter FORWARD") || !strings.Contains(text, "ip6tables filter FORWARD") {
		t.Errorf("weir interfaces after policies have changed:\n%s", text)
	}
}

//	lan ─── fw ─── wan
//	          dmz0 ─── eth1       (goes while a connection leads there, and returns)
//
// If the interface of a state is gone, its packets meet the stack, which replies that
// there is no route. Other connections lose nothing. When the interface is back, the
// state's packets go on.
func TestInterfaceGoneWithStates(t *testing.T) {
	const dmzHost = "10.8.0.2"
	join := func(b *lib.Box) {
		b.Wire("dmz0", lab.WAN, "eth1")
		b.Address(lab.WAN, "eth1", dmzHost+"/24")
		b.IP(lab.WAN, "route replace 192.168.1.0/24 via 10.8.0.1")
		b.Address(lab.FW, "dmz0", "10.8.0.1/24")
	}
	weir.BothAtOnce(t, func(b *lib.Box) {
		join(b)
		b.IP(lab.FW, "route add unreachable 10.8.0.0/16")
		b.WeirRun("match out on wan0 inet nat-to (wan0)\npass keep state\n")
		other := b.Flood(lab.LAN, wanHost)
		ping := b.Start(lab.LAN, "ping", "-n", "-i", "0.1", dmzHost)
		answers := func() int { return strings.Count(ping.Said(), "bytes from "+dmzHost) }
		b.Until(10*time.Second, "the host behind dmz0 answers", func() bool { return answers() > 2 })
		b.IP(lab.FW, "link del dmz0")
		b.Until(10*time.Second, "the stack says that it is gone", func() bool {
			return strings.Contains(ping.Said(), "Unreachable") && b.Packets("lan0", reason.UpRoute) > 0
		})
		if n := len(b.States("host", dmzHost)); n != 1 {
			b.Errorf("%d states of the connection, want the one", n)
		}
		before := answers()
		join(b)
		b.Until(10*time.Second, "the host behind dmz0 answers again", func() bool { return answers() > before+2 })
		if n := len(b.States("host", dmzHost)); n != 1 {
			b.Errorf("%d states of the connection, want the one that there was", n)
		}
		other.AllAnswered(100)
	})
}

//	fw: weir load --no-dns --confirm, and a file with other options, which the kernel refuses
//
// A load that fails does not confirm the one that waits.
func TestRefusedLoadConfirmsNothing(t *testing.T) {
	t.Parallel()
	b := weir.Box(t, "tcx")
	p := b.WeirRun(gatewayConf(t))
	b.Weir("load", "--no-dns", "--confirm", "1h", b.Rules("pass proto icmp\n"))
	other := b.Rules("set mark-mask 0x07000000\npass proto icmp\n") // all programs are loaded anew
	lift := p.LimitFiles(12)
	said, status := b.WeirStatus("load", "--no-dns", other)
	lift()
	if status != 1 || !strings.Contains(said, "too many open files") {
		b.Errorf("weir load: exit status %d, and it said\n%s", status, said)
	}
	if info := b.Info(); info.Rollback == nil || info.Rollback.Before != gatewayConf(t) {
		b.Errorf("after a load that was refused, what waits is %+v", info.Rollback)
	}
}
