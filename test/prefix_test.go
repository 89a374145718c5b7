package test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/fw/control"
	"weir/internal/lab"
	"weir/test/lib"
)

// kea is a DHCPv6 server on isp0 that delegates a /56 of a pool.
func kea(b *lib.Box, pool string) *lib.Process {
	b.Helper()
	dir := b.TempDir()
	config := filepath.Join(dir, "kea.json")
	text := fmt.Sprintf(`{"Dhcp6": {
"interfaces-config": {"interfaces": ["isp0"], "service-sockets-max-retries": 50, "service-sockets-retry-wait-time": 100},
"lease-database": {"type": "memfile", "persist": false}, "server-id": {"type": "LL", "persist": false},
"preferred-lifetime": 1800, "valid-lifetime": 3600, "renew-timer": 10, "rebind-timer": 1500,
"option-data": [{"name": "dns-servers", "data": "2001:db8:53::53"}],
"subnet6": [{"subnet": "2001:db8:99::/64", "interface": "isp0", "pd-pools": [{"prefix": "%s", "prefix-len": 40, "delegated-len": 56}]}],
"loggers": [{"name": "kea-dhcp6", "severity": "INFO", "output_options": [{"output": "stdout"}]}]}}`, pool)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	p := b.Start(lab.WAN, "env", "KEA_LOCKFILE_DIR="+dir, "KEA_PIDFILE_DIR="+dir, "kea-dhcp6", "-c", config)
	b.AwaitSaid(p, "DHCP6_STARTED")
	return p
}

// awaitPrefix waits until a prefix within a pool is delegated, and returns what weir says of it.
func awaitPrefix(b *lib.Box, pool string) (p *control.PPPoEPrefix) {
	b.Helper()
	b.Until(20*time.Second, "a prefix of "+pool, func() bool {
		p = pppoeStatus(b).Prefix
		return p != nil && len(p.Delegated) == 1 && strings.HasPrefix(p.Delegated[0].Prefix.String(), pool)
	})
	return p
}

// global returns the line of ip for the host's address that SLAAC has made of a prefix; none: "".
func global(b *lib.Box, prefix string) string {
	b.Helper()
	for line := range strings.Lines(b.Run(lab.LAN, "ip", "-6", "-o", "address", "show", "dev", "eth0", "scope", "global")) {
		if strings.Contains(line, " "+strings.TrimSuffix(prefix, "::/64")) && strings.Contains(line, "dynamic") {
			return line
		}
	}
	return ""
}

// awaitGlobal waits until the host has an address of a prefix and a way out by the box.
func awaitGlobal(b *lib.Box, prefix string) {
	b.Helper()
	b.Until(20*time.Second, "the host has an address of "+prefix, func() bool {
		a := global(b, prefix)
		return a != "" && !strings.Contains(a, "tentative") && !strings.Contains(a, "deprecated") &&
			strings.Contains(b.Run(lab.LAN, "ip", "-6", "route"), "default via fe80::")
	})
}

// awaitWithdrawn waits until the host uses a prefix for nothing new any more.
func awaitWithdrawn(b *lib.Box, prefix string) {
	b.Helper()
	b.Until(10*time.Second, "the host has given up "+prefix, func() bool { return strings.Contains(global(b, prefix), "deprecated") })
}

// way has the provider route a prefix to the client.
func way(b *lib.Box, p *control.PPPoEPrefix) {
	b.IP(lab.WAN, "-6 route replace "+p.Delegated[0].Prefix.String()+" dev isp0")
}

