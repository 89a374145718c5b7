package test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"weir/internal/fw/dataplane"
	"weir/internal/fw/rundir"
	"weir/internal/lab"
	"weir/test/lib"
)

//	lan ═══ ping -i 0.002 ═══▶ wan        fw: weir A is killed, weir B starts,
//	                                          weir C takes over from B
//
// Neither the death of a daemon nor the start of another loses a packet.
func TestDeathAndTakeOverLoseNothing(t *testing.T) {
	weir.InTurn(t, func(b *lib.Box) {
		a := b.WeirRun(gatewayConf(t))
		b.Ping(lab.LAN, wanHost, 2) // neighbours are known
		ping := b.Flood(lab.LAN, wanHost)
		time.Sleep(500 * time.Millisecond)
		a.Kill()
		time.Sleep(500 * time.Millisecond)
		second := b.WeirRun(gatewayConf(t))
		time.Sleep(500 * time.Millisecond)
		third := b.WeirRun(gatewayConf(t))
		if said := second.Wait(10*time.Second, 0); !strings.Contains(said, "takes over") {
			b.Errorf("the second daemon did not say who took over:\n%s", said)
		}
		if !third.Running() {
			b.Errorf("the third daemon ended:\n%s", third.Said())
		}
		time.Sleep(500 * time.Millisecond)
		ping.AllAnswered(1000)
	})
}

//	fw: weir A starts, weir B takes over, weir B is killed, weir C starts
//
// The dataplane hears a daemon's heartbeat for as long as the daemon lives, whatever
// rules it started with: without it, states look their routes up each second, and
// prefetching saves nothing. The dataplane waits three seconds for a heartbeat.
func TestHeartbeat(t *testing.T) {
	weir.UnderTCX(t, func(b *lib.Box) {
		lives := func(what string) {
			b.Helper()
			for range 9 {
				time.Sleep(500 * time.Millisecond)
				if d := b.Info().Daemon; !d.Alive {
					b.Fatalf("%s: weir info says that the daemon is dead:\n%s", what, b.Weir("info"))
				}
			}
		}
		for _, rules := range []string{gatewayConf(t), b.Rules("pass")} {
			b.WeirRun(rules)
			lives("a start or a takeover")
		}
		daemon := b.WeirRun(gatewayConf(t))
		daemon.Kill()
		b.Until(10*time.Second, "weir info says that the daemon is dead", func() bool { return !b.Info().Daemon.Alive })
		b.WeirRun(gatewayConf(t))
		lives("a start over a dead daemon's dataplane")
	})
}

//	lan ═══ 2,000 pings a second ═══▶ wan     fw: 20 loads, 5 take-overs
//
// Neither loads, of other rules or of the same, nor takeovers lose a packet. The same
// story runs under the other hook at the same time, which makes it harder.
func TestReloadsAndTakeOversLoseNothing(t *testing.T) {
	weir.BothAtOnce(t, func(b *lib.Box) {
		b.WeirRun(gatewayConf(t))
		_, other, anew := loads(b, gatewayText(t))
		var floods []*lib.Flood
		for _, to := range []string{wanHost, wanHost6} {
			b.Ping(lab.LAN, to, 2) // neighbours are known
			floods = append(floods, b.FloodEvery(lab.LAN, to, time.Millisecond))
		}
		for range lib.Fewer(4) {
			b.Weir("load", other)
			b.Weir("load", anew)
			b.Weir("load", gatewayConf(t))
		}
		for range lib.Fewer(3) {
			b.WeirRun(gatewayConf(t))
		}
		for _, f := range floods {
			f.AllAnsweredAtRate(1000)
		}
	})
}

// loads returns rule files: the rules, these and another one, which are loaded in place, and these
// with another option, for which all programs are loaded anew.
func loads(b *lib.Box, rules string) (same, other, anew string) {
	b.Helper()
	const more = "block in on wan0 inet proto tcp to (wan0) port 4711\n"
	return b.Rules(rules), b.Rules(rules + more), b.Rules("set spread lan0 auto\n" + rules + more)
}

