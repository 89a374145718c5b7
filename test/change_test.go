package test

import (
	"strings"
	"testing"
	"time"

	"weir/internal/lab"
	"weir/test/lib"
)

//	lan eth0 ─── lan0 fw wan0 ─── wan
//	    eth1 ─── dmz0            (appears while weir runs, is renamed, goes)
//
// A new interface is filtered from its first packet, by the rules that name it. One that
// goes does not affect the others.
func TestInterfaceAppears(t *testing.T) {
	const rules = `
set skip on lo
block all
pass in on dmz0 inet proto icmp
pass out on wan0 inet proto icmp
match out on wan0 inet from 10.9.0.0/24 nat-to (wan0)
`
	weir.BothAtOnce(t, func(b *lib.Box) {
		a := b.WeirRun(rules)
		if want := `warning: there is no interface "dmz0" yet`; !strings.Contains(a.Said(), want) {
			b.Errorf("the daemon did not say %s:\n%s", want, a.Said())
		}
		lan := b.Namespace(lab.LAN)
		b.Run(lab.FW, "ip", "link", "add", "new0", "type", "veth", "peer", "name", "eth1", "netns", lan)
		if b.Hook == "xdp" { // the frames that cross are those of a wire
			b.Run(lab.FW, "ethtool", "-K", "new0", "tx", "off", "gro", "off")
			b.Run(lab.LAN, "ethtool", "-K", "eth1", "tx", "off", "gro", "on")
		}
		b.Run(lab.FW, "ip", "address", "add", "10.9.0.1/24", "dev", "new0")
		b.Run(lab.FW, "ip", "link", "set", "new0", "up")
		b.Run(lab.LAN, "ip", "address", "add", "10.9.0.2/24", "dev", "eth1")
		b.Run(lab.LAN, "ip", "link", "set", "eth1", "up")
		b.Run(lab.LAN, "ip", "route", "add", wanHost, "via", "10.9.0.1", "dev", "eth1")
		b.AwaitHook("new0")
		if out, err := b.Try(lab.LAN, "ping", "-n", "-c", "1", "-W", "1", wanHost); err == nil {
			b.Errorf("no rule names new0, and it forwards:\n%s", out)
		}
		b.Run(lab.FW, "ip", "link", "set", "new0", "down")
		b.Run(lab.FW, "ip", "link", "set", "new0", "name", "dmz0", "up")
		b.Until(30*time.Second, "rules for dmz0 pass ping", func() bool {
			_, err := b.Try(lab.LAN, "ping", "-n", "-c", "1", "-W", "1", wanHost)
			return err == nil
		})
		b.Run(lab.FW, "ip", "link", "del", "dmz0")
		b.Until(10*time.Second, "dmz0 is forgotten", func() bool { return !strings.Contains(b.Weir("info"), "dmz0") })
		b.Ping(lab.FW, fwLAN, 1)
		if !a.Running() {
			b.Errorf("the daemon ended:\n%s", a.Said())
		}
	})
}
