package test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/lab"
	"weir/internal/testenv"
	"weir/test/lib"
)

// ownerRules ask for users and groups of the box, and of packets that are nobody's.
const ownerRules = `
set skip on lo
match out on wan0 inet from (lan0:network) nat-to (wan0)
match out on wan0 inet6 from (lan0:network) nat-to (wan0)
block return log
pass out proto tcp to port 80 user nobody
pass out proto tcp to port 81
block return out proto tcp to port 81 user { != root }
pass out proto udp to port 53 user < 30
pass out proto udp to port 53 user www-data label web
pass out proto tcp to port 82 group www-data
pass in on lan0 proto tcp to port 8080 user www-data
pass in on lan0 proto udp to port 8053 group www-data
pass in on lan0 proto tcp to port 8090 user unknown
pass in on lan0 proto tcp to port 83 user != nobody
pass out on wan0 proto tcp to port 83 user unknown
pass in on lan0 proto tcp to port 84 user >= root
`

// as starts a program's command line for another user and group.
func as(user, group, program string, args ...string) (string, []string) {
	return "setpriv", append([]string{"--reuid", user, "--regid", group, "--clear-groups", program}, args...)
}

//	lan ── curl, socat ──▶ fw: servers of www-data and root
//	            fw: curl and socat of nobody, www-data and root ──▶ wan: servers
//	lan ───────────── forwarded: nobody's ────────────────────────▶ wan
//
// Rules for users and groups let through programs of these, for both families, TCP and
// UDP.
func TestUsersAndGroups(t *testing.T) {
	weir.BothAtOnce(t, func(b *lib.Box) {
		testenv.NeedProgram(b, "setpriv")
		for _, port := range []uint16{80, 81, 82, 83, 84} {
			b.Listen(lab.WAN, port, "socat", fmt.Sprintf("TCP6-LISTEN:%d,ipv6only=0,fork,reuseaddr", port), "EXEC:cat")
		}
		b.Listen(lab.WAN, 53, "socat", "UDP6-LISTEN:53,ipv6only=0,fork,reuseaddr", "EXEC:cat")
		b.WeirRun(ownerRules)
		b.Tell("sent", usersSend)
		b.Tell("received", usersReceive)
		b.Tell("forwarded", usersForward)
		b.Tell("another namespace", usersElsewhere)
		b.Tell("from anchors", usersFromAnchors)
	})
}

// tries reports whether a program of a user exchanges data over TCP or UDP.
func tries(b *lib.Box, host, user, group, to string) bool {
	b.Helper()
	program, args := as(user, group, "socat", "-t", "2", "-T", "2", "-", to)
	command := "echo hello | " + program + " " + strings.Join(args, " ")
	out, _ := b.Try(host, "sh", "-c", command)
	return strings.Contains(out, "hello")
}

type userCase struct {
	user, group, to string
	passes          bool
}

func (c *userCase) check(b *lib.Box, host string) {
	b.Helper()
	if got := tries(b, host, c.user, c.group, c.to); got != c.passes {
		b.Errorf("%s:%s to %s passes: %t, want %t", c.user, c.group, c.to, got, c.passes)
	}
}

func usersSend(b *lib.Box) {
	for _, wan := range []struct{ tcp, udp string }{{"TCP4:" + wanHost, "UDP4:" + wanHost}, {"TCP6:[" + wanHost6 + "]", "UDP6:[" + wanHost6 + "]"}} {
		for _, c := range []userCase{
			{"nobody", "nogroup", wan.tcp + ":80", true},
			{"root", "root", wan.tcp + ":80", false},
			{"www-data", "nogroup", wan.tcp + ":80", false},
			{"root", "root", wan.tcp + ":81", true},
			{"root", "nogroup", wan.tcp + ":81", true},
			{"nobody", "nogroup", wan.tcp + ":81", false},
			{"www-data", "www-data", wan.udp + ":53", true},
			{"root", "root", wan.udp + ":53", true},
			{"nobody", "www-data", wan.udp + ":53", false},
			{"nobody", "www-data", wan.tcp + ":82", true},
			{"root", "www-data", wan.tcp + ":82", true},
			{"www-data", "nogroup", wan.tcp + ":82", false},
		} {
			c.check(b, lab.FW)
		}
	}
	if out, err := b.Try(lab.FW, "curl", "-sS", "--connect-timeout", "5", "http://"+wanHost+":80/"); err == nil || !strings.Contains(err.Error(), "exit status 7") || strings.Contains(err.Error(), "timed out") {
		b.Errorf("root's curl is not refused: %v\n%s", err, out)
	}
}

