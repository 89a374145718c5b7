package test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/fw/reason"
	"weir/internal/fw/view"
	"weir/internal/lab"
	"weir/test/lib"
)

// limiterRules share limits between rules for clients of the LAN.
const limiterRules = `
set skip on lo
set timeout { tcp.closed 1, tcp.finwait 1, tcp.closing 1, tcp.first 5 }
state limiter web id 1 limit 5
state limiter slow id 2 limit 100 rate 3/300
source limiter each id 1 entries 2 limit 3 table <many> above 2 below 2
table <many> persist
block in
block return in on lan0 proto tcp to port 8001
pass in on lan0 proto tcp to port 8000 state limiter web (block)
pass in on lan0 proto tcp to port 8001 source limiter each
pass in on lan0 proto tcp to port 8002 state limiter web
pass in on lan0 proto tcp to port 8003 state limiter slow (block)
pass out
`

// Addresses at the LAN besides its own.
const (
	second = "192.168.1.120"
	third  = "192.168.1.121"
)

// lanOpens reports whether a connection of the LAN to a service at the WAN succeeds, and what
// socat says.
func lanOpens(b *lib.Box, from string, port int) (ok bool, said string) {
	out, _ := b.Try(lab.LAN, "sh", "-c", fmt.Sprintf("echo hello | timeout 1 socat -t 0.5 - TCP:%s:%d,bind=%s,connect-timeout=0.5 2>&1", wanHost, port, from))
	return strings.Contains(out, "hello"), out
}

// lanHolds opens a connection that stays open until it is killed.
func lanHolds(b *lib.Box, from string, port int) *lib.Process {
	b.Helper()
	p := b.Start(lab.LAN, "sh", "-c", fmt.Sprintf("while sleep 0.1; do echo tick; done | exec socat - TCP:%s:%d,bind=%s", wanHost, port, from))
	b.Until(5*time.Second, fmt.Sprintf("the echo of port %d for %s", port, from), func() bool { return strings.Contains(p.Said(), "tick") })
	return p
}

// limiterOf returns a limiter as weir info shows it.
func limiterOf(b *lib.Box, kind, name string) view.Limiter {
	b.Helper()
	all := b.Info().Limiters
	i := slices.IndexFunc(all, func(l view.Limiter) bool { return l.Kind == kind && l.Name == name })
	if i < 0 {
		b.Fatalf("there is no %s limiter %s: %+v", kind, name, all)
	}
	return all[i]
}

//	lan ── socat at three addresses, many connections ──▶ wan: echo at ports 8000 to 8003
//
// Rules share limiters. What these refuse is dropped, or meets the other rules. A source with
// many states is in the table. All counts stay when rules are loaded again, and without a daemon.
func TestLimiters(t *testing.T) {
	weir.UnderTCX(t, func(b *lib.Box) {
		for _, addr := range []string{second, third} {
			b.Run(lab.LAN, "ip", "addr", "add", addr+"/24", "dev", "eth0")
		}
		b.Run(lab.WAN, "ip", "route", "add", "192.168.1.0/24", "via", fwWAN)
		for port := range 4 {
			serveEcho(b, lab.WAN, uint16(8000+port))
		}
		daemon := b.WeirRun(b.Rules(limiterRules))
		b.Tell("source limiter", limitsSources)
		b.Tell("rate", limitsRate)
		b.Tell("state limiter", func(b *lib.Box) { limitsStates(b, daemon) })
	})
}

