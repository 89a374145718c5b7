package test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"weir/internal/fw/reason"
	"weir/internal/lab"
	"weir/test/lib"
)

// Far hosts behind both uplinks.
const (
	far4 = "198.51.100.9"
	far6 = "2001:db8:7::9"
)

// secondUplink joins fw and wan by wan1 and eth1, too, and makes the far hosts, which wan0
// leads to. wan answers the LAN by wan0.
func secondUplink(b *lib.Box) {
	b.Wire("wan1", lab.WAN, "eth1")
	b.Address(lab.FW, "wan1", "10.8.0.1/24", "2001:db8:8::1/64")
	b.Address(lab.WAN, "eth1", "10.8.0.2/24", "2001:db8:8::2/64")
	b.IP(lab.WAN, "address add "+far4+"/32 dev lo", "address add "+far6+"/128 dev lo")
	b.IP(lab.FW, "route add "+far4+" via "+wanHost, "route add "+far6+" via "+wanHost6)
	for _, device := range []string{"all", "eth0", "eth1"} {
		b.Sysctl(lab.WAN, "net/ipv4/conf/"+device+"/rp_filter", "0")
	}
	answersBy(b, fwWAN, fwWAN6)
}

// answersBy has wan send packets to the LAN by an address of fw.
func answersBy(b *lib.Box, via4, via6 string) {
	b.IP(lab.WAN, "route replace 192.168.1.0/24 via "+via4, "route replace fd00:1::/64 via "+via6)
}

// uplinkRules let the LAN and fw itself out by both uplinks, and nothing in.
const uplinkRules = `
set skip on lo
block return-icmp
block drop in on { wan0 wan1 } label uplinks
pass in on lan0
pass out on { wan0 wan1 }
`

//	         wan0 ── request ──▶ eth0
//	lan ─ fw                          wan: far
//	         wan1 ◀── reply ──── eth1
//
// A connection whose replies come by the other uplink ends there if states are bound to
// interfaces, and goes on if they float. A rule can say otherwise than set state-policy.
func TestBoundUplinks(t *testing.T) {
	for _, test := range []struct {
		name, rules string
		bound       bool
	}{
		{"floating", uplinkRules, false},
		{"if-bound", "set state-policy if-bound" + uplinkRules, true},
		{"a rule is if-bound", strings.Replace(uplinkRules, "pass out on { wan0 wan1 }", "pass out on { wan0 wan1 } keep state (if-bound)", 1), true},
		{"a rule is floating", "set state-policy if-bound" + strings.Replace(uplinkRules, "pass out on { wan0 wan1 }", "pass out on { wan0 wan1 } keep state (floating)", 1), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			weir.BothAtOnce(t, func(b *lib.Box) {
				secondUplink(b)
				b.WeirRun(test.rules)
				b.AwaitHook("wan1")
				b.ServeHello(lab.WAN, 8000)
				for _, to := range []string{far4, far6} {
					b.Ping(lab.LAN, to, 2)
				}
				answersBy(b, "10.8.0.1", "2001:db8:8::1")
				for _, to := range []string{far4, far6} {
					blocked := b.Packets("wan1", reason.Block)
					out, err := b.Try(lab.LAN, "ping", "-n", "-c", "3", "-i", "0.2", "-W", "1", to)
					if answered := err == nil; answered == test.bound {
						b.Errorf("ping %s is answered by the other uplink: %t\n%s", to, answered, out)
					}
					if now := b.Packets("wan1", reason.Block); (now > blocked) != test.bound {
						b.Errorf("%d replies of ping %s were blocked at wan1", now-blocked, to)
					}
				}
				out, err := b.Try(lab.LAN, "curl", "-sS", "-m", "2", "http://"+far4+":8000/")
				if answered := err == nil; answered == test.bound {
					b.Errorf("curl is answered by the other uplink: %t\n%s", answered, out)
				}
				shown := map[bool]string{true: ",wan0 icmp", false: "all icmp"}[strings.Contains(test.name, "if-bound")]
				if test.name != "a rule is floating" && !strings.Contains(b.Weir("states"), shown) {
					b.Errorf("weir states does not show %q:\n%s", shown, b.Weir("states"))
				}
			})
		})
	}
}