//	lan ─── an idle TCP connection ─── wan      fw: load, kill -9, start
//
// A connection that was idle for a while, like ssh's, goes on after all that.
func TestIdleConnectionSurvives(t *testing.T) {
	weir.UnderTCX(t, func(b *lib.Box) {
		a := b.WeirRun(gatewayConf(t))
		b.Listen(lab.WAN, 2200, "socat", "-t", "30", "TCP4-LISTEN:2200,fork", "EXEC:cat")
		// Three lines with pauses: the connection is idle between them.
		talk := b.Start(lab.LAN, "sh", "-c",
			"(echo one; sleep 4; echo two; sleep 4; echo three; sleep 1) | socat -t 5 - TCP4:"+wanHost+":2200")
		b.Until(5*time.Second, "the first line is echoed", func() bool { return strings.HasPrefix(talk.Said(), "one\n") })
		_, _, anew := loads(b, gatewayText(t))
		b.Weir("load", anew)
		b.Until(10*time.Second, "the second line is echoed", func() bool { return strings.HasPrefix(talk.Said(), "one\ntwo\n") })
		a.Kill()
		b.WeirRun(gatewayConf(t))
		if got := talk.Wait(20*time.Second, 0); got != "one\ntwo\nthree\n" {
			b.Errorf("the echo said %q", got)
		}
	})
}

//	lan ═══ 20 × set limit states connections ═══▶ wan     fw: kill -9
//
// Without a daemon states are still made, expire and are released, without end.
func TestStatesTurnOverWithoutDaemon(t *testing.T) {
	const limit = 200
	rules := strings.Replace(gatewayText(t), "set limit states 100000",
		"set limit states 200\nset timeout { udp.first 1, udp.single 1, udp.multiple 1 }", 1)
	weir.BothAtOnce(t, func(b *lib.Box) {
		a := b.WeirRun(rules)
		b.Listen(lab.WAN, 9, "socat", "-u", "UDP4-RECVFROM:9,fork,reuseaddr", "/dev/null")
		a.Kill()
		made := b.Info().States.Inserts
		// A few sockets get the port of one whose state is still live.
		b.ManyUDP(lab.LAN, wanHost, 9, 21*limit, limit/2)
		info := b.Info()
		if got := info.States.Inserts - made; got < 20*limit {
			b.Errorf("%d states were made, want %d: %+v\n%s", got, 20*limit, info.States, b.Weir("info"))
		}
		if info.Daemon.Alive {
			b.Error("info says that the killed daemon lives")
		}
	})
}

//	fw: load of a file that is wrong, of one that is missing; with a dead daemon
//
// A file that does not load changes nothing. The error names the place.
func TestBadFileChangesNothing(t *testing.T) {
	t.Parallel()
	b := weir.Box(t, "tcx")
	a := b.WeirRun(gatewayConf(t))
	before := b.Weir("rules")
	bad := b.Rules("block all\npass in on lan0 proto tpc\n")
	out, status := b.WeirStatus("load", bad)
	if status != 1 || !strings.HasPrefix(out, bad+":2:") || !strings.Contains(out, "^") {
		t.Errorf("load of a bad file: status %d, said\n%s", status, out)
	}
	if out, status := b.WeirStatus("load", bad+".missing"); status != 1 {
		t.Errorf("load of a missing file: status %d, said\n%s", status, out)
	}
	if after := b.Weir("rules"); after != before {
		t.Errorf("the rules changed to\n%s", after)
	}
	second := b.WeirStart(bad)
	if said := second.Wait(lib.StartPatience, 1); !strings.Contains(said, bad+":2:") {
		t.Errorf("a second start with a bad file said\n%s", said)
	}
	if !a.Running() || b.Weir("rules") != before {
		t.Errorf("a second start with a bad file changed something:\n%s", a.Said())
	}
	a.Kill()
	if out, status := b.WeirStatus("load", gatewayConf(t)); status != 1 || !strings.Contains(out, "no daemon") {
		t.Errorf("load without a daemon: status %d, said\n%s", status, out)
	}
	if b.Weir("rules") != before {
		t.Error("the rules are gone with the daemon")
	}
}