// serve starts a server of a user on fw.
func serve(b *lib.Box, user, group string, port uint16, listen string) *lib.Process {
	b.Helper()
	program, args := as(user, group, "socat", listen, "EXEC:cat")
	return b.Listen(lab.FW, port, program, args...)
}

func usersReceive(b *lib.Box) {
	serve(b, "www-data", "www-data", 8080, "TCP6-LISTEN:8080,ipv6only=0,fork,reuseaddr")
	serve(b, "nobody", "www-data", 8053, "UDP6-LISTEN:8053,ipv6only=0,fork,reuseaddr")
	serve(b, "root", "root", 8090, "TCP6-LISTEN:8090,ipv6only=0,fork,reuseaddr")
	for _, to := range []string{"4:" + fwLAN, "6:[" + fwLAN6 + "]"} {
		for _, c := range []userCase{ // who asks is not a user of the box
			{"nobody", "nogroup", "TCP" + to + ":8080", true},
			{"nobody", "nogroup", "UDP" + to + ":8053", true},
			{"nobody", "nogroup", "TCP" + to + ":8090", false},
		} {
			c.check(b, lab.LAN)
		}
	}
	b.Tell("another user's server", func(b *lib.Box) {
		serve(b, "root", "www-data", 8180, "TCP4-LISTEN:8180,fork,reuseaddr")
		b.Weir("load", b.Rules("set skip on lo\nblock return\npass in proto tcp to port 8180 user www-data\n"))
		(&userCase{"nobody", "nogroup", "TCP4:" + fwLAN + ":8180", false}).check(b, lab.LAN)
		b.Weir("load", b.Rules("set skip on lo\nblock return\npass in proto tcp to port 8180 group www-data\n"))
		(&userCase{"nobody", "nogroup", "TCP4:" + fwLAN + ":8180", true}).check(b, lab.LAN)
		b.Weir("load", b.Rules(ownerRules))
	})
}

func usersForward(b *lib.Box) {
	for _, wan := range []string{"TCP4:" + wanHost, "TCP6:[" + wanHost6 + "]"} {
		for _, c := range []userCase{
			{"root", "root", wan + ":83", true},
			{"root", "root", wan + ":84", false}, // nobody has no number
		} {
			c.check(b, lab.LAN)
		}
	}
}

// usersElsewhere sends from a macvlan in another namespace: its users are not the box's.
func usersElsewhere(b *lib.Box) {
	inside := b.Namespace("inside")
	b.Run(lab.FW, "ip", "netns", "add", inside)
	defer b.Run(lab.FW, "ip", "netns", "del", inside)
	b.IP(lab.FW, "link add link wan0 name mv0 netns "+inside+" type macvlan mode bridge") // weir never sees it in fw
	for _, command := range []string{"link set lo up", "link set mv0 up", "address add 203.0.113.77/24 dev mv0"} {
		b.Run(lab.FW, "ip", append([]string{"-n", inside}, strings.Fields(command)...)...)
	}
	program, args := as("www-data", "www-data", "socat", "-t", "2", "-T", "2", "-", "UDP4:"+wanHost+":53,sourceport=5353")
	command := "echo hello | ip netns exec " + inside + " " + program + " " + strings.Join(args, " ")
	before := b.Rule(`label "web"`).Packets
	if out, _ := b.Try(lab.FW, "sh", "-c", command); strings.Contains(out, "hello") {
		b.Error("what another namespace's www-data sends passes as the box's")
	}
	if now := b.Rule(`label "web"`).Packets; now != before {
		b.Errorf("the rule for users counts %d packets of another namespace", now-before)
	}
}

// usersFromAnchors loads rules without users, and then an anchor with them under traffic.
func usersFromAnchors(b *lib.Box) {
	rules := func(inside string) string {
		return b.Rules("set skip on lo\nblock return\npass out proto tcp to port 81\nanchor users {\n" + inside + "\n}\n")
	}
	b.Weir("load", rules("pass out proto tcp to port 80"))
	nobody, root := userCase{"nobody", "nogroup", "TCP4:" + wanHost + ":80", true}, userCase{"root", "root", "TCP4:" + wanHost + ":80", true}
	nobody.check(b, lab.FW)
	root.check(b, lab.FW)
	b.Weir("load", rules("pass out proto tcp to port 80 user nobody"))
	root.passes = false
	nobody.check(b, lab.FW)
	root.check(b, lab.FW)
	b.Weir("load", b.Rules("set skip on lo\nblock return\nanchor guests\n"))
	b.Weir("anchor", "load", "guests", b.Rules("pass out proto tcp to port 80 user { root, unknown }\n"))
	nobody.passes, root.passes = false, true
	nobody.check(b, lab.FW)
	root.check(b, lab.FW)
}

