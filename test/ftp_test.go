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

// ftpRules pass nothing but the control connections of FTP, and what the proxies add.
const ftpRules = `set skip on lo
match out on wan0 from (lan0:network) nat-to (wan0)
block
anchor "ftp-proxy/*"
anchor "ftp-in/*"
pass in quick on lan0 inet proto tcp to port 21 divert-to 127.0.0.1 port 8021
pass in quick on lan0 inet6 proto tcp to port 21 divert-to ::1 port 8021
pass in quick on wan0 inet proto tcp to (wan0) port 21 divert-to 127.0.0.1 port 8022
pass out proto tcp from self to port 21
`

// ftpServer serves a folder by pyftpdlib to anybody, for both families.
const ftpServer = `
import sys
from pyftpdlib.authorizers import DummyAuthorizer
from pyftpdlib.handlers import FTPHandler
from pyftpdlib.servers import FTPServer
a = DummyAuthorizer()
a.add_anonymous(sys.argv[1], perm="elrw")
FTPHandler.authorizer = a
FTPServer(("::", 21), FTPHandler).serve_forever()
`

// ftpPackage is where Debian has pyftpdlib.
const ftpPackage = "/usr/lib/python3/dist-packages/pyftpdlib/servers.py"

func startFTP(b *lib.Box, host string) (folder string) {
	b.Helper()
	folder = b.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "file"), []byte(strings.Repeat(host+"\n", 200_000)), 0o644); err != nil {
		b.Fatal(err)
	}
	server := b.Start(host, "/usr/bin/python3", "-W", "ignore", "-c", ftpServer, folder)
	b.AwaitSaid(server, "starting FTP server")
	return folder
}

// ways are how a client asks for a data connection.
var ways = map[string][]string{
	"EPSV": nil,
	"PASV": {"--disable-epsv"},
	"EPRT": {"--ftp-port", "-"},
	"PORT": {"--ftp-port", "-", "--disable-eprt"},
}

// ftpTransfers fetches, lists and sends a file in each way.
func ftpTransfers(b *lib.Box, client, to, folder, serves string) {
	b.Helper()
	for way, flags := range ways {
		if strings.Contains(to, "[") && (way == "PASV" || way == "PORT") {
			continue // only for IPv4
		}
		curl := func(more ...string) string {
			out, err := b.Try(client, "curl", append(append([]string{"-s", "-S", "-m", "20"}, flags...), more...)...)
			if err != nil {
				b.Errorf("%s to %s, %v: %v\n%s", way, to, more, err, out)
			}
			return out
		}
		if got, want := len(curl("ftp://"+to+"/file")), 200_000*(len(serves)+1); got != want {
			b.Errorf("%s from %s: %d bytes, want %d", way, to, got, want)
		}
		if list := curl("ftp://" + to + "/"); !strings.Contains(list, " file") {
			b.Errorf("%s: the list of %s is %q", way, to, list)
		}
		name := fmt.Sprintf("sent-%s-%s", client, way)
		curl("-T", filepath.Join(folder, "file"), "ftp://"+to+"/"+name)
		if sent, err := os.Stat(filepath.Join(folder, name)); err != nil || sent.Size() != int64(200_000*(len(serves)+1)) {
			b.Errorf("%s to %s has sent %v, %v", way, to, sent, err)
			continue
		}
		os.Remove(filepath.Join(folder, name))
	}
}

//	lan: curl ── control, divert-to ──▶ fw: ftp-proxy ──▶ wan: pyftpdlib
//	lan ◀════════ data, either way, NAT ═════════════════▶ wan
//
// FTP works in all four ways, for both families, from behind NAT and to a server behind
// it. When a session is over, nothing is open.
func TestFTP(t *testing.T) {
	weir.UnderTCX(t, func(b *lib.Box) {
		if _, err := os.Stat(ftpPackage); err != nil {
			testenv.SkipOutside(b, "pyftpdlib is missing (package python3-pyftpdlib)")
		}
		outside, inside := startFTP(b, lab.WAN), startFTP(b, lab.LAN)
		b.WeirRun(ftpRules)
		if said, status := b.WeirStatus("ftp-proxy", "--anchor", "other"); status != 1 || !strings.Contains(said, `add to the rules: anchor "other/*"`) {
			b.Errorf("without an anchor in the rules: status %d, %s", status, said)
		}
		proxy := b.WeirCommand("ftp-proxy", "-v")
		b.AwaitSaid(proxy, "msg=ready")
		in := b.WeirCommand("ftp-proxy", "--listen", "127.0.0.1:8022", "--server", lanHost, "--anchor", "ftp-in")
		b.AwaitSaid(in, "msg=ready")

		ftpTransfers(b, lab.LAN, wanHost, outside, lab.WAN)
		ftpTransfers(b, lab.LAN, "["+wanHost6+"]", outside, lab.WAN)
		ftpTransfers(b, lab.WAN, fwWAN, inside, lab.LAN)

		b.Until(10*time.Second, "the sessions' anchors are empty", func() bool { return !strings.Contains(b.Weir("anchor", "list"), "ftp-") })
		for line := range strings.Lines(b.Weir("rules")) {
			if strings.Contains(line, "pass in quick inet") && !strings.Contains(line, "divert-to") {
				b.Errorf("a rule is left: %s", line)
			}
		}

		// The server of an active connection cannot be sent elsewhere.
		out := b.Run(lab.LAN, "/usr/bin/python3", "-c", fmt.Sprintf(`
from ftplib import FTP
f = FTP("%s", "anonymous", "x", timeout=10)
for command in ("PORT 203,0,113,1,4,1", "PORT 192,168,1,10,0,25", "EPRT |1|192.168.1.1|5000|"):
    try:
        print(f.sendcmd(command))
    except Exception as e:
        print(e)
print(f.sendcmd("NOOP"))
`, wanHost))
		if strings.Count(out, "501 ") != 3 || !strings.Contains(out, "200 ") {
			b.Errorf("a bounce is answered by %q", out)
		}

		// The proxy is killed; its session's rules go with the next start.
		idle := b.Start(lab.LAN, "/usr/bin/python3", "-c", fmt.Sprintf(`
from ftplib import FTP
import time
f = FTP("%s", "anonymous", "x", timeout=10)
print(f.sendcmd("EPSV"), flush=True)
time.sleep(60)
`, wanHost))
		b.AwaitSaid(idle, "229 ")
		if !strings.Contains(b.Weir("anchor", "list"), "ftp-proxy/") {
			b.Errorf("the session has no anchor:\n%s", b.Weir("anchor", "list"))
		}
		proxy.Kill()
		proxy = b.WeirCommand("ftp-proxy")
		b.AwaitSaid(proxy, "msg=ready")
		if list := b.Weir("anchor", "list"); strings.Contains(list, "ftp-proxy/") {
			b.Errorf("rules of the killed proxy are left:\n%s", list)
		}
		if got := b.Run(lab.LAN, "curl", "-s", "-S", "-m", "20", "ftp://"+wanHost+"/file"); len(got) != 200_000*len("wan\n") {
			b.Errorf("the new proxy: %d bytes", len(got))
		}
		in.Interrupt()
		in.Wait(10*time.Second, 0)
	})
}
