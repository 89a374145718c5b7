package test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/lab"
	"weir/internal/testenv"
	"weir/test/lib"
)

// loginRules let nobody out who is not logged in, and nobody in who is banned.
const loginRules = `set skip on lo
match out on wan0 inet from (lan0:network) nat-to (wan0)
table <authpf_users> persist
table <sshguard> persist
block
block in quick from <sshguard>
anchor "f2b/*"
anchor "authpf/*"
pass in on lan0 proto tcp from (lan0:network) to (lan0) port { 22, 80 }
pass in on lan0 proto tcp from <authpf_users> to any port 81
pass out on wan0
`

// asPfctl returns a folder with a link named pfctl to weir, and one named weir.
func asPfctl(b *lib.Box) string {
	b.Helper()
	folder := b.TempDir()
	for _, name := range []string{"pfctl", "weir"} {
		if err := os.Symlink(string(weir), filepath.Join(folder, name)); err != nil {
			b.Fatal(err)
		}
	}
	return folder
}

// opens reports whether the LAN reaches a web server.
func opens(b *lib.Box, host string, port int) bool {
	b.Helper()
	_, err := b.Try(lab.LAN, "curl", "-s", "-m", "2", fmt.Sprintf("http://%s:%d/", host, port))
	return err == nil
}

// awaitOpens waits until the LAN reaches a web server, or no longer does.
func awaitOpens(b *lib.Box, when string, want bool) {
	b.Helper()
	b.Until(30*time.Second, when, func() bool {
		time.Sleep(100 * time.Millisecond)
		return opens(b, fwLAN, 80) == want
	})
}

// write appends lines to a file.
func write(b *lib.Box, path, text string) {
	b.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err == nil {
		_, err = f.WriteString(text)
		f.Close()
	}
	if err != nil {
		b.Fatal(err)
	}
}

// wrongLogins are what sshd writes when somebody guesses passwords.
func wrongLogins(from string) string {
	var text strings.Builder
	for n := range 5 {
		fmt.Fprintf(&text, "%s fw sshd[%d]: Failed password for root from %s port %d ssh2\n", time.Now().Format(time.Stamp), 100+n, from, 40000+n)
	}
	return text.String()
}

//	lan ── guesses passwords ──▶ fw: fail2ban, with its own action for pf, and weir as pfctl
//
// fail2ban as Debian has it bans a host whose failures it finds in a log, and lets it in
// again. A ban survives a load of the file and the daemon's death.
func TestFail2banItself(t *testing.T) {
	weir.UnderTCX(t, func(b *lib.Box) {
		testenv.NeedProgram(b, "fail2ban-server")
		b.ServeHello(lab.FW, 80)
		daemon := b.WeirRun(loginRules)
		folder, tools := b.TempDir(), asPfctl(b)
		log := filepath.Join(folder, "auth.log")
		write(b, log, "")
		b.Run(lab.FW, "cp", "-r", "/etc/fail2ban", folder)
		b.Run(lab.FW, "rm", "-rf", filepath.Join(folder, "fail2ban/jail.d"))
		write(b, filepath.Join(folder, "fail2ban/jail.local"), fmt.Sprintf("[DEFAULT]\nbanaction = pf\nbackend = polling\nignoreself = false\n[sshd]\nenabled = true\nport = 22,80\nmaxretry = 3\nlogpath = %s\n", log))
		// It would remember bans of other runs, in a file of the machine.
		write(b, filepath.Join(folder, "fail2ban/fail2ban.local"), "[Definition]\ndbfile = None\n")
		flags := []string{"-c", filepath.Join(folder, "fail2ban"), "-s", filepath.Join(folder, "sock"), "-p", filepath.Join(folder, "pid")}
		ask := func(words ...string) string {
			return b.Run(lab.FW, "fail2ban-client", append(flags[:len(flags):len(flags)], words...)...)
		}
		server := b.Start(lab.FW, "env", append([]string{"PATH=" + tools + ":" + os.Getenv("PATH"), "fail2ban-server", "-f", "--logtarget", "STDOUT"}, flags...)...)
		b.AwaitSaid(server, "Jail 'sshd' started")
		b.Until(20*time.Second, "the jail has its rules", func() bool { return strings.Contains(b.Weir("rules"), "<f2b-sshd>") })
		awaitOpens(b, "nobody is banned", true)
		write(b, log, wrongLogins(lanHost))
		awaitOpens(b, "the host is banned", false)
		if list := ask("status", "sshd"); !strings.Contains(list, "Banned IP list:\t"+lanHost) {
			b.Errorf("the status is\n%s", list)
		}
		b.Weir("load", b.Rules(loginRules+"# again\n"))
		daemon.Kill()
		b.WeirRun(loginRules + "# again\n")
		if opens(b, fwLAN, 80) {
			b.Error("the ban ended with a load or with the daemon")
		}
		ask("set", "sshd", "unbanip", lanHost)
		awaitOpens(b, "the host is no longer banned", true)
		ask("set", "sshd", "banip", lanHost)
		awaitOpens(b, "the host is banned by hand", false)
		ask("stop")
		server.Wait(30*time.Second, 0)
		if said := server.Said(); strings.Contains(said, "ERROR") {
			b.Errorf("fail2ban says\n%s", said)
		}
		awaitOpens(b, "fail2ban has stopped", true)
		if strings.Contains(b.Weir("rules"), "f2b-sshd") {
			b.Errorf("fail2ban has left\n%s", b.Weir("rules"))
		}
	})
}

