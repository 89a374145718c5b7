package test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"weir/internal/fw/reason"
	"weir/internal/lab"
	"weir/internal/testenv"
	"weir/test/lib"
)

// markRules send the LAN's pings to far by another uplink. Of the box's own packets, only
// those with Tailscale's mark pass.
const markRules = `
set skip on lo
match out on wan0 inet from (lan0:network) nat-to (wan0)
match out on wan1 inet from (lan0:network) nat-to (wan1)
block
pass in on lan0 allow-opts tag lan
pass in on lan0 inet proto icmp to 198.51.100.9 allow-opts tag lan set mark 2/0xf
pass out on { wan0 wan1 } inet allow-opts tagged lan
pass out on { wan0 wan1 } inet from { (wan0) (wan1) } allow-opts marked 0x80000/0xff0000
`

//	          wan0 ──── eth0
//	lan ── fw                 wan ── far
//	          wan1 ──── fw1
//
// The mark belongs to the administrator. Rules set and test it, the kernel and nftables
// use it, and nobody can pass himself off as weir with it.
func TestMarks(t *testing.T) {
	weir.BothFar(t, func(b *lib.Box) {
		b.Wire("wan1", lab.WAN, "fw1")
		b.Address(lab.FW, "wan1", "198.18.1.2/24")
		b.Address(lab.WAN, "fw1", "198.18.1.1/24")
		b.IP(lab.FW, "route add default via 198.18.1.1 dev wan1 table 100", "rule add fwmark 2/0xf lookup 100")
		b.Run(lab.FW, "nft", adminsTable)
		b.IP(lab.FW, "rule add pref 40000 fwmark 77 lookup 100", "-6 rule add pref 40001 fwmark 0x20000001/0x20000001 lookup 100",
			"rule add pref 40002 not fwmark 0xca6c lookup main")
		said := b.WeirRun(markRules).Said()
		judged, _ := b.WeirStatus("doctor", "--interval", "200ms", "--json")
		for _, rule := range []string{"ip rule 40000: fwmark 0x4d/0xffffffff", "ip -6 rule 40001: fwmark 0x20000001/0x20000001"} {
			if !strings.Contains(said, rule) {
				b.Errorf("weir run does not name %s, which compares its bits:\n%s", rule, said)
			}
			if !strings.Contains(judged, rule) {
				b.Errorf("weir doctor does not name %s, which compares weir's bits:\n%s", rule, judged)
			}
		}
		if strings.Contains(judged, "fwmark 0x2/0xf") {
			b.Errorf("weir doctor names a rule that leaves weir's bits out:\n%s", judged)
		}
		if strings.Count(said, "policy routing rule") != 2 {
			b.Errorf("weir run said:\n%s", said)
		}
		b.AwaitHook("wan1")
		for _, part := range []struct {
			name string
			tell func(*lib.Box)
		}{
			{"another uplink", anotherUplink},
			{"marks of sockets", marksOfSockets},
			{"marks of another namespace", marksOfAnotherNamespace},
			{"another's bits", othersBits},
			{"other bits for weir", otherBitsForWeir},
		} {
			b.Tell(part.name, part.tell)
		}
	})
}

// adminsTable belongs to an administrator, beside Tailscale's policy. Forwarded packets
// get a mark of their own, and are counted where they leave if they still have it.
const adminsTable = `table inet admin {
	chain pre { type filter hook prerouting priority mangle; meta mark set meta mark and 0xff00ffff or 0x40000; }
	counter kept {}
	counter lost {}
	chain post {
		type filter hook postrouting priority filter;
		iifname "lan0" meta mark and 0xff0000 == 0x40000 counter name kept
		iifname "lan0" meta mark and 0xff0000 != 0x40000 counter name lost
	}
}`

// received returns the number of packets that a device of wan has received.
func received(b *lib.Box, device string) (packets int) {
	b.Helper()
	text := b.Run(lab.WAN, "cat", "/proc/net/dev")
	_, behind, _ := strings.Cut(text, device+":")
	if _, err := fmt.Sscan(behind, new(int), &packets); err != nil {
		b.Fatalf("read the counters of %s: %v\n%s", device, err, text)
	}
	return packets
}

//	lan ── ping far ──▶ fw ══ wan1 ══▶ far
//	lan ── ping wan ──▶ fw ── wan0 ──▶ wan
//
// Packets that a rule has marked use the table of ip rule, both redirected packets and
// those that the stack forwards (ping -R), and replies come back.
func anotherUplink(b *lib.Box) {
	const pings = 20
	for _, options := range [][]string{nil, {"-R"}} {
		for to, device := range map[string]string{lib.FarHost: "fw1", wanHost: "eth0"} {
			before := received(b, device)
			args := append([]string{"-n", "-c", fmt.Sprint(pings), "-i", "0.05", "-W", "2"}, options...)
			if out := b.Run(lab.LAN, "ping", append(args, to)...); !strings.Contains(out, fmt.Sprintf(" %d received", pings)) {
				b.Errorf("ping %v %s:\n%s", options, to, out)
			}
			if got := received(b, device) - before; got < pings {
				b.Errorf("ping %v %s: %s received %d packets", options, to, device, got)
			}
		}
	}
	if states := b.Weir("states", "-v", "host", lib.FarHost); !strings.Contains(states, ", mark 0x2/0xf") {
		b.Errorf("weir states -v shows no mark:\n%s", states)
	}
	for _, s := range b.States("host", lib.FarHost) {
		if s.Src.NewAddr.String() != "198.18.1.2" {
			b.Errorf("a connection by wan1 is translated to %s", s.Src.NewAddr)
		}
	}
}

