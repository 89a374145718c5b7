package test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"weir/internal/lab"
	"weir/test/lib"
)

// blocked is a ruleset that locks out whoever loads it.
const blocked = "block all\n"

// reaches reports whether lan reaches wan.
func reaches(b *lib.Box) bool {
	b.Helper()
	_, err := b.Try(lab.LAN, "ping", "-n", "-c", "1", "-W", "1", wanHost)
	return err == nil
}

// inForce returns the file in force, from weir info.
func inForce(b *lib.Box) string {
	b.Helper()
	return b.Info().Loaded.File
}

//	lan ─── an idle TCP connection ─── wan      fw: weir load --confirm, again and again
//
// A load to be confirmed rolls back by itself, even if something has died meanwhile.
// Connections go on.
func TestLoadRollsBack(t *testing.T) {
	weir.UnderTCX(t, func(b *lib.Box) {
		daemon := b.WeirRun(gatewayConf(t))
		lockout := b.Rules(blocked)
		idle := startTalk(b, "idle", lab.WAN, "TCP4-LISTEN:2201", lab.LAN, "TCP4:"+wanHost+":2201", 2201)
		idle.say(0, "one")

		load := b.WeirCommand("load", "--confirm", "10s", lockout)
		b.Until(lib.StartPatience, "the rules are in force", func() bool { return inForce(b) == lockout })
		load.Kill() // with the session that typed it
		if info := b.Info(); info.Rollback == nil || info.Rollback.Before != gatewayConf(t) {
			b.Errorf("info knows of no rollback: %+v", info.Rollback)
		}
		if reaches(b) {
			b.Error("a new connection passes under block all")
		}
		idle.say(0, "two") // its state is live under the new rules
		b.Until(lib.StartPatience, "the rules before are back", func() bool { return inForce(b) == gatewayConf(t) })
		if !reaches(b) {
			b.Errorf("nothing passes under the rules that are back:\n%s", daemon.Said())
		}
		if info := b.Info(); info.Rollback != nil {
			b.Errorf("info still knows of a rollback: %+v", info.Rollback)
		}
		idle.say(1, "three")

		// The daemon dies meanwhile: the next one rolls back, whatever its file
		// says.
		b.Weir("load", "--confirm", "1h", lockout)
		daemon.Kill()
		if out := b.Weir("info"); !strings.Contains(out, "Rollback: to "+gatewayConf(t)+" when the daemon starts") {
			b.Errorf("info said\n%s", out)
		}
		daemon = b.WeirRun(lockout)
		if !strings.Contains(daemon.Said(), "not confirmed") || inForce(b) != gatewayConf(t) || !reaches(b) {
			b.Errorf("a start after a load that was not confirmed: %s is in force:\n%s", inForce(b), daemon.Said())
		}
		if out, status := b.WeirStatus("confirm"); status != 1 || !strings.Contains(out, "no load is waiting") {
			b.Errorf("confirm where nothing waits: status %d, said\n%s", status, out)
		}
		idle.say(0, "four")

		// The daemon is told to end meanwhile: it rolls back first.
		b.Weir("load", "--confirm", "1h", lockout)
		daemon.Signal(syscall.SIGTERM)
		daemon.Wait(lib.StartPatience, 0)
		if info := b.Info(); info.Rollback != nil || info.Loaded.File != gatewayConf(t) || !reaches(b) {
			b.Errorf("a daemon that ended while a load waited left %s in force:\n%s", inForce(b), daemon.Said())
		}
	})
}

//	fw: weir load --confirm, weir confirm; two loads, of which one waits
//
// A confirmed load stays. Of two loads in a row the second counts, and the rules that
// were confirmed last come back.
func TestLoadIsConfirmed(t *testing.T) {
	t.Parallel()
	b := weir.Box(t, "tcx")
	daemon := b.WeirRun(gatewayConf(t))
	one, two := b.Rules("pass proto icmp\n"), b.Rules("pass proto icmp\npass proto udp\n")
	b.Weir("load", "--confirm", "5s", one)
	if out := b.Weir("confirm"); !strings.Contains(out, one) {
		b.Errorf("confirm said %q", out)
	}
	time.Sleep(6 * time.Second)
	if inForce(b) != one {
		b.Errorf("%s is in force after its confirmation:\n%s", inForce(b), daemon.Said())
	}

	b.Weir("load", "--confirm", "1h", two)
	b.Weir("load", "--confirm", "1s", gatewayConf(t))
	b.Until(lib.StartPatience, "the rules confirmed last are back", func() bool { return inForce(b) == one })

	b.Weir("load", "--confirm", "1h", two)
	if out, status := b.WeirStatus("load", "--confirm", "1h", b.Rules("nonsense\n")); status != 1 {
		b.Errorf("load of a wrong file: status %d, said\n%s", status, out)
	}
	if info := b.Info(); info.Rollback == nil || info.Rollback.Before != one || info.Loaded.File != two {
		b.Errorf("a load that failed has changed what waits: %+v", info.Rollback)
	}
	b.Weir("load", gatewayConf(t)) // without --confirm: nothing comes back
	if info := b.Info(); info.Rollback != nil {
		b.Errorf("a load that needs no confirmation has left %+v", info.Rollback)
	}

	// Without a daemon a load can still be confirmed.
	if out := b.Weir("load", "--json", "--confirm", "1h", two); !says(out, "file", two) || !says(out, "before", gatewayConf(t)) ||
		!says(out, "confirm_within_s", 3600.) || !says(out, "rules", 2.) {
		b.Errorf("load --json said %s", out)
	}
	daemon.Kill()
	if out := b.Weir("confirm", "--json"); !says(out, "file", two) {
		b.Errorf("confirm --json said %s", out)
	}
	b.WeirRun(filepath.Join(t.TempDir(), "missing.conf"), "--or-block")
	if inForce(b) != two {
		b.Errorf("%s is in force after a confirmation without a daemon", inForce(b))
	}
	if out, status := b.WeirStatus("load", "--confirm", "1ms", two); status != 2 {
		b.Errorf("a span of 1 ms: status %d, said\n%s", status, out)
	}
	if out := b.Weir("stop", "--json"); !says(out, "forwards_ipv4", false) || !says(out, "forwards_ipv6", false) {
		b.Errorf("stop --json said %s", out)
	}
}

// says reports whether a text is a JSON object with this value under this name.
func says(text, name string, value any) bool {
	var all map[string]any
	return json.Unmarshal([]byte(text), &all) == nil && all[name] == value
}