//	lan ── guesses passwords ──▶ fw: sshguard with its own script for pf
//
// sshguard's programs, joined as its start script does, block a host for some seconds.
func TestSshguard(t *testing.T) {
	weir.UnderTCX(t, func(b *lib.Box) {
		const programs = "/usr/libexec/sshguard/"
		if _, err := os.Stat(programs + "sshg-fw-pf"); err != nil {
			testenv.SkipOutside(b, "sshguard is missing")
		}
		b.ServeHello(lab.FW, 80)
		b.WeirRun(loginRules)
		log := filepath.Join(b.TempDir(), "auth.log")
		write(b, log, "")
		guard := b.Start(lab.FW, "env", "PATH="+asPfctl(b)+":"+os.Getenv("PATH"), "sh", "-c",
			"tail -n 0 -F "+log+" | "+programs+"sshg-parser | "+programs+"sshg-blocker -a 30 -p 5 -s 60 -n 32 -N 128 | "+programs+"sshg-fw-pf")
		time.Sleep(2 * time.Second) // until it follows the log
		awaitOpens(b, "nobody is blocked", true)
		write(b, log, wrongLogins(lanHost))
		awaitOpens(b, "the host is blocked", false)
		awaitOpens(b, "the host is released", true)
		if said := guard.Said(); strings.Contains(said, "weir:") {
			b.Errorf("sshguard says\n%s", said)
		}
	})
}

//	lan ═══ ssh ═══▶ fw: dropbear, whose logins are examples/authlogin
//
// Somebody who logs in may go out. When the login ends, or is killed, nothing of it is left
// but the connections of rules without its label.
func TestAuthlogin(t *testing.T) {
	weir.UnderTCX(t, func(b *lib.Box) {
		testenv.NeedProgram(b, "dropbear")
		b.ServeHello(lab.WAN, 80)
		b.ServeHello(lab.WAN, 81)
		b.WeirRun(loginRules)
		folder, key := b.TempDir(), filepath.Join(b.TempDir(), "key")
		write(b, filepath.Join(folder, "authpf.rules"), "pass in on lan0 inet proto tcp from $user_ip to any port 80 label \"authpf\"\n")
		b.Run(lab.LAN, "dropbearkey", "-t", "ed25519", "-f", key)
		b.Run(lab.LAN, "sh", "-c", "dropbearkey -y -f "+key+" | grep ^ssh > "+key+".pub")
		// The server has mounts of its own, for the keys; the login has the machine's again.
		login := fmt.Sprintf("exec nsenter -m -t %d env PATH=%s:/usr/sbin:/usr/bin:/sbin:/bin AUTHLOGIN_FOLDER=%s %s/examples/authlogin", os.Getpid(), asPfctl(b), folder, testenv.Root(b))
		b.Listen(lab.FW, 22, "unshare", "--mount", "sh", "-c",
			"mount -t tmpfs -o mode=700 none ~root && mkdir -m 700 ~root/.ssh && cp "+key+".pub ~root/.ssh/authorized_keys && "+
				"cp "+key+" "+key+".host && exec dropbear -P "+key+".pid -F -E -s -c '"+login+"' -r "+key+".host -p 22")
		start := func() *lib.Process {
			p := b.Start(lab.LAN, "sh", "-c", "sleep 100 | dbclient -T -y -y -i "+key+" root@"+fwLAN)
			b.AwaitSaid(p, "Hello root. You are authenticated from "+lanHost)
			return p
		}
		gone := func(when string) {
			b.Helper()
			b.Until(20*time.Second, when, func() bool {
				return !strings.Contains(b.Weir("anchor", "list"), "authpf/") && b.Weir("table", "show", "-t", "authpf_users") == ""
			})
			if opens(b, wanHost, 80) || opens(b, wanHost, 81) {
				b.Errorf("%s: the LAN may go out", when)
			}
		}
		gone("before any login")
		first := start()
		if !opens(b, wanHost, 80) || !opens(b, wanHost, 81) {
			b.Errorf("logged in, but the LAN may not go out:\n%s", b.Weir("rules"))
		}
		open := b.Start(lab.LAN, "socat", "-u", "TCP4:"+wanHost+":80", "-")
		b.Until(10*time.Second, "a connection is open", func() bool { return len(b.States("label", "authpf", "host", wanHost)) > 0 })
		first.Kill()
		gone("the client was killed")
		if left := b.States("label", "authpf"); len(left) != 0 {
			b.Errorf("connections of the login go on: %v", left)
		}
		open.Kill()

		start()
		b.Run(lab.FW, "sh", "-c", "kill -9 $(cat /proc/[0-9]*/task/[0-9]*/children | tr ' ' '\\n' | while read -r p; do grep -qs '"+folder+"' /proc/$p/environ && grep -qs authlogin /proc/$p/cmdline && echo $p; done)")
		second := start()
		if list := b.Weir("anchor", "list"); strings.Count(list, "authpf/root(") != 1 {
			b.Errorf("the killed login has left its rules:\n%s", list)
		}
		second.Kill()
		gone("after all logins")
	})
}