//	fw: weir run (bad file), weir run, Ctrl-C, weir stop
//
// A first start records what it finds, and it is restored: at once after a bad file, else
// by weir stop. Meanwhile the reading commands need no daemon.
func TestStopRestoresSettings(t *testing.T) {
	weir.BothAtOnce(t, func(b *lib.Box) {
		if out, status := b.WeirStatus("info"); status != 1 || !strings.Contains(out, "Disabled") {
			b.Errorf("info before all: status %d, said\n%s", status, out)
		}
		b.Sysctl(lab.FW, "net/ipv4/conf/lan0/forwarding", "1")
		b.Sysctl(lab.FW, "net/ipv6/conf/wan0/accept_ra", "1")
		found := b.Machine(lab.FW)
		b.WeirStart("block all\nnonsense\n").Wait(lib.StartPatience, 1)
		b.SameMachine(lab.FW, found, "after a first start with a bad file")
		a := b.WeirRun(gatewayConf(t))
		if b.Machine(lab.FW) == found {
			b.Error("weir run changed nothing on the box")
		}
		a.Signal(syscall.SIGINT)
		a.Wait(10*time.Second, 0)
		b.Ping(lab.LAN, wanHost, 2)
		b.Weir("rules", "-v")
		b.Weir("states", "-v")
		b.Weir("info")
		out := b.Weir("stop")
		if !strings.Contains(out, "this box forwards IPv4 as it did before") {
			b.Errorf("stop said %q", out)
		}
		b.SameMachine(lab.FW, found, "after weir stop")
		if out, status := b.WeirStatus("stop"); status != 1 {
			b.Errorf("a second stop: status %d, said\n%s", status, out)
		}
	})
}

//	fw: weir A and weir B start at the same moment, weir C starts, weir stop
//
// Starts and stops of one namespace wait for each other. Two starts end like a takeover,
// and a stop ends a daemon that is still starting.
func TestConcurrentStartsAndStops(t *testing.T) {
	weir.UnderTCX(t, func(b *lib.Box) {
		found := b.Machine(lab.FW)
		both := []*lib.Process{b.WeirStart(gatewayConf(t)), b.WeirStart(gatewayConf(t))}
		b.Until(2*lib.StartPatience, "one of two has ended", func() bool { return !both[0].Running() || !both[1].Running() })
		first, second := both[0], both[1]
		if first.Running() {
			first, second = second, first
		}
		if said := first.Wait(time.Second, 0); !strings.Contains(said, "takes over") {
			b.Errorf("the first of two that started said\n%s", said)
		}
		b.Until(lib.StartPatience, "the second of two is ready", func() bool { return strings.Contains(second.Said(), "weir: ready") })
		b.Weir("stop")
		if said := second.Wait(10*time.Second, 0); !strings.Contains(said, "weir stop") || strings.Contains(said, "packets go on") {
			b.Errorf("the daemon that weir stop ended said\n%s", said)
		}

		third := b.WeirStart(gatewayConf(t))
		b.Until(lib.StartPatience, "the third has its run folder", func() bool {
			_, err := os.Stat(b.RunFolder())
			return err == nil
		})
		b.Weir("stop")
		third.Wait(10*time.Second, 0)
		b.SameMachine(lab.FW, found, "after a stop that met a start")
		if _, err := os.Stat(b.RunFolder()); !errors.Is(err, fs.ErrNotExist) {
			b.Errorf("the run folder is left: %v", err)
		}
	})
}

