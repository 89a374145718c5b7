package test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/internal/fw/control"
	"weir/internal/lab"
	"weir/test/lib"
)

//	lan ── lan0 fw wan0 ══ ppp0 in a PPPoE session ══ wan, a concentrator, dnsmasq as router of the session
//
// The next session has another prefix, by router advertisements. The box's address of the one before is deprecated: what the box sends would
// have it for a day, and the provider drops that. A prefix that comes again is used again. Routes of others stay.
// In its first session the box asks for routers: these may say nothing for minutes. With no route they bring no default route.
func TestPPPoEAdvertised(t *testing.T) {
	weir.UnderTCX(t, func(b *lib.Box) {
		p, password := b.Provider(1500)
		b.IP(lab.FW, "route del default", "-6 route del default")
		b.Sysctl(lab.FW, "net/ipv6/conf/default/router_solicitations", "-1") // as anywhere but in the lab
		asked := b.Start(lab.WAN, "tcpdump", "-n", "-l", "-i", "isp0", "icmp6 and ip6[40] = 133")
		b.AwaitSaid(asked, "listening on")
		b.WeirRun(b.Rules(fmt.Sprintf("pppoe ppp0 on wan0 user me password file %q no route\npass\n", password)))
		up := func() {
			b.Helper()
			p.Await(awaitPPPoE(b, control.PPPoEUp).Session)
		}
		up()
		b.Until(10*time.Second, "the box asks for routers in its first session", func() bool { return strings.Contains(asked.Said(), "router solicitation") })
		asked.Kill()
		var router *lib.Process
		advertise := func(prefix string) {
			b.Helper()
			if router != nil {
				router.Kill()
			}
			router = b.Start(lab.WAN, "dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--port=0", "--user=root", "--pid-file", "--log-facility=-",
				"--interface=isp0", "--bind-interfaces", "--enable-ra", "--ra-param=isp0,4,600", "--dhcp-leasefile="+b.TempDir()+"/leases", "--dhcp-range="+prefix+",ra-only,64,86400")
			b.AwaitSaid(router, "router advertisement")
		}
		address := func(prefix string) string {
			for line := range strings.Lines(b.Run(lab.FW, "ip", "-6", "-o", "address", "show", "dev", "ppp0")) {
				if strings.Contains(line, prefix) {
					return line
				}
			}
			return ""
		}
		const first, second = "2001:db8:a::", "2001:db8:b::"
		b.IP(lab.WAN, "address add fe80::1/64 dev isp0 nodad", "address add 2001:db8:a::1/64 dev isp0 nodad")
		advertise(first)
		used := func(prefix string) func() bool {
			return func() bool {
				line := address(strings.TrimSuffix(prefix, ":"))
				return line != "" && !strings.Contains(line, "deprecated") && !strings.Contains(line, "tentative")
			}
		}
		b.Until(20*time.Second, "ppp0 has an address of the first prefix", used(first))
		if out := b.Run(lab.FW, "ip", "-6", "route", "show", "default"); out != "" {
			b.Errorf("with no route there is a default route: %s", out)
		}
		b.IP(lab.FW, "-6 route add default dev ppp0 metric 100 proto static")
		next := func(prefix string) {
			b.Helper()
			router.Kill()
			b.Weir("pppoe", "down", "ppp0")
			b.IP(lab.WAN, "-6 address flush dev isp0 scope global", "address add "+prefix+"1/64 dev isp0 nodad")
			b.Weir("pppoe", "reconnect", "ppp0")
			up()
			advertise(prefix)
			b.Until(20*time.Second, "ppp0 has an address of "+prefix, used(prefix))
		}
		next(second)
		if line := address("2001:db8:a:"); line == "" || !strings.Contains(line, "deprecated") {
			b.Errorf("the address of the first session: %s", line)
		}
		if out := b.Run(lab.FW, "ip", "-6", "route", "get", lib.ProviderPeer6, "oif", "ppp0"); !strings.Contains(out, "src 2001:db8:b:") {
			b.Errorf("the box sends from another address: %s", out)
		}
		next(first)
		if out := b.Run(lab.FW, "ip", "-6", "route", "show", "default"); !strings.Contains(out, "dev ppp0 proto static") {
			b.Errorf("a route of others is gone: %s", out)
		}
	})
}
