package test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/fw/rundir"
	"weir/internal/lab"
	"weir/test/lib"
)

//	lan ─── ssh port, ping ─── fw         fw: weir run --or-block, file wrong
//
// The boot unit's weir keeps running with a file that does not load. Everything except
// the management port is blocked until a file loads. If rules are in force, they stay
// instead.
func TestOrBlock(t *testing.T) {
	weir.UnderTCX(t, func(b *lib.Box) {
		first := b.WeirRun("block all\nnonsense\n", "--or-block", "--management", "2222")
		for _, part := range []string{":2:1: ", "do not load", "blocked but lo and the management port"} {
			if !strings.Contains(first.Said(), part) {
				b.Errorf("weir run does not say %q:\n%s", part, first.Said())
			}
		}
		b.Listen(lab.FW, 2222, "socat", "-t", "30", "TCP-LISTEN:2222,fork", "EXEC:cat")
		if got := b.Run(lab.LAN, "sh", "-c", "echo hello | socat -t 30 - TCP4:"+fwLAN+":2222"); got != "hello\n" {
			b.Errorf("the management port said %q", got)
		}
		for _, to := range []string{fwLAN, wanHost} {
			if out, err := b.Try(lab.LAN, "ping", "-n", "-c", "1", "-W", "1", to); err == nil {
				b.Errorf("ping %s is answered:\n%s", to, out)
			}
		}
		if out, status := b.WeirStatus("load", b.Rules("nonsense\n")); status != 1 {
			b.Errorf("load of another wrong file: status %d, said\n%s", status, out)
		}
		b.Weir("load", gatewayConf(t))
		b.Ping(lab.LAN, wanHost, 2)

		first.Kill()
		second := b.WeirRun(filepath.Join(t.TempDir(), "missing.conf"), "--or-block")
		if !strings.Contains(second.Said(), "rules in force stay") {
			b.Errorf("weir run over rules in force said\n%s", second.Said())
		}
		if got := b.Info().Loaded.File; got != gatewayConf(t) {
			b.Errorf("info names the file %q, want %q", got, gatewayConf(t))
		}
		b.Ping(lab.LAN, wanHost, 2)
	})
}

// fw: weir run without a file, and with nothing in force: refused, and nothing is attached
func TestNoFile(t *testing.T) {
	t.Parallel()
	b := weir.Box(t, "tcx")
	said, status := b.WeirStatus("run", "--hook", "tcx")
	if status != 1 || !strings.Contains(said, "there is no /etc/weir/weir.conf: write one, name one with -f, or give --or-block") {
		b.Errorf("status %d:\n%s", status, said)
	}
	b.Ping(lab.LAN, fwLAN, 1)
}

//	fw: weir load a file, rm the file, kill -9, weir run without a file
//
// The loaded rules are recorded beside the pins: a restart does not need the file.
func TestRulesOutliveTheirFile(t *testing.T) {
	weir.UnderTCX(t, func(b *lib.Box) {
		first := b.WeirBuiltin("--or-block")
		file := b.Rules(gatewayText(t))
		b.Weir("load", file)
		rules := b.Weir("rules")
		if err := os.Remove(file); err != nil {
			b.Fatal(err)
		}
		first.Kill()
		b.WeirBuiltin()
		if b.Weir("rules") != rules || b.Info().Loaded.File != file {
			b.Errorf("a start without a file has other rules:\n%s", b.Weir("info"))
		}
		b.Ping(lab.LAN, wanHost, 2)
	})
}

// queuedRules are a gateway's with FreeBSD's queues. Nobody knows the rate of the last one.
const queuedRules = `altq on wan0 priq bandwidth 100Mb queue { voice, bulk }
queue voice priority 7
queue bulk priq(default)
altq on lan0 priq queue fair
queue fair priq(default)
block
pass in on lan0 queue voice
pass out on wan0 nat-to (wan0) queue (bulk, voice)
`