//	fw: weir A runs, another process replaces the dataplane, weir load, weir B starts
//
// A process that finds the dataplane locked waits, and no two wait for each other.
// Whichever comes first, the load succeeds and B takes over.
func TestLoadAndStartWaitForAnother(t *testing.T) {
	t.Parallel()
	b := weir.Box(t, "tcx")
	first := b.WeirRun(gatewayConf(t))
	pins, err := os.Open(filepath.Join(dataplane.Base, filepath.Base(b.RunFolder())))
	if err != nil {
		t.Fatal(err)
	}
	defer pins.Close()
	if err := syscall.Flock(int(pins.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	load := b.WeirCommand("load", b.Rules("pass\n"))
	second := b.WeirStart(gatewayConf(t))
	time.Sleep(time.Second)
	if !first.Running() || !load.Running() || !second.Running() {
		t.Fatalf("one did not wait: the daemon said\n%s\nload\n%s\nrun\n%s", first.Said(), load.Said(), second.Said())
	}
	if err := syscall.Flock(int(pins.Fd()), syscall.LOCK_UN); err != nil {
		t.Fatal(err)
	}
	first.Wait(lib.StartPatience, 0)
	load.Wait(lib.StartPatience, 0)
	b.Until(lib.StartPatience, "the second daemon is ready", func() bool { return strings.Contains(second.Said(), "weir: ready") })
}

//	fw: weir run is killed at moments of its start
//
// However far a start got, the box forwards nothing without evaluating the rules.
func TestKilledAtStartForwardsNothing(t *testing.T) {
	weir.UnderTCX(t, func(b *lib.Box) {
		for _, after := range []time.Duration{50, 100, 200, 400, 800} {
			p := b.WeirStart("block all\n")
			time.Sleep(after * time.Millisecond)
			p.Kill()
			if out, err := b.Try(lab.LAN, "ping", "-n", "-c", "2", "-i", "0.1", "-W", "1", wanHost); err == nil {
				b.Errorf("killed %d ms after its start, under block all, the box forwards:\n%s", after, out)
			}
		}
	})
}

//	lan ─── fw ─── wan          fw: no rule file
//
// Without rules nothing passes except neighbour discovery, the management port and what
// the box's programs send to each other.
func TestNothingLoaded(t *testing.T) {
	weir.BothAtOnce(t, func(b *lib.Box) {
		b.WeirBuiltin("--or-block", "--management", "2222")
		if out, status := b.WeirStatus("info"); status != 1 || !strings.Contains(out, "none loaded") {
			b.Errorf("info: status %d, said\n%s", status, out)
		}
		b.Listen(lab.FW, 2222, "socat", "-t", "30", "TCP-LISTEN:2222,fork", "EXEC:cat")
		if got := b.Run(lab.LAN, "sh", "-c", "echo hello | socat -t 30 - TCP4:"+fwLAN+":2222"); got != "hello\n" {
			b.Errorf("the management port said %q", got)
		}
		for _, to := range []string{"127.0.0.1", "::1", fwLAN} {
			b.Run(lab.FW, "ping", "-n", "-c", "1", "-W", "1", to)
		}
		if r := b.Rule("block"); r.File != rundir.Builtin || r.Line != 2 {
			b.Errorf("the rule that blocks is said to stand in %q, line %d", r.File, r.Line)
		}
		for _, to := range []string{fwLAN, wanHost, wanHost6} {
			if out, err := b.Try(lab.LAN, "ping", "-n", "-c", "1", "-W", "1", to); err == nil {
				b.Errorf("ping %s is answered:\n%s", to, out)
			}
		}
		file := b.Rules(gatewayText(t))
		b.Weir("load", filepath.Base(file)) // commands run in the folder of the file
		if got := b.Info().Loaded.File; got != file {
			b.Errorf("info names the file %q, want %q", got, file)
		}
		b.Ping(lab.LAN, wanHost, 2)
	})
}

// gatewayText returns the example's text.
func gatewayText(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile(gatewayConf(t))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
