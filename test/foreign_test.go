package test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"weir/internal/lab"
	"weir/test/lib"
)

// names reports whether a text names the program that ForeignXDP attached to
// lan0: its name and id, where it is pinned, and who has it open.
func names(text, pin string) bool {
	holder := fmt.Sprintf("[%d]", os.Getpid())
	return regexp.MustCompile(lib.ForeignName+` \(id [0-9]+\)`).MatchString(text) &&
		strings.Contains(text, "another XDP program") && strings.Contains(text, pin) && strings.Contains(text, holder)
}

//	fw: lan0 has an XDP program that is not weir's
//
// A foreign program sees packets before weir, whichever hook weir would use there. It is
// named, and the start changes nothing.
func TestForeignProgramIsNamed(t *testing.T) {
	weir.BothAtOnce(t, func(b *lib.Box) {
		pin := b.ForeignXDP(lab.FW, "lan0")
		found := b.Machine(lab.FW)
		said := b.WeirStart("block all\n").Wait(lib.StartPatience, 1)
		if !strings.Contains(said, "lan0: ") || !names(said, pin) {
			b.Errorf("weir run said\n%s", said)
		}
		b.SameMachine(lab.FW, found, "after a start that a foreign program prevented")
		said = b.WeirRun(gatewayConf(b), "--or-block").Said()
		if h := b.Hooks()["lan0"]; h.Hook != "tcx" || !names(said, pin) {
			b.Errorf("with --or-block weir run said\n%s\nlan0 has %+v", said, h)
		}
		b.Ping(lab.LAN, wanHost, 2)
		b.Weir("stop")
		b.NoXDP(lab.FW, "lan0")
		b.WeirRun(gatewayConf(b))
		b.Ping(lab.LAN, wanHost, 2)
	})
}

//	fw: weir runs, an XDP program comes to lan0, which has TCX, and goes again
//
// While a foreign program is there, weir reports it.
func TestForeignProgramComesLater(t *testing.T) {
	t.Parallel()
	b := weir.Box(t, "tcx")
	a := b.WeirRun(gatewayConf(t))
	why := b.Hooks()["lan0"].Why
	pin := b.ForeignXDP(lab.FW, "lan0")
	b.Until(10*time.Second, "the program on lan0 is named", func() bool { return names(b.Hooks()["lan0"].Why, pin) })
	b.NoXDP(lab.FW, "lan0")
	b.Until(10*time.Second, "it is not named any more", func() bool { return b.Hooks()["lan0"].Why == why })
	if !names(a.Said(), pin) {
		t.Errorf("the daemon said\n%s", a.Said())
	}
}

//	lan ─── fw wan0 ─── wan          tc: a filter at wan0's egress
//	           tap0
//
// Other programs at the hooks of tc stay in force: at wan0's egress such a program sees
// what weir passes, and may send it elsewhere.
func TestOthersAtTheHooks(t *testing.T) {
	t.Parallel()
	b := weir.Box(t, "tcx")
	b.Run(lab.FW, "tc", "qdisc", "add", "dev", "wan0", "clsact")
	b.WeirRun(gatewayConf(t))
	b.Ping(lab.LAN, wanHost, 2)
	b.IP(lab.FW, "link add tap0 type veth peer name tap1", "link set tap0 up", "link set tap1 up")
	b.Run(lab.FW, "tc", "filter", "add", "dev", "wan0", "egress", "protocol", "ip", "u32",
		"match", "ip", "protocol", "1", "0xff", "action", "mirred", "egress", "redirect", "dev", "tap0")
	if out, err := b.Try(lab.LAN, "ping", "-n", "-c", "2", "-i", "0.1", "-W", "1", wanHost); err == nil {
		t.Errorf("tc's filter takes ping, and it is answered:\n%s", out)
	}
	b.Ping(lab.LAN, wanHost6, 2)
	counted := b.Run(lab.FW, "tc", "-s", "filter", "show", "dev", "wan0", "egress")
	if !strings.Contains(counted, "Sent 196 bytes 2 pkt") {
		t.Errorf("tc counted\n%s", counted)
	}
}
