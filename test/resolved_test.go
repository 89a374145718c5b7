package test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/fw/control"
	"weir/internal/lab"
	"weir/internal/testenv"
	"weir/test/lib"
)

// unpackedResolved is where script/bootstrap unpacks systemd-resolved: installing it would give the machine another resolv.conf.
const unpackedResolved = "../.build/systemd-resolved"

// A resolved is systemd-resolved in fw, with a bus of its own.
type resolved struct {
	b       *lib.Box
	program string
	control string // resolvectl
	dir     string
	process *lib.Process
}

// startResolved starts systemd-resolved and its bus.
func startResolved(b *lib.Box) *resolved {
	b.Helper()
	testenv.NeedProgram(b, "dbus-daemon")
	r := &resolved{b: b, dir: b.TempDir()}
	for _, place := range [][2]string{{"/", "lib"}, {unpackedResolved, "lib"}, {unpackedResolved, "usr/lib"}} {
		root, err := filepath.Abs(place[0])
		if err != nil {
			b.Fatal(err)
		}
		program := filepath.Join(root, place[1], "systemd/systemd-resolved")
		if r.program == "" && exec.Command(program, "--version").Run() == nil { // its library may be missing
			r.program, r.control = program, filepath.Join(root, "usr/bin/resolvectl")
		}
	}
	if r.program == "" {
		testenv.SkipOutside(b, "systemd-resolved does not run here, neither installed nor from %s", unpackedResolved)
	}
	for _, one := range []struct{ name, text string }{ // nobody's number, as the bus has to know it
		{"passwd", "systemd-resolve:x:65534:65534::/:/usr/sbin/nologin\n"},
		{"group", "systemd-resolve:x:65534:\n"},
	} {
		has, err := os.ReadFile("/etc/" + one.name)
		if err == nil {
			err = os.WriteFile(filepath.Join(r.dir, one.name), append(has, one.text...), 0o644)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	bus := fmt.Sprintf(`<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-BUS Bus Configuration 1.0//EN" "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>system</type><listen>unix:path=%s</listen><auth>EXTERNAL</auth><policy context="default">
<allow user="*"/><allow own="*"/><allow send_destination="*"/><allow receive_sender="*"/></policy></busconfig>
`, r.socket())
	if err := os.WriteFile(filepath.Join(r.dir, "bus.conf"), []byte(bus), 0o644); err != nil {
		b.Fatal(err)
	}
	for dir := r.dir; dir != "/"; dir = filepath.Dir(dir) { // systemd-resolved leaves root behind
		if err := os.Chmod(dir, 0o755|os.ModeSticky&mode(b, dir)|mode(b, dir).Perm()); err != nil {
			b.Fatal(err)
		}
		if dir == os.TempDir() {
			break
		}
	}
	b.Start(lab.FW, "dbus-daemon", "--config-file="+filepath.Join(r.dir, "bus.conf"), "--nofork", "--nopidfile")
	b.Until(5*time.Second, "the bus listens", func() bool { _, err := os.Stat(r.socket()); return err == nil })
	r.start()
	return r
}

func mode(b *lib.Box, path string) os.FileMode {
	b.Helper()
	i, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	return i.Mode()
}

func (r *resolved) socket() string { return filepath.Join(r.dir, "bus") }

// variables are those under which resolvectl finds it.
func (r *resolved) variables() []string {
	return []string{"DBUS_SYSTEM_BUS_ADDRESS=unix:path=" + r.socket(), "PATH=" + filepath.Dir(r.control) + ":" + os.Getenv("PATH")}
}

// start starts the program, which knows what it has been told before, as its unit has it.
func (r *resolved) start() {
	r.b.Helper()
	r.process = r.b.Start(lab.FW, "unshare", "--mount", "sh", "-ec", fmt.Sprintf(`
mount --make-rprivate /
mount --bind %[1]s/passwd /etc/passwd
mount --bind %[1]s/group /etc/group
mkdir -p /run/systemd %[1]s/run
mount --bind %[1]s/run /run/systemd
export DBUS_SYSTEM_BUS_ADDRESS=unix:path=%[1]s/bus
exec %[2]s`, r.dir, r.program))
	r.b.Until(10*time.Second, "systemd-resolved answers", func() bool {
		_, err := r.try("status")
		if !r.process.Running() {
			r.b.Fatalf("systemd-resolved has ended:\n%s", r.process.Said())
		}
		return err == nil
	})
}

func (r *resolved) try(args ...string) (string, error) {
	return r.b.Try(lab.FW, "env", append(append(r.variables(), r.control), args...)...)
}

// knows reports whether ppp0 has the name server, for all names.
func (r *resolved) knows(server string) bool {
	r.b.Helper()
	out, err := r.try("status", "ppp0")
	return err == nil && strings.Contains(out, "DNS Servers: "+server+"\n") && strings.Contains(out, "DNS Domain: ~.") && strings.Contains(out, "+DefaultRoute")
}

// knowsNone reports whether it has none.
func (r *resolved) knowsNone() bool {
	r.b.Helper()
	out, err := r.try("status", "ppp0")
	return err == nil && !strings.Contains(out, "DNS Server") && !strings.Contains(out, "~.")
}

//	fw: systemd-resolved, resolvectl ══ ppp0 in a PPPoE session ══ wan: a concentrator, dnsmasq
//
// systemd-resolved is told of the name servers of the session, and asks them. It is told of their end, and again after whatever made it
// forget them.
func TestPPPoEResolved(t *testing.T) {
	weir.UnderTCX(t, func(b *lib.Box) {
		r := startResolved(b)
		const server, name, address = "192.0.2.53", "www.example.net", "192.0.2.80"
		p, password := b.Provider(1500)
		b.IP(lab.FW, "route del default", "-6 route del default")
		rules := b.Rules(fmt.Sprintf("pppoe ppp0 on wan0 user me password file %q dns resolved\npass\n", password))
		run := func() (*lib.Process, control.PPPoE) {
			b.Helper()
			daemon := b.WeirUnderAll(r.variables(), "run", "--hook", b.Hook, "-f", rules)
			b.AwaitSaid(daemon, "weir: ready")
			up := awaitPPPoE(b, control.PPPoEUp)
			p.Await(up.Session)
			return daemon, up
		}
		told := func(b *lib.Box, what string) {
			b.Helper()
			b.Until(15*time.Second, "systemd-resolved has the name server "+what, func() bool { return r.knows(server) })
		}
		daemon, _ := run()
		told(b, "of the session")
		b.Address(lab.WAN, "isp0", server+"/32")
		b.Start(lab.WAN, "dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--no-resolv", "--no-hosts", "--user=root", "--pid-file",
			"--bind-interfaces", "--listen-address="+server, "--host-record="+name+","+address)
		b.Until(10*time.Second, "a name is found there", func() bool {
			out, err := r.try("query", "--cache=no", name)
			return err == nil && strings.Contains(out, address) && strings.Contains(out, "link: ppp0")
		})
		b.Tell("the session ends and comes back", func(b *lib.Box) {
			b.Weir("pppoe", "down", "ppp0")
			b.Until(15*time.Second, "systemd-resolved has no name server", r.knowsNone)
			b.Weir("pppoe", "reconnect", "ppp0")
			told(b, "of the next session")
		})
		b.Tell("another daemon", func(b *lib.Box) {
			daemon.Kill()
			if !r.knows(server) {
				b.Error("the end of the daemon has changed the name servers")
			}
			daemon, _ = run()
			told(b, "still")
		})
		b.Tell("systemd-resolved starts again", func(b *lib.Box) {
			r.process.Kill()
			r.start()
			told(b, "as before")
		})
		b.Tell("systemd-resolved was not there", func(b *lib.Box) {
			r.process.Kill()
			b.Weir("pppoe", "reconnect", "ppp0")
			time.Sleep(5 * time.Second)
			r.start()
			told(b, "of the session meanwhile")
		})
		b.Tell("somebody removes the interface", func(b *lib.Box) {
			b.IP(lab.FW, "link del ppp0")
			b.Until(20*time.Second, "it is there again", func() bool {
				_, err := b.Try(lab.FW, "ping", "-n", "-c", "1", "-W", "0.3", lib.ProviderPeer)
				return err == nil
			})
			told(b, "of the new interface")
		})
		b.Tell("another file", func(b *lib.Box) {
			b.Weir("load", b.Rules(fmt.Sprintf("pppoe ppp0 on wan0 user me password file %q\npass\n", password)))
			b.Until(15*time.Second, "systemd-resolved has no name server", r.knowsNone)
			b.Weir("load", rules)
			told(b, "again")
		})
		b.Tell("weir stops and starts", func(b *lib.Box) {
			b.Weir("stop")
			run()
			told(b, "of the new interface")
		})
	})
}
