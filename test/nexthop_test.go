package test

import (
	"strings"
	"testing"
	"time"

	"weir/internal/lab"
	"weir/test/lib"
)

// daemons tells a story with the daemon alive, or with one that has been killed.
func daemons(t *testing.T, rules string, story func(b *lib.Box, alive bool)) {
	t.Parallel()
	for _, alive := range []bool{true, false} {
		t.Run(map[bool]string{true: "alive", false: "killed"}[alive], func(t *testing.T) {
			weir.BothAtOnce(t, func(b *lib.Box) {
				// Neighbours become stale soon, so that the story is
				// short.
				for _, family := range []string{"ipv4", "ipv6"} {
					b.Sysctl(lab.FW, "net/"+family+"/neigh/wan0/base_reachable_time_ms", "1000")
					b.Sysctl(lab.FW, "net/"+family+"/neigh/wan0/delay_first_probe_time", "1")
				}
				daemon := b.WeirRun(rules)
				b.Ping(lab.FW, wanHost, 1)
				if !alive {
					daemon.Kill()
				}
				story(b, alive)
			})
		})
	}
}

//	lan ═══ ping ═══▶ fw ─── wan (its eth0 gets another MAC)
//
// Under XDP the kernel sees no forwarded packets and would never probe the neighbour
// again. The daemon makes it probe; without the daemon one packet goes through the stack.
func TestNeighbourChangesItsMAC(t *testing.T) {
	daemons(t, gatewayConf(t), func(b *lib.Box, _ bool) {
		for _, to := range []string{wanHost, wanHost6} {
			b.Ping(lab.LAN, to, 2)
		}
		b.Run(lab.WAN, "ip", "link", "set", "eth0", "address", "02:77:65:00:02:99")
		for _, to := range []string{wanHost, wanHost6} {
			flood := b.Start(lab.LAN, "ping", "-n", "-i", "0.1", to) // traffic, so that the neighbour is in use
			b.Until(45*time.Second, "packets reach the neighbour with its new address", func() bool {
				return strings.Contains(flood.Said(), "bytes from "+to)
			})
			if now := b.Run(lab.FW, "ip", "neighbour", "show", to); !strings.Contains(now, "02:77:65:00:02:99") {
				b.Errorf("the kernel still knows %s", now)
			}
			flood.Kill()
		}
	})
}

//	lan ═══ ping ═══▶ fw ─── wan (is gone for a while)
//
// The stack looks for a neighbour that has disappeared. When it is back, the same
// connection goes on.
func TestNeighbourReturns(t *testing.T) {
	daemons(t, gatewayConf(t), func(b *lib.Box, _ bool) {
		flood := b.Start(lab.LAN, "ping", "-n", "-i", "0.1", wanHost)
		b.Until(5*time.Second, "ping is answered", func() bool { return strings.Contains(flood.Said(), "bytes from") })
		b.Run(lab.WAN, "ip", "address", "del", wanHost+"/24", "dev", "eth0")
		b.Run(lab.FW, "ip", "neighbour", "del", wanHost, "dev", "wan0")
		b.Until(10*time.Second, "the kernel looks for the neighbour in vain", func() bool {
			now := b.Run(lab.FW, "ip", "neighbour", "show", wanHost)
			return strings.Contains(now, "FAILED") || strings.Contains(now, "INCOMPLETE")
		})
		answers := strings.Count(flood.Said(), "bytes from")
		b.Run(lab.WAN, "ip", "address", "add", wanHost+"/24", "dev", "eth0")
		b.Until(10*time.Second, "ping is answered again", func() bool {
			return strings.Count(flood.Said(), "bytes from") > answers+3
		})
		if states := b.States("proto", "icmp", "host", wanHost, "host", lanHost); len(states) > 2 { // of the first pings, and this one
			b.Errorf("the connection has become another:\n%s", b.Weir("states"))
		}
	})
}

//	lan ═══ ping ═══▶ fw wan0 ─── eth0 wan
//	                     wan1 ─── eth1     (the route moves here)
//
// States follow a route to another interface within two seconds.
func TestRouteMoves(t *testing.T) {
	daemons(t, "set skip on lo\npass\n", func(b *lib.Box, alive bool) {
		const far = "198.51.100.9"
		b.Wire("wan1", lab.WAN, "eth1")
		b.Address(lab.FW, "wan1", "10.8.0.1/24")
		b.Address(lab.WAN, "eth1", "10.8.0.2/24")
		b.Run(lab.WAN, "ip", "address", "add", far+"/32", "dev", "lo")
		b.Run(lab.WAN, "ip", "route", "add", "192.168.1.0/24", "via", fwWAN)
		b.Run(lab.FW, "ip", "route", "add", far, "via", wanHost)
		if alive {
			b.AwaitHook("wan1")
		} else {
			// A new daemon knows wan1. weir takes some seconds to be sure
			// that a daemon is dead.
			b.WeirRun("set skip on lo\npass\n").Kill()
			time.Sleep(4 * time.Second)
		}
		b.Ping(lab.FW, "10.8.0.2", 1)
		b.Ping(lab.LAN, far, 2)
		flood := b.Flood(lab.LAN, far)
		time.Sleep(300 * time.Millisecond)
		seen := b.Start(lab.WAN, "tcpdump", "-n", "-i", "eth1", "-l", "icmp[icmptype] = icmp-echo")
		b.Until(5*time.Second, "tcpdump listens", func() bool { return strings.Contains(seen.Said(), "listening on") })
		moved := time.Now()
		b.Run(lab.FW, "ip", "route", "replace", far, "via", "10.8.0.2")
		b.Until(5*time.Second, "packets leave by wan1", func() bool { return strings.Contains(seen.Said(), "> "+far) })
		if took := time.Since(moved); took > lib.Scaled(2*time.Second) {
			b.Errorf("the state has followed after %v", took)
		}
		flood.AllAnswered(20)
		if states := b.States("proto", "icmp", "host", far, "host", lanHost); len(states) > 2 { // of the first pings, and the flood
			b.Errorf("the connection has become another:\n%s", b.Weir("states"))
		}
	})
}