//	           ┌─ lan0
//	client ────┤       fw: nat-to (wan0) ─── wan
//	(moves) ─▶ └─ lan1
//
// A client moves to another interface with its address. Its rules there pass it, so its
// flow goes on in the same state, with the same translation. A TCP connection does not:
// its segments do not match flags S/SA there, as in pf. If states float, it goes on.
func TestBoundClientMoves(t *testing.T) {
	rules := `
set skip on lo
match out on wan0 inet nat-to (wan0)
match out on wan0 inet6 nat-to (wan0)
block
pass in on { lan0 lan1 }
pass out on wan0
`
	for _, policy := range []string{"if-bound", "floating"} {
		t.Run(policy, func(t *testing.T) {
			weir.BothAtOnce(t, func(b *lib.Box) {
				b.Wire("lan1", lab.LAN, "eth1")
				b.Address(lab.FW, "lan1", "10.9.0.1/24", "fd00:9::1/64")
				b.Address(lab.LAN, "eth1", "10.9.0.2/24", "fd00:9::2/64")
				for _, device := range []string{"all", "eth0", "eth1"} {
					b.Sysctl(lab.LAN, "net/ipv4/conf/"+device+"/rp_filter", "0")
				}
				b.WeirRun("set state-policy " + policy + rules)
				b.AwaitHook("lan1")
				b.Ping(lab.LAN, "10.9.0.1", 1)
				b.Ping(lab.LAN, "fd00:9::1", 1)
				b.Listen(lab.WAN, 5301, "iperf3", "-s", "-p", "5301", "-1")
				pings := []*lib.Process{
					b.Start(lab.LAN, "ping", "-n", "-i", "0.1", "-I", lanHost, wanHost),
					b.Start(lab.LAN, "ping", "-n", "-i", "0.1", "-I", lanHost6, wanHost6),
				}
				stream := b.Start(lab.LAN, "iperf3", "-c", wanHost, "-p", "5301", "-b", "1M", "-t", "60", "-i", "0.2", "--forceflush", "-B", lanHost)
				answered := func(p *lib.Process) int { return strings.Count(p.Said(), "bytes from") }
				for _, p := range append(pings, stream) {
					b.Until(10*time.Second, "packets flow", func() bool { return answered(p) > 3 || strings.Count(p.Said(), "Mbits/sec") > 2 })
				}
				before := translations(b)
				b.IP(lab.LAN, "route replace 203.0.113.0/24 via 10.9.0.1 dev eth1 src "+lanHost, "route replace 2001:db8:113::/64 via fd00:9::1 dev eth1 src "+lanHost6)
				b.IP(lab.FW, "route replace "+lanHost+"/32 via 10.9.0.2 dev lan1", "route replace "+lanHost6+"/128 via fd00:9::2 dev lan1")
				for _, p := range pings {
					seen := answered(p)
					b.Until(15*time.Second, "ping is answered by the other interface", func() bool { return answered(p) > seen+5 })
				}
				if after := translations(b); before != after {
					b.Errorf("the flows have other translations: %s, before %s", after, before)
				}
				goesOn := func() bool {
					said := strings.Split(strings.TrimSpace(stream.Said()), "\n")
					return !strings.Contains(said[len(said)-1], " 0.00 bits/sec")
				}
				if policy == "if-bound" {
					b.Until(15*time.Second, "the TCP connection stands still", func() bool { return !goesOn() })
					if states := b.Weir("states", "proto", "icmp"); !strings.Contains(states, "lan0|lan1,wan0 icmp") {
						b.Errorf("weir states does not show both interfaces:\n%s", states)
					}
				} else {
					count := strings.Count(stream.Said(), "Mbits/sec")
					b.Until(15*time.Second, "the TCP connection goes on", func() bool { return strings.Count(stream.Said(), "Mbits/sec") > count+10 && goesOn() })
				}
			})
		})
	}
}

// translations returns the ids that the LAN's pings are translated to.
func translations(b *lib.Box) string {
	b.Helper()
	var all []string
	for _, proto := range []string{"icmp", "ipv6-icmp"} {
		for _, s := range b.States("proto", proto) {
			if s.Src.NewAddr.IsValid() {
				all = append(all, fmt.Sprint(s.Src.NewAddr, " ", s.Src.NewPort))
			}
		}
	}
	return strings.Join(all, ", ")
}

