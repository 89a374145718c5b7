package test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"weir/internal/lab"
	"weir/internal/testenv"
	"weir/test/lib"
)

// divertRules send the LAN's web traffic to a proxy, which speaks to the servers with its
// clients' addresses. Nobody reaches the proxy's own port.
const divertRules = `set skip on lo
block log
pass in on lan0 inet proto tcp to port 80 divert-to 127.0.0.1 port 8080
pass in on lan0 inet6 proto tcp to port 80 divert-to ::1 port 8080
pass in on lan0 inet proto udp to port 53 divert-to 127.0.0.1 port 5353
pass in on lan0 inet6 proto udp to port 53 divert-to ::1 port 5353
pass in on lan0 inet proto tcp to port 81 divert-to 127.0.0.1 port 8081
pass out on wan0 proto tcp to port 80 divert-reply
`

// proxyConf is HAProxy's: it takes connections to any address, and goes on to their
// destinations from the addresses of its clients.
const proxyConf = `global
	log stderr format raw local0
defaults
	mode tcp
	log global
	timeout connect 5s
	timeout client 30s
	timeout server 30s
listen v4
	bind 127.0.0.1:8080 transparent
	source 0.0.0.0 usesrc %[1]s
	server given *:0
listen v6
	bind [::1]:8080 transparent
	source ipv6@:::0 usesrc %[1]s
	server given *:0
`

const divertEcho = `
import socket, struct, threading
def serve(family, address):
    s = socket.socket(family, socket.SOCK_DGRAM)
    six = family == socket.AF_INET6
    level, option, original = (41, 75, 74) if six else (0, 19, 20)
    s.setsockopt(level, option, 1)
    s.setsockopt(level, original, 1)
    s.bind((address, 5353))
    while True:
        data, control, flags, peer = s.recvmsg(2000, 200)
        for _, kind, value in control:
            if kind != original:
                continue
            port = struct.unpack("!H", value[2:4])[0]
            to = socket.inet_ntop(family, value[8:24] if six else value[4:8])
            r = socket.socket(family, socket.SOCK_DGRAM)
            r.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            r.setsockopt(level, option, 1)
            r.bind((to, port))
            r.sendto(b"for " + to.encode() + b": " + data, peer)
            r.close()
threading.Thread(target=serve, args=(socket.AF_INET, "127.0.0.1")).start()
threading.Thread(target=serve, args=(socket.AF_INET6, "::1")).start()
`

// seesClient is a web server that says whom it sees, and goes on for 3 MB.
const seesClient = `
import http.server, socket
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        address, port = self.client_address[:2]
        body = f"seen from {address.removeprefix('::ffff:')} {port} ".encode() + 3000000 * b"x"
        self.send_response(200)
        self.send_header("Content-Length", len(body))
        self.end_headers()
        self.wfile.write(body)
class Server(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6
    def server_bind(self):
        self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()
Server(("::", 80), Handler).serve_forever()
`

