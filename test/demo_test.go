package test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"weir/internal/fw/dataplane"
	"weir/internal/fw/rundir"
	"weir/internal/host/netif"
	"weir/internal/lab"
	"weir/internal/testenv"
	"weir/test/lib"
)

// demoPatience is how long a whole demo may take, including its measurement.
const demoPatience = 2 * time.Minute

// A demonstration is a weir demo without the measurement. That takes all cores, so it and
// the other stories would disturb each other. TestBenchKilled and internal/bench test it.
type demonstration struct {
	*lib.Process
	b       *lib.Box
	name    string
	dir     string          // its TMPDIR, and so in the environment of everything it starts
	cookies map[uint64]bool // of its firewalls so far
}

// demonstrate starts a demo. programs come first in its PATH.
func demonstrate(t *testing.T, programs string) *demonstration {
	t.Helper()
	b := weir.Box(t, "tcx") // only to look at processes; the demo builds its own lab
	for _, p := range []string{"ping", "iperf3", "curl"} {
		testenv.NeedProgram(b, p)
	}
	d := &demonstration{b: b, name: b.Namespace("demo"), dir: t.TempDir(), cookies: make(map[uint64]bool)}
	cmd := exec.Command(string(weir), "demo", "--no-bench", "--name", d.name)
	cmd.Env = append(os.Environ(), "TMPDIR="+d.dir, "PATH="+programs+":"+os.Getenv("PATH"))
	t.Cleanup(func() {
		if _, err := lab.Remove(d.name, lab.Topology{}); err != nil {
			t.Errorf("remove the demo's lab: %v", err)
		}
	})
	d.Process = b.StartHere(cmd)
	return d
}

// look notes the demo's firewall by its cookie, which is in the names of weir's folders.
func (d *demonstration) look() {
	l, err := lab.Open(d.name, lab.Topology{})
	if err != nil {
		return // not yet, or gone
	}
	_ = l.Do(lab.FW, func() error {
		cookie, err := netif.Cookie()
		if err == nil {
			d.cookies[cookie] = true
		}
		return err
	})
}

// await waits until the demo has printed a text.
func (d *demonstration) await(text string) {
	d.b.Helper()
	d.b.AwaitSaid(d.Process, text)
	d.look()
}

// leavesNothing fails if anything is left of a demo that has shown this many gateways.
func (d *demonstration) leavesNothing(gateways int) {
	d.b.Helper()
	if len(d.cookies) != gateways {
		d.b.Errorf("%d gateways were seen, want %d", len(d.cookies), gateways)
	}
	patterns := []string{"/run/netns/" + d.name + "*", filepath.Join(d.dir, "*")}
	for cookie := range d.cookies {
		patterns = append(patterns, string(rundir.FolderOf(cookie)), filepath.Join(dataplane.Base, fmt.Sprint(cookie)))
	}
	for _, pattern := range patterns {
		if left, err := filepath.Glob(pattern); err != nil || len(left) > 0 {
			d.b.Errorf("left of the demo: %v, %v", left, err)
		}
	}
	// A process that was killed a moment ago may still be visible.
	d.b.Until(5*time.Second, "the demo's processes have ended", func() bool {
		left, err := filepath.Glob("/proc/[0-9]*/environ")
		if err != nil {
			d.b.Fatal(err)
		}
		for _, file := range left {
			if text, err := os.ReadFile(file); err == nil && strings.Contains(string(text), "TMPDIR="+d.dir) {
				return false
			}
		}
		return true
	})
}

// TestDemo runs the whole demo: every check under each hook, and then nothing of it is
// left.
func TestDemo(t *testing.T) {
	t.Parallel()
	d := demonstrate(t, "")
	for deadline := time.Now().Add(lib.Scaled(demoPatience)); d.Running() && time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		d.look()
	}
	said := d.Wait(time.Second, 0)
	for _, text := range []string{
		"a host of the LAN pings the internet: IPv4 and IPv6, 3 of 3 answered each",
		"the server saw the gateway's " + fwWAN + "\n",
		"the server saw the gateway's " + fwWAN6 + "\n",
		"the server in the LAN can be reached by the port forward: " + fwWAN + " port 8080",
		"the internet cannot reach the gateway's ssh: blocked, counted under rule",
		"the LAN cannot use telnet: blocked, counted under rule",
		"packets go on without the daemon: after kill -9, 20 of 20 pings answered",
		"    all icmp " + fwWAN + ":",
	} {
		tcx, xdp, both := strings.Cut(said, "\nxdp: lan --- fw --- wan, offloads off")
		if !both || !strings.Contains(tcx, text) || !strings.Contains(xdp, text) {
			t.Errorf("not under each hook: %s\n%s", text, said)
		}
	}
	d.leavesNothing(2)
}

// TestDemoInterrupted presses Ctrl-C, which reaches all programs at a terminal, and also
// ends the demo alone, as a service manager would. Both happen while weir starts, and
// during the checks. A killed iperf3 leaves a file.
func TestDemoInterrupted(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		after string
		end   func(*lib.Process)
	}{
		"in the start":    {"tcx: lan --- fw --- wan", (*lib.Process).Interrupt},
		"amid the checks": {"  ok    a host of the LAN pings", (*lib.Process).Interrupt},
		"alone":           {"  ok    a host of the LAN pings", func(p *lib.Process) { p.Signal(syscall.SIGTERM) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := demonstrate(t, "")
			d.await(test.after)
			test.end(d.Process)
			if said := d.Wait(30*time.Second, 1); !strings.HasSuffix(said, "\nweir: under tcx: interrupted\n") {
				t.Errorf("interrupted, it said\n%s", said)
			}
			d.leavesNothing(1)
		})
	}
}

// TestDemoFails removes the internet's address when the LAN is about to ping it. This
// check fails and is the last one, and the demo's status shows it.
func TestDemoFails(t *testing.T) {
	t.Parallel()
	ping, programs := testenv.NeedProgram(t, "ping"), t.TempDir()
	// It comes before ping in PATH: only then is it certain which check comes next.
	const breaks = "#!/bin/sh\nip -n \"$(ip netns identify | sed 's/-lan$/-wan/')\" address flush dev eth0\nexec %s \"$@\"\n"
	testenv.WriteProgram(t, filepath.Join(programs, "ping"), fmt.Appendf(nil, breaks, ping))
	d := demonstrate(t, programs)
	d.await("tcx: lan --- fw --- wan")
	said := d.Wait(time.Minute, 1)
	if !strings.Contains(said, "  FAIL  a host of the LAN pings the internet\n") || strings.Contains(said, "  ok ") ||
		!strings.Contains(said, "\nweir: under tcx: a host of the LAN pings the internet: ") {
		t.Errorf("with a check that fails it said\n%s", said)
	}
	d.leavesNothing(1)
}
