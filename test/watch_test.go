package test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/internal/lab"
	"weir/test/lib"
)

// watchedRules choose between two uplinks in turn. One is watched by pings beyond it.
const watchedRules = `
set skip on lo
set gateway 192.0.2.1 monitor ping ` + lib.FarHost + ` states kill
match out on wan0 inet from (lan0:network) nat-to (wan0)
match out on wan1 inet from (lan0:network) nat-to (wan1)
block
pass in on lan0 route-to { (wan0 203.0.113.1), (wan1 192.0.2.1) } round-robin inet proto tcp to port { 8082 8084 }
pass out inet from self
pass out on wan0 inet
pass out on wan1 inet
`

// A watchedGateway is one of weir gateways --json.
type watchedGateway struct {
	Address, Interface, Monitor, State, Why string
	Loss                                    float64
	RTT                                     time.Duration `json:"rtt_ns"`
}

func watchedGateways(b *lib.Box) map[string]watchedGateway {
	b.Helper()
	var all []watchedGateway
	if err := json.Unmarshal([]byte(b.Weir("gateways", "--json")), &all); err != nil {
		b.Fatal(err)
	}
	found := make(map[string]watchedGateway)
	for _, g := range all {
		found[g.Address] = g
	}
	return found
}

func awaitGateway(b *lib.Box, addr, state string) {
	b.Helper()
	b.Until(40*time.Second, fmt.Sprintf("%s is %s", addr, state), func() bool { return watchedGateways(b)[addr].State == state })
}

// byUplink makes 6 connections and counts who answers: wan, isp, or what curl says.
func byUplink(b *lib.Box) map[string]int {
	b.Helper()
	answers := make(map[string]int)
	for range 6 {
		answers[fetch(b, lab.LAN, lib.FarHost+":8084")]++
	}
	return answers
}

// expectUplinks waits until the rules choose anew, which is a moment after weir gateways
// says so. From then on each connection must be answered.
func expectUplinks(b *lib.Box, when string, wan, isp int) {
	b.Helper()
	chosen := func(answers map[string]int) bool { return answers[lab.WAN] == wan && answers[lib.ISP] == isp }
	b.Until(20*time.Second, "the rules choose anew "+when, func() bool { return chosen(byUplink(b)) })
	if answers := byUplink(b); !chosen(answers) {
		b.Errorf("%s: connections by %v; want %d by wan, %d by isp", when, answers, wan, isp)
	}
}

//	          ┌─ wan0 ── wan          watched by ARP
//	lan ── fw ┤
//	          └─ wan1 ── isp ── far   watched by pings to far
//
// New connections take the uplinks that work. Those of a dead one end, if the rules say so.
func TestGateways(t *testing.T) {
	weir.BothUplinks(t, func(b *lib.Box) {
		for _, host := range []string{lab.WAN, lib.ISP} {
			serveName(b, host, 8084)
			b.Listen(host, 8082, "socat", "-t", "30", "TCP4-LISTEN:8082,fork,reuseaddr", "EXEC:cat")
		}
		rules := b.Rules(watchedRules)
		daemon := b.WeirRun(rules)
		awaitGateway(b, "203.0.113.1", "up")
		awaitGateway(b, "192.0.2.1", "up")
		b.Until(10*time.Second, "pings are answered", func() bool { return watchedGateways(b)["192.0.2.1"].RTT > 0 })
		if g := watchedGateways(b)["192.0.2.1"]; g.Interface != "wan1" || g.Monitor != "ping" || g.RTT > time.Second {
			b.Errorf("the second gateway: %+v", g)
		}
		expectUplinks(b, "both are up", 3, 3)
		kept, ended := connectBoth(b)

		b.IP(lib.ISP, "address del "+lib.FarHost+"/32 dev lo") // it still answers ARP
		awaitGateway(b, "192.0.2.1", "down")
		if g := watchedGateways(b)["192.0.2.1"]; g.Why != "no answer" || g.Loss == 0 {
			b.Errorf("the dead gateway: %+v", g)
		}
		b.Until(10*time.Second, "the states of the dead gateway end", func() bool { return len(b.States("gateway", "192.0.2.1", "port", "8082")) == 0 })
		if said := b.Weir("gateways"); !strings.Contains(said, "ping "+lib.FarHost) || !strings.Contains(said, "down") {
			b.Errorf("weir gateways prints:\n%s", said)
		}
		expectUplinks(b, "isp is dead", 6, 0)
		kept.echo("by the other uplink")
		ended.say("gone")
		if ended.hears(2 * time.Second) {
			b.Error("a connection of the dead uplink goes on")
		}
		b.Weir("load", rules)
		expectUplinks(b, "isp is dead, and the rules were loaded again", 6, 0)
		daemon.Kill()
		expectUplinks(b, "isp is dead, without a daemon", 6, 0)
		b.WeirRun(rules)
		expectUplinks(b, "isp is dead, and the daemon has started again", 6, 0)
		awaitGateway(b, "203.0.113.1", "up")

		b.IP(lib.ISP, "address add "+lib.FarHost+"/32 dev lo")
		awaitGateway(b, "192.0.2.1", "up")
		expectUplinks(b, "isp is back", 3, 3)

		b.IP(lab.WAN, "link set eth0 arp off")
		awaitGateway(b, "203.0.113.1", "down")
		expectUplinks(b, "wan does not answer ARP", 0, 6)
		kept.say("kept")
		if len(b.States("gateway", "203.0.113.1", "port", "8082")) == 0 {
			b.Error("the states of the gateway by ARP have ended; the rules keep them")
		}
		b.IP(lab.WAN, "link set eth0 arp on")
		awaitGateway(b, "203.0.113.1", "up")
		kept.await("kept")
		expectUplinks(b, "wan answers again", 3, 3)
		killByGateway(b)
	})
}

// hears reports whether something comes back within a time.
func (c *connection) hears(within time.Duration) bool {
	c.SetReadDeadline(time.Now().Add(within)) //nolint:errcheck // it can
	n, _ := c.Read(make([]byte, 1))
	return n > 0
}

// connectBoth opens a connection by each uplink.
func connectBoth(b *lib.Box) (byWAN, byISP *connection) {
	b.Helper()
	for byWAN == nil || byISP == nil {
		before := len(b.States("gateway", "192.0.2.1", "port", "8082"))
		c := connect(b)
		if len(b.States("gateway", "192.0.2.1", "port", "8082")) > before {
			byISP = c
		} else {
			byWAN = c
		}
	}
	return byWAN, byISP
}

// weir kill and pfctl -k end the states of a gateway, of a translation address, of one key.
func killByGateway(b *lib.Box) {
	b.Helper()
	for _, args := range []string{"kill gateway 203.0.113.1 port 8082", "pfctl -k gateway -k 203.0.113.1", "pfctl -k gateway -k 203.0.113.0/24", "pfctl -k nat -k " + fwWAN, "pfctl -k key -k"} {
		byWAN, byISP := connectBoth(b)
		words := strings.Fields(args)
		if strings.HasSuffix(args, "key -k") {
			words = append(words, fmt.Sprintf("tcp %s -> %s", byWAN.LocalAddr(), byWAN.RemoteAddr()))
		}
		b.Weir(words...)
		byISP.echo(args)
		byWAN.say("killed")
		if byWAN.hears(time.Second) {
			b.Errorf("after weir %s a connection goes on", args)
		}
	}
}