//	lan ── curl ──▶ fw: HAProxy, with the server's address ── from lan's address ──▶ wan
//	lan ── dig  ──▶ fw: a program that answers for any server
//
// A transparent proxy takes what rules divert to it, for both families, and the server
// sees the client. While it is not there, nothing is forwarded, and no other service takes
// its connections. When it is back, it works again.
func TestDivert(t *testing.T) {
	weir.BothAtOnce(t, func(b *lib.Box) {
		testenv.NeedProgram(b, "haproxy")
		conf := filepath.Join(b.TempDir(), "haproxy.cfg")
		configure := func(as string) {
			if err := os.WriteFile(conf, fmt.Appendf(nil, proxyConf, as), 0o600); err != nil {
				b.Fatal(err)
			}
		}
		configure("clientip")
		b.Run(lab.WAN, "ip", "route", "add", "192.168.1.0/24", "via", fwWAN)
		b.Run(lab.WAN, "ip", "route", "add", "fd00:1::/64", "via", fwWAN6)
		b.Listen(lab.WAN, 80, "/usr/bin/python3", "-c", seesClient)
		b.Listen(lab.FW, 81, "socat", "TCP6-LISTEN:81,ipv6only=0,fork,reuseaddr", "SYSTEM:echo another service")
		whole := b // a subtest ends what it starts
		b.WeirRun(divertRules)
		proxy := b.Listen(lab.FW, 8080, "haproxy", "-db", "-f", conf)
		echo := b.Start(lab.FW, "/usr/bin/python3", "-c", divertEcho)
		b.Tell("tcp", func(b *lib.Box) { divertAll(b, 0) })
		b.Tell("udp", divertUDP)
		b.Tell("no socket", func(b *lib.Box) {
			for _, to := range []string{"TCP4:" + fwLAN + ":81", "TCP4:" + wanHost + ":81"} {
				if out, err := b.Try(lab.LAN, "socat", "-u", "-T", "1", to+",connect-timeout=1", "-"); err == nil || strings.Contains(out, "another") {
					b.Errorf("%s answers %q", to, out)
				}
			}
			if info := b.Weir("info"); !strings.Contains(info, "divert") {
				b.Errorf("no drop has the reason divert:\n%s", info)
			}
		})
		b.Tell("the proxy is killed", func(b *lib.Box) {
			load := b.Start(lab.LAN, "curl", "-s", "-m", "20", "--limit-rate", "100k", "-o", "/dev/null", "http://"+wanHost+"/")
			time.Sleep(500 * time.Millisecond) // under traffic
			proxy.Kill()
			b.Until(25*time.Second, "the client sees the end", func() bool { return !load.Running() })
			if out, err := b.Try(lab.LAN, "curl", "-s", "-m", "2", "http://"+wanHost+"/"); err == nil {
				b.Errorf("answered without the proxy: %.60q", out)
			}
			configure("client") // and port
			whole.Listen(lab.FW, 8080, "haproxy", "-db", "-f", conf)
			for port := range 3 { // as the client's
				divertAll(b, 40000+port)
			}
		})
		b.Tell("the rules are loaded again", func(b *lib.Box) {
			b.Weir("load", b.Rules(divertRules+"pass in on lan0 proto tcp to port 22\n"))
			divertAll(b, 0)
			divertUDP(b)
		})
		b.Tell("without such rules", func(b *lib.Box) {
			if rules := b.Run(lab.FW, "ip", "rule"); !strings.Contains(rules, "fwmark") {
				b.Errorf("no routing rule:\n%s", rules)
			}
			b.Weir("load", b.Rules("set skip on lo\npass\n"))
			for _, family := range []string{"-4", "-6"} {
				if rules := b.Run(lab.FW, "ip", family, "rule"); strings.Contains(rules, "fwmark") {
					b.Errorf("the routing rule stays:\n%s", rules)
				}
			}
			if out := b.Run(lab.LAN, "curl", "-s", "-m", "5", "http://"+wanHost+"/"); !strings.Contains(out, "seen from") {
				b.Errorf("forwarded: %.60q", out)
			}
		})
		b.Tell("weir stops", func(b *lib.Box) {
			b.Weir("load", b.Rules(divertRules))
			b.Weir("stop")
			if rules := b.Run(lab.FW, "ip", "rule"); strings.Contains(rules, "fwmark") {
				b.Errorf("the routing rule stays:\n%s", rules)
			}
		})
		if !echo.Running() {
			b.Errorf("the program has ended:\n%s", echo.Said())
		}
	})
}

// divertAll fetches by the proxy. port: the client's, which the server is to see; 0: any.
func divertAll(b *lib.Box, port int) {
	b.Helper()
	for at, c := range []struct{ url, seen string }{
		{"http://" + wanHost + "/", "seen from " + lanHost + " "}, {"http://[" + wanHost6 + "]/", "seen from fd00:1:"},
	} {
		args := []string{"-sS", "-m", "10", c.url}
		if port != 0 {
			port += 100 * at
			args = append(args, "--local-port", strconv.Itoa(port))
		}
		out, err := b.Try(lab.LAN, "curl", args...)
		if err != nil || len(out) < 3000000 || !strings.HasPrefix(out, c.seen) || port != 0 && !strings.Contains(out[:100], fmt.Sprintf(" %d x", port)) {
			b.Errorf("%s: %d bytes, %.60q, %v", c.url, len(out), out, err)
		}
	}
}

func divertUDP(b *lib.Box) {
	b.Helper()
	for _, c := range []struct{ to, address string }{
		{"UDP4:" + wanHost, wanHost}, {"UDP6:[" + wanHost6 + "]", wanHost6}, {"UDP4:198.51.100.77", "198.51.100.77"},
	} {
		var out string
		b.Until(5*time.Second, fmt.Sprintf("%s answers", c.to), func() bool {
			out, _ = b.Try(lab.LAN, "sh", "-c", "echo hello | socat -t 1 - "+c.to+":53")
			return out == "for "+c.address+": hello\n"
		})
	}
}