//	fw: ping -m MARK ──✕ wan0
//
// Programs of the box can set any mark. weir's own bits let nothing pass, and of all
// marks only the one that the rule tests does.
func marksOfSockets(b *lib.Box) {
	for _, mark := range []uint32{0, 1 << 29, 2 << 29, 3 << 29, 7 << 29, 0xffffffff, 0x40000} {
		if out, err := b.Try(lab.FW, "ping", "-n", "-m", fmt.Sprint(mark), "-c", "1", "-W", "1", wanHost); err == nil {
			b.Errorf("ping -m %#x by the box is answered:\n%s", mark, out)
		}
	}
	for _, mark := range []uint32{0x80000, 0x80000 | 7<<29} {
		if out, err := b.Try(lab.FW, "ping", "-n", "-m", fmt.Sprint(mark), "-c", "1", "-W", "2", wanHost); err != nil {
			b.Errorf("ping -m %#x by the box: %v\n%s", mark, err, out)
		}
	}
}

//	a container: ping -m MARK ──✕ wan0 fw lan0 ──✕ lan
//
// What comes in from another namespace meets the rules, whatever mark its programs set.
func marksOfAnotherNamespace(b *lib.Box) {
	b.IP(lab.WAN, "route replace 192.168.1.0/24 via "+fwWAN)
	blocked := b.Packets("wan0", reason.Block)
	marks := []uint32{0, 1 << 29, 2 << 29, 3 << 29, 7 << 29, 0xffffffff, 0x80000}
	for _, mark := range marks {
		for _, to := range []string{lanHost, fwWAN} {
			if out, err := b.Try(lab.WAN, "ping", "-n", "-m", fmt.Sprint(mark), "-c", "1", "-W", "0.3", to); err == nil {
				b.Errorf("ping -m %#x to %s is answered:\n%s", mark, to, out)
			}
		}
	}
	if got := b.Packets("wan0", reason.Block) - blocked; got < uint64(2*len(marks)) {
		b.Errorf("%d of %d marked packets were blocked where they came in", got, 2*len(marks))
	}
}

// count returns the packets of a counter of adminsTable.
func count(b *lib.Box, name string) (packets int) {
	b.Helper()
	text := b.Run(lab.FW, "nft", "list", "counter", "inet", "admin", name)
	_, behind, _ := strings.Cut(text, "packets ")
	if _, err := fmt.Sscanf(behind, "%d", &packets); err != nil {
		b.Fatalf("read the counter %s: %v\n%s", name, err, text)
	}
	return packets
}

// Bits that an administrator's rule sets in prerouting are still there in postrouting.
// weir's own bits survive that rule: the packets arrive.
func othersBits(b *lib.Box) {
	const pings = 5
	kept, lost := count(b, "kept"), count(b, "lost")
	out := b.Run(lab.LAN, "ping", "-n", "-R", "-c", fmt.Sprint(pings), "-i", "0.05", "-W", "2", wanHost)
	if !strings.Contains(out, fmt.Sprintf(" %d received", pings)) {
		b.Errorf("ping -R through an administrator's rule:\n%s", out)
	}
	if k, l := count(b, "kept")-kept, count(b, "lost")-lost; k < pings || l != 0 {
		b.Errorf("an administrator's bits were there %d times, and not there %d times", k, l)
	}
}

// set mark-mask moves weir's bits while packets pass, and the guard follows.
func otherBitsForWeir(b *lib.Box) {
	b.Weir("load", b.Rules("set mark-mask 0x700\n"+markRules))
	if guard := b.Run(lab.FW, "nft", "list", "table", "inet", "weir"); !strings.Contains(guard, "0x00000700") || strings.Contains(guard, "0xe0000000") {
		b.Errorf("the guard:\n%s", guard)
	}
	anotherUplink(b)
	othersBits(b)
	if out, err := b.Try(lab.FW, "ping", "-n", "-m", fmt.Sprint(0x700), "-c", "1", "-W", "1", wanHost); err == nil {
		b.Errorf("ping with weir's new bits by the box is answered:\n%s", out)
	}
}

//	container: ping -m MARK ══ netkit ══ fw
//
// A netkit pair, as container runtimes make it, keeps the marks of its packets. weir's
// own bits let nothing in, and the other bits are there for rules.
func TestMarksOfAContainer(t *testing.T) {
	t.Parallel()
	b := weir.Box(t, "xdp")
	if err := b.Netkit("nk0", lab.WAN, "nk"); errors.Is(err, unix.EOPNOTSUPP) {
		testenv.SkipOutside(t, "this kernel has no netkit devices; the emulated one has: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	b.Address(lab.FW, "nk0", "198.18.9.1/24")
	b.Address(lab.WAN, "nk", "198.18.9.2/24")
	b.WeirRun("set skip on lo\nblock\npass in on nk0 inet proto icmp marked 0x80000/0xff0000\n")
	b.AwaitHook("nk0")
	for _, test := range []struct {
		mark   uint32
		passes bool
	}{
		{0x80000, true}, {0x80000 | 7<<29, true}, {0, false}, {1 << 29, false}, {2 << 29, false},
		{3 << 29, false}, {7 << 29, false}, {0xffffffff, false},
	} {
		out, err := b.Try(lab.WAN, "ping", "-n", "-m", fmt.Sprint(test.mark), "-c", "1", "-W", "2", "198.18.9.1")
		if passes := err == nil; passes != test.passes {
			b.Errorf("ping -m %#x is answered: %t, want %t\n%s", test.mark, passes, test.passes, out)
		}
	}
}