//	lan, SLAAC ── lan0 fw wan0 ══ ppp0 in a PPPoE session ══ wan, a concentrator and kea
//	            lan1 ┘
//
// The provider delegates a prefix. Hosts of the LAN have addresses of it, although the rules block all
// that they need for them, and lose them when the provider takes it back.
func TestPrefix(t *testing.T) {
	weir.BothAtOnce(t, func(b *lib.Box) {
		p, password := b.Provider(1492)
		b.IP(lab.WAN, "address add fe80::1/64 dev isp0 nodad", "link set isp0 up")
		b.IP(lab.FW, "route del default", "-6 route del default", "link add lan1 type veth peer name host1", "link set host1 up", "link set lan1 up")
		b.IP(lab.LAN, "-6 route del default")
		b.Sysctl(lab.LAN, "net/ipv6/conf/eth0/accept_ra", "1")
		rules := b.Rules(fmt.Sprintf(`pppoe ppp0 on wan0 user me password file "%s" prefix 56 to { lan0 subnet 7, lan1 }
block
pass in on lan0 inet6 proto icmp6 icmp6-type echoreq
pass out on ppp0 inet6 proto icmp6 icmp6-type echoreq
`, password))
		daemon := b.WeirRun(rules)
		p.Await(awaitPPPoE(b, control.PPPoEUp).Session)
		server := kea(b, "2001:db8:100::")
		first := awaitPrefix(b, "2001:db8:1")
		if len(first.Links) != 2 || len(first.Links[0].Prefixes) != 1 || len(first.Links[1].Prefixes) != 1 || len(first.DNS) != 1 {
			b.Fatalf("the delegation: %+v", first)
		}
		lan := first.Links[0].Prefixes[0].String()
		if want := first.Delegated[0].Prefix.Addr().String(); first.Links[1].Prefixes[0].Addr().String() != want || !strings.HasSuffix(lan, "7::/64") {
			b.Errorf("subnets of %s: %+v", want, first.Links)
		}
		way(b, first)
		awaitGlobal(b, lan)
		b.Ping(lab.LAN, lib.ProviderPeer6, 3)
		b.Tell("what no link has", func(b *lib.Box) { prefixUnused(b, first) })
		b.Tell("renewal", func(b *lib.Box) {
			b.Until(20*time.Second, "the lease is renewed", func() bool { return awaitPrefix(b, "2001:db8:1").Renew.After(first.Renew) })
		})
		daemon.Kill()
		b.Ping(lab.LAN, lib.ProviderPeer6, 2)
		b.WeirRun(rules)
		b.Tell("another daemon", func(b *lib.Box) {
			again := awaitPrefix(b, "2001:db8:1")
			if again.Delegated[0].Prefix != first.Delegated[0].Prefix {
				b.Errorf("the next daemon has %v, the one before %v", again.Delegated, first.Delegated)
			}
			b.Ping(lab.LAN, lib.ProviderPeer6, 2)
			if log := b.Weir("pppoe", "log"); strings.Contains(log, "SOLICIT") {
				b.Errorf("the next daemon asks for another prefix:\n%s", log)
			}
		})
		server.Kill()
		kea(b, "2001:db8:200::")
		b.Tell("another prefix", func(b *lib.Box) {
			b.Weir("pppoe", "reconnect", "ppp0")
			second := awaitPrefix(b, "2001:db8:2")
			p.Await(awaitPPPoE(b, control.PPPoEUp).Session)
			way(b, second)
			awaitGlobal(b, second.Links[0].Prefixes[0].String())
			awaitWithdrawn(b, lan)
			lan = second.Links[0].Prefixes[0].String()
			b.Ping(lab.LAN, lib.ProviderPeer6, 3)
			if out := b.Run(lab.FW, "ip", "-6", "address", "show", "dev", "lan0"); strings.Contains(out, first.Links[0].Prefixes[0].Addr().String()) {
				b.Errorf("addresses of the box: %s", out)
			}
			if out := b.Run(lab.FW, "ip", "-6", "route"); strings.Contains(out, first.Delegated[0].Prefix.String()) || strings.Contains(out, first.Links[0].Prefixes[0].String()) {
				b.Errorf("routes of the box: %s", out)
			}
		})
		b.Tell("without a session", func(b *lib.Box) {
			b.Weir("pppoe", "down", "ppp0")
			awaitWithdrawn(b, lan)
			if out := b.Run(lab.LAN, "ip", "-6", "route"); strings.Contains(out, "default") {
				b.Errorf("routes of the host: %s", out)
			}
			b.Weir("pppoe", "reconnect", "ppp0")
			third := awaitPrefix(b, "2001:db8:2")
			if got := third.Links[0].Prefixes[0].String(); got != lan {
				b.Errorf("after a session without one: %s, before %s", got, lan)
			}
			awaitGlobal(b, lan)
		})
		b.Tell("the end", func(b *lib.Box) {
			b.Weir("stop")
			awaitWithdrawn(b, lan)
			if out := b.Run(lab.FW, "ip", "-6", "address") + b.Run(lab.FW, "ip", "-6", "route"); strings.Contains(out, "2001:db8:2") {
				b.Errorf("after weir stop: %s", out)
			}
		})
	})
}

// prefixUnused sends to a part of the prefix that no link has: the box says so, and does not send it
// back to the provider.
func prefixUnused(b *lib.Box, p *control.PPPoEPrefix) {
	b.Helper()
	to := strings.TrimSuffix(p.Delegated[0].Prefix.Addr().String(), "00::") + "55::9"
	out, err := b.Try(lab.LAN, "ping", "-n", "-c", "1", "-W", "2", to)
	if err == nil || !strings.Contains(out, "nreachable") {
		b.Errorf("ping %s: %v\n%s", to, err, out)
	}
	if out := b.Run(lab.FW, "ip", "-6", "route"); !strings.Contains(out, "unreachable "+p.Delegated[0].Prefix.String()) {
		b.Errorf("routes: %s", out)
	}
}