//	lan ── ping far ──▶ fw: nat-to (wan0) ─── eth0 wan
//	                        nat-to (wan1) ─── eth1     (the route moves here)
//
// If the route moves to another uplink, a flow begins anew there if states are bound: it
// gets that uplink's address. Where the rules block it, nothing leaves.
func TestBoundRouteMoves(t *testing.T) {
	weir.BothAtOnce(t, func(b *lib.Box) {
		secondUplink(b)
		const rules = `
set skip on lo
set state-policy if-bound
match out on wan0 inet nat-to (wan0)
match out on wan1 inet nat-to (wan1)
match out on wan0 inet6 nat-to (wan0)
match out on wan1 inet6 nat-to (wan1)
block
pass in on lan0
pass out on { wan0 wan1 }
`
		b.WeirRun(rules)
		b.AwaitHook("wan1")
		b.Ping(lab.FW, "10.8.0.2", 1)
		b.Ping(lab.FW, "2001:db8:8::2", 1)
		for _, f := range []struct{ far, by, from, filter, family string }{
			{far4, "via 10.8.0.2", "10.8.0.1", "icmp[icmptype] = icmp-echo", "route"},
			{far6, "via 2001:db8:8::2", "2001:db8:8::1", "icmp6[icmp6type] = icmp6-echo", "-6 route"},
		} {
			flow := b.Start(lab.LAN, "ping", "-n", "-i", "0.1", f.far)
			answered := func() int { return strings.Count(flow.Said(), "bytes from") }
			b.Until(10*time.Second, "ping is answered", func() bool { return answered() > 3 })
			seen := b.Start(lab.WAN, "tcpdump", "-n", "-i", "eth1", "-l", f.filter)
			b.Until(10*time.Second, "tcpdump listens", func() bool { return strings.Contains(seen.Said(), "listening on") })
			b.IP(lab.FW, f.family+" replace "+f.far+" "+f.by)
			b.Until(10*time.Second, "packets leave by wan1 with its address", func() bool {
				return strings.Contains(seen.Said(), f.from+" > "+f.far)
			})
			now := answered()
			b.Until(10*time.Second, "ping is answered by wan1", func() bool { return answered() > now+3 })
			if strings.Contains(seen.Said(), fwWAN+" > ") || strings.Contains(seen.Said(), fwWAN6+" > ") {
				b.Errorf("packets have left by wan1 with the address of wan0:\n%s", seen.Said())
			}
			flow.Kill()
			seen.Interrupt()
		}
		// back again, under rules that block wan1
		b.IP(lab.FW, "route replace "+far4+" via "+wanHost)
		b.Weir("load", b.Rules(strings.Replace(rules, "pass out on { wan0 wan1 }", "pass out on wan0", 1)))
		flow := b.Start(lab.LAN, "ping", "-n", "-i", "0.1", far4)
		answered := func() int { return strings.Count(flow.Said(), "bytes from") }
		b.Until(10*time.Second, "ping is answered", func() bool { return answered() > 3 })
		seen := b.Start(lab.WAN, "tcpdump", "-n", "-i", "eth1", "-l", "icmp[icmptype] = icmp-echo")
		b.Until(10*time.Second, "tcpdump listens", func() bool { return strings.Contains(seen.Said(), "listening on") })
		blocked := b.Packets("lan0", reason.Block)
		b.IP(lab.FW, "route replace "+far4+" via 10.8.0.2")
		b.Until(10*time.Second, "packets are blocked", func() bool { return b.Packets("lan0", reason.Block) > blocked+10 })
		if strings.Contains(seen.Said(), "> "+far4) {
			b.Errorf("packets have left by wan1:\n%s", seen.Said())
		}
		b.IP(lab.FW, "route replace "+far4+" via "+wanHost)
		now := answered()
		b.Until(10*time.Second, "the same flow goes on by wan0", func() bool { return answered() > now+3 })
	})
}

//	lan ══ ping, curl, iperf3 ══▶ fw: gateway.conf, if-bound ══▶ wan
//
// Everything that a gateway does goes on if states are bound, over a load, and over a daemon
// that is killed, without one, and with the next.
func TestBoundGateway(t *testing.T) {
	weir.BothAtOnce(t, func(b *lib.Box) {
		text, err := os.ReadFile(gatewayConf(t))
		if err != nil {
			b.Fatal(err)
		}
		rules := strings.Replace(string(text), "set skip on lo", "set skip on lo\nset state-policy if-bound", 1)
		daemon := b.WeirRun(rules)
		b.ServeHello(lab.WAN, 8000)
		b.ServeHello(lab.LAN, 80)
		use := func(when string) {
			for _, to := range []string{wanHost, wanHost6, fwLAN} {
				b.Ping(lab.LAN, to, 2)
			}
			b.Ping(lab.FW, wanHost, 2)
			for host, url := range map[string]string{lab.LAN: "http://" + wanHost + ":8000/", lab.WAN: "http://" + fwWAN + ":8080/", lab.FW: "http://" + wanHost + ":8000/"} {
				if got := b.Run(host, "curl", "-sS", "-m", "5", url); got != "hello\n" {
					b.Errorf("%s: curl %s at %s: %q", when, url, host, got)
				}
			}
			for _, reverse := range []string{"", "-R"} {
				server := b.Listen(lab.WAN, 5202, "iperf3", "-s", "-1", "-p", "5202")
				b.Run(lab.LAN, "iperf3", strings.Fields("-c "+wanHost+" -p 5202 -P 4 -n 4M "+reverse)...)
				server.Wait(20*time.Second, 0)
			}
		}
		use("at first")
		flood, flood6 := b.Flood(lab.LAN, wanHost), b.Flood(lab.LAN, wanHost6)
		b.Weir("load", b.Rules(rules))
		use("after a load")
		daemon.Kill()
		use("without a daemon")
		b.WeirRun(rules)
		use("with the next daemon")
		b.Weir("load", b.Rules(strings.Replace(rules, "set limit states 100000", "set limit states 5000", 1)))
		use("with new tables")
		b.Weir("load", gatewayConf(t)) // its states float; those from before are still bound
		use("after a load of floating states")
		flood.AllAnswered(20)
		flood6.AllAnswered(20)
		if states := b.Weir("states"); !strings.Contains(states, "lan0,wan0 icmp") {
			b.Errorf("weir states shows no state that is bound to lan0 and wan0:\n%s", states)
		}
	})
}