// fw: weir load of a file with queues, one of which cannot be in force: refused; --without queues: in force, and shown,
// also after kill -9 and weir run without a file
func TestWithoutQueues(t *testing.T) {
	t.Parallel()
	b := weir.Box(t, "tcx")
	first := b.WeirBuiltin("--or-block")
	file := b.Rules(queuedRules)
	said, status := b.WeirStatus("load", file)
	if status != 1 || !strings.Contains(said, "this version does not enforce altq without bandwidth, or with a part of the interface's; give it the bandwidth of the line, or --without queues loads the file") {
		b.Errorf("status %d:\n%s", status, said)
	}
	if said, status := b.WeirStatus("load", "--without", "queues", file); status != 0 ||
		!strings.Contains(said, "warning: altq and all else about queues has no effect: --without queues") {
		b.Errorf("status %d:\n%s", status, said)
	}
	b.Ping(lab.LAN, wanHost, 2)
	first.Kill()
	b.WeirBuiltin()
	if info := b.Weir("info"); !strings.Contains(info, "3 rules, loaded ") || !strings.Contains(info, ", without queues\n") {
		b.Errorf("weir info after a new start:\n%s", info)
	}
	b.Ping(lab.LAN, wanHost, 2)
}

//	fw: weir run --or-block, then dmz0 appears and gets its address
//
// At boot a file may name interfaces and networks that do not exist yet. weir retries
// when they appear.
func TestFileWaitsForItsInterfaces(t *testing.T) {
	t.Parallel()
	b := weir.Box(t, "tcx")
	p := b.WeirRun("pass from dmz0:network\n", "--or-block")
	if out, _ := b.WeirStatus("info"); !strings.Contains(out, "none loaded") {
		b.Fatalf("the file loaded without its interface:\n%s\n%s", p.Said(), out)
	}
	b.Run(lab.FW, "ip", "link", "add", "dmz0", "type", "veth", "peer", "name", "dmz1")
	b.Run(lab.FW, "ip", "address", "add", "10.9.9.1/24", "dev", "dmz0")
	b.Run(lab.FW, "ip", "link", "set", "dmz0", "up")
	b.Until(lib.StartPatience, "the file has loaded", func() bool { return strings.Contains(p.Said(), "weir: loaded") })
	if r := b.Rule("10.9.9.0/24"); r.Line != 1 {
		b.Errorf("the rule is %+v", r)
	}
}

//	fw: weir run is killed once it has raised the guard, weir stop
//
// The changes of a start are undone even if it got no further.
func TestStopAfterAKilledStart(t *testing.T) {
	t.Parallel()
	b := weir.Box(t, "tcx")
	found := b.Machine(lab.FW)
	p := b.WeirStart("block all\n")
	b.Until(lib.StartPatience, "the guard stands", func() bool {
		_, err := b.Try(lab.FW, "nft", "list", "table", "inet", "weir")
		return err == nil
	})
	p.Kill()
	if _, err := os.Stat(filepath.Join(b.RunFolder(), "found.json")); err != nil {
		b.Errorf("nothing was written down: %v", err)
	}
	b.Weir("stop")
	b.SameMachine(lab.FW, found, "after a start that was killed, and weir stop")
	if entries, err := os.ReadDir(rundir.Root); err == nil {
		for _, e := range entries {
			if e.Name() == filepath.Base(b.RunFolder()) {
				b.Error("the run folder is left")
			}
		}
	}
}

//	fw: weir stop, which cannot restore a setting; again, when it can
//
// The guard and the programs stay until forwarding is as it was found.
func TestStopEndsAtAFailure(t *testing.T) {
	t.Parallel()
	b := weir.Box(t, "tcx")
	found := b.Machine(lab.FW)
	b.WeirRun(gatewayConf(t))
	record := rundir.Folder(b.RunFolder()).Found()
	text, err := os.ReadFile(record)
	if err != nil {
		b.Fatal(err)
	}
	wrong := strings.ReplaceAll(string(text), `"value": "0"`, `"value": "nonsense"`)
	if err := os.WriteFile(record, []byte(wrong), 0o600); err != nil {
		b.Fatal(err)
	}
	if out, status := b.WeirStatus("stop"); status != 1 || !strings.Contains(out, "forwarding") {
		b.Errorf("weir stop: status %d, said\n%s", status, out)
	}
	b.Run(lab.FW, "nft", "list", "table", "inet", "weir")
	if h := b.Hooks()["lan0"]; h.Hook != "tcx" {
		b.Errorf("lan0 has %+v", h)
	}
	b.Ping(lab.LAN, wanHost, 2)
	if err := os.WriteFile(record, text, 0o600); err != nil {
		b.Fatal(err)
	}
	b.Weir("stop")
	b.SameMachine(lab.FW, found, "after weir stop")
}