//	lan ── curl ──▶ fw ── received-on lan0 ──▶ wan
//	             fw: curl ──── ✕ ────────────▶ wan
//
// What came in by lan0 may leave, in both families; what the box itself sends may not. A
// group may be asked for, too, and the rule may be one without a state.
func TestReceivedOn(t *testing.T) {
	weir.UnderTCX(t, func(b *lib.Box) {
		b.Listen(lab.WAN, 80, "socat", "-t", "30", "TCP6-LISTEN:80,ipv6only=0,fork,reuseaddr", "EXEC:cat")
		head := "set skip on lo\nset interface-group inside { lan0 }\n" +
			"match out on wan0 inet from (lan0:network) nat-to (wan0)\nmatch out on wan0 inet6 from (lan0:network) nat-to (wan0)\npass\n"
		b.WeirRun(b.Rules(head))
		for _, c := range []struct {
			rules   string
			lan, fw bool
		}{
			{rules: "block return out on wan0 proto tcp\npass out on wan0 received-on lan0\n", lan: true},
			{rules: "block return out on wan0 proto tcp\npass out on wan0 received-on inside no state\npass in on wan0 flags any\n", lan: true},
			{rules: "block return out on wan0 proto tcp received-on any\n", fw: true},
			{rules: "block return out on wan0 proto tcp ! received-on lan0\n", lan: true},
		} {
			b.Weir("load", b.Rules(head+c.rules))
			for _, to := range []string{"TCP4:" + wanHost + ":80", "TCP6:[" + wanHost6 + "]:80"} {
				if got := tries(b, lab.LAN, "root", "root", to); got != c.lan {
					b.Errorf("%s: from the LAN to %s: %t, want %t", c.rules, to, got, c.lan)
				}
				if got := tries(b, lab.FW, "root", "root", to); got != c.fw {
					b.Errorf("%s: from the box to %s: %t, want %t", c.rules, to, got, c.fw)
				}
			}
		}
	})
}

//	fw: curl of nobody ──▶ wan        weir log, weir log -i pflog1, -i pflog2
//	lan ── ping ──▶ fw
//
// log (user) names the user whose socket a packet belongs to, and log (to pflogN) chooses
// which log shows it.
func TestLogOfUsers(t *testing.T) {
	weir.UnderTCX(t, func(b *lib.Box) {
		b.Listen(lab.WAN, 80, "socat", "-t", "30", "TCP6-LISTEN:80,ipv6only=0,fork,reuseaddr", "EXEC:cat")
		b.WeirRun("set skip on lo\nblock return log (all, user, to pflog1)\npass out log (user) proto tcp to port 80 user nobody\npass in log (user, to pflog2) on lan0 inet proto icmp\n")
		all, one, two := readLog(b, "--json"), readLog(b, "--json", "-i", "pflog1"), readLog(b, "-i", "pflog2")
		for _, to := range []string{"TCP4:" + wanHost + ":80", "TCP6:[" + wanHost6 + "]:80"} {
			(&userCase{"nobody", "nogroup", to, true}).check(b, lab.FW)
			(&userCase{"www-data", "nogroup", to, false}).check(b, lab.FW)
		}
		b.Ping(lab.LAN, fwLAN, 2)
		b.AwaitSaid(two, "pass in on lan0: ")
		if said := two.Said(); strings.Contains(said, "uid") || strings.Contains(said, wanHost) {
			b.Errorf("pflog2 has another rule's packets, or a user for ping's:\n%s", said)
		}
		var users []uint32
		b.Until(10*time.Second, "all packets are logged", func() bool {
			users = nil
			for _, r := range records(b, all) {
				if r.User != nil && r.Interface == "wan0" {
					users = append(users, *r.User)
				}
			}
			return len(users) >= 4
		})
		if want := []uint32{65534, 33, 65534, 33}; !slices.Equal(users, want) {
			b.Errorf("users of logged packets: %v, want %v", users, want)
		}
		for _, r := range records(b, one) {
			if r.Rule == nil || r.Rule.Pflog != 1 || r.User != nil && *r.User != 33 {
				b.Errorf("pflog1 shows %+v", r)
			}
		}
		if len(records(b, one)) < 2 {
			b.Errorf("pflog1 shows too little:\n%s", one.Said())
		}
	})
}