//	lan ═══ two pings ═══▶ fw wan0 ─── eth0 wan
//	                          wan1 ─── eth1     (ip rule sends one of them here)
//
// States follow a change of ip rule at once, although another state uses the same next
// hop as before and keeps it fresh.
func TestPolicyRuleChanges(t *testing.T) {
	weir.BothAtOnce(t, func(b *lib.Box) {
		const far, other = "198.51.100.9", "192.168.1.77"
		b.Wire("wan1", lab.WAN, "eth1")
		b.Address(lab.LAN, "eth0", other+"/24")
		b.Address(lab.FW, "wan1", "10.8.0.1/24")
		b.Address(lab.WAN, "eth1", "10.8.0.2/24")
		b.IP(lab.WAN, "address add "+far+"/32 dev lo", "route add 192.168.1.0/24 via "+fwWAN)
		b.IP(lab.FW, "route add "+far+" via "+wanHost, "route add "+far+" via 10.8.0.2 table 100")
		b.WeirRun("set skip on lo\npass\n")
		b.Ping(lab.FW, "10.8.0.2", 1)
		for _, source := range []string{lanHost, other} {
			ping := b.Start(lab.LAN, "ping", "-n", "-i", "0.02", "-I", source, far)
			b.Until(5*time.Second, "ping is answered", func() bool { return strings.Contains(ping.Said(), "bytes from") })
		}
		seen := b.Start(lab.WAN, "tcpdump", "-n", "-i", "eth1", "-l", "icmp[icmptype] = icmp-echo")
		b.Until(5*time.Second, "tcpdump listens", func() bool { return strings.Contains(seen.Said(), "listening on") })
		for range 2 {
			for _, change := range []string{"add", "del"} {
				before := len(seen.Said())
				b.IP(lab.FW, "rule "+change+" from "+other+" lookup 100")
				changed := time.Now()
				b.Until(5*time.Second, "packets leave by the other wire, or no more", func() bool {
					said := seen.Said()[before:]
					if change == "add" {
						return strings.Contains(said, other+" > "+far)
					}
					time.Sleep(200 * time.Millisecond) // what tcpdump has not yet written
					return len(seen.Said()) == before+len(said)
				})
				if took := time.Since(changed); took > lib.Scaled(time.Second) {
					b.Errorf("after ip rule %s the state followed after %v", change, took)
				}
			}
		}
		if strings.Contains(seen.Said(), lanHost+" > ") {
			b.Errorf("the other connection has moved, too:\n%s", seen.Said())
		}
	})
}

//	lan ─── fw (wan0 gets another address) ─── wan
//
// (wan0) follows the interface's address. New connections are translated to the new
// address without a load, and also without a daemon. Conditions of rules, like the port
// forward's, follow only while there is a daemon.
func TestAddressOfTranslationChanges(t *testing.T) {
	daemons(t, gatewayConf(t), func(b *lib.Box, alive bool) {
		b.Run(lab.FW, "ip", "address", "del", fwWAN+"/24", "dev", "wan0")
		b.Run(lab.FW, "ip", "address", "add", "203.0.113.7/24", "dev", "wan0")
		b.Run(lab.FW, "ip", "route", "replace", "default", "via", wanHost)
		translated := func() bool {
			b.Try(lab.LAN, "ping", "-n", "-c", "1", "-W", "1", wanHost) //nolint:errcheck // tried again until it is so
			for _, s := range b.States("proto", "icmp", "host", "203.0.113.7") {
				return s.Dst.Packets > 0
			}
			return false
		}
		b.Until(10*time.Second, "ping is translated to the new address", translated)
		if !alive {
			return
		}
		b.ServeHello(lab.LAN, 80)
		b.Until(10*time.Second, "the port forward is at the new address", func() bool {
			out, err := b.Try(lab.WAN, "curl", "-sS", "--connect-timeout", "1", "http://203.0.113.7:8080/")
			return err == nil && out == "hello\n"
		})
	})
}