func limitsSources(b *lib.Box) {
	var held []*lib.Process
	for range 2 {
		held = append(held, lanHolds(b, lanHost, 8001))
	}
	if many := tableOf(b, "many"); len(many) != 0 {
		b.Errorf("with two connections the table has %s", many)
	}
	held = append(held, lanHolds(b, lanHost, 8001))
	b.Until(time.Second, "the table has the source", func() bool { return slices.Equal(tableOf(b, "many"), []string{lanHost}) })
	if out := b.Weir("table", "show", "-t", "many"); !strings.Contains(out, lanHost) {
		b.Errorf("weir table show:\n%s", out)
	}
	if ok, said := lanOpens(b, lanHost, 8001); ok || !strings.Contains(said, "refused") {
		b.Errorf("a fourth connection does not meet the other rule, which resets it:\n%s", said)
	}
	if ok, said := lanOpens(b, second, 8001); !ok {
		b.Errorf("another source cannot connect:\n%s", said)
	}
	if ok, said := lanOpens(b, third, 8001); ok || !strings.Contains(said, "refused") {
		b.Errorf("a third source does not meet the other rule:\n%s", said)
	}
	if l := limiterOf(b, "source", "each"); l.Sources != 2 || l.Refused.Limit == 0 || l.Refused.Entries == 0 || l.Admitted != 4 {
		b.Errorf("the source limiter is %+v", l)
	}
	if out := b.Weir("sources", "-v"); !strings.Contains(out, "limiter each, in its table") {
		b.Errorf("weir sources -v:\n%s", out)
	}
	for _, p := range held {
		p.Kill()
	}
	b.Until(10*time.Second, "the table has lost the source", func() bool { return len(tableOf(b, "many")) == 0 })
	b.Until(5*time.Second, "the source can connect again", func() bool { ok, _ := lanOpens(b, lanHost, 8001); return ok })
}

func limitsRate(b *lib.Box) {
	opened := 0
	for range 8 {
		if ok, _ := lanOpens(b, lanHost, 8003); ok {
			opened++
		}
	}
	if opened != 3 {
		b.Errorf("%d of 8 connections are opened, not 3", opened)
	}
	if l := limiterOf(b, "state", "slow"); l.Admitted != 3 || l.Refused.Rate == 0 || l.Refused.Limit != 0 {
		b.Errorf("the limiter is %+v", l)
	}
	if b.Packets("lan0", reason.StateLimiter) == 0 {
		b.Error("no packet is counted as state-limiter")
	}
	out := b.Run(lab.LAN, "nmap", "-n", "-Pn", "-sS", "--max-retries", "0", "-p", "8003", wanHost)
	if !strings.Contains(out, "filtered") {
		b.Errorf("nmap:\n%s", out)
	}
}

func limitsStates(b *lib.Box, daemon *lib.Process) {
	var held []*lib.Process
	for n := range 5 {
		held = append(held, lanHolds(b, lanHost, 8000+n%2*2))
	}
	full := func(when string) {
		b.Helper()
		for _, port := range []int{8000, 8002} {
			if ok, _ := lanOpens(b, second, port); ok {
				b.Errorf("%s port %d is open to a sixth connection", when, port)
			}
		}
		if l := limiterOf(b, "state", "web"); l.States != 5 {
			b.Errorf("%s the limiter is %+v", when, l)
		}
	}
	blocked, dropped := b.Packets("lan0", reason.Block), b.Packets("lan0", reason.StateLimiter)
	full("with five connections")
	if b.Packets("lan0", reason.Block) == blocked || b.Packets("lan0", reason.StateLimiter) == dropped {
		b.Error("of two rules with the limiter, one does not match, and the packets of the other are dropped")
	}
	b.Weir("load", b.Rules("block in on lan0 proto udp to port 9999\n"+limiterRules))
	full("after a load")
	b.Weir("load", b.Rules("set limit states 5000\n"+limiterRules))
	full("in new tables")
	if out := b.Weir("info"); !strings.Contains(out, "state limiter web id 1: limit 5, states 5, ") {
		b.Errorf("weir info:\n%s", out)
	}
	daemon.Kill()
	full("without a daemon")
	for _, p := range held {
		p.Kill()
	}
	b.Until(10*time.Second, "a connection is let in when others have ended", func() bool { ok, _ := lanOpens(b, second, 8002); return ok })
}
