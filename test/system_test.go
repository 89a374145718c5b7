package test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/lab"
	"weir/test/lib"
)

// systemFile has what Linux and nmap send, for IPv4 and IPv6.
const systemFile = `# window:TTL:DF:size:options:class:version:subtype:description
S44:64:1:60:M*,S,T,N,W*:Linux:6.x::Linux by its own stack
S45:64:1:60:M*,S,T,N,W*:Linux:6.x:ipv6:its MSS is 20 smaller
1024:64:0:44:M*:NMAP:syn scan::nmap -sS
`

const systemRules = `
set skip on lo
set fingerprints "%s"
match out on wan0 inet from (lan0:network) nat-to (wan0)
match out on wan0 inet6 from (lan0:network) nat-to (wan0)
block
pass out
pass in on lan0 proto { icmp icmp6 }
pass in on lan0 proto tcp from any os "%s" to port 8000
`

//	lan ── curl, nmap ──▶ fw: pass … os "Linux" ──▶ wan: a web server
//
// Linux's own SYNs pass, nmap's do not, and the other way round.
func TestSystems(t *testing.T) {
	weir.UnderTCX(t, func(b *lib.Box) {
		file := filepath.Join(t.TempDir(), "pf.os")
		if err := os.WriteFile(file, []byte(systemFile), 0o600); err != nil {
			b.Fatal(err)
		}
		b.Listen(lab.WAN, 8000, "socat", "TCP6-LISTEN:8000,fork,reuseaddr", "SYSTEM:echo hello")
		scan := func(want string, to ...string) {
			b.Helper()
			if out := b.Run(lab.LAN, "nmap", append([]string{"-n", "-Pn", "-sS", "-p", "8000", "--max-retries", "1"}, to...)...); !strings.Contains(out, "8000/tcp "+want) {
				b.Errorf("nmap says, instead of %s:\n%s", want, out)
			}
		}
		b.WeirRun(fmt.Sprintf(systemRules, file, "Linux"))
		for _, to := range []string{"TCP4:" + wanHost, "TCP6:[" + wanHost6 + "]"} {
			if out := b.Run(lab.LAN, "socat", "-u", to+":8000", "-"); out != "hello\n" {
				b.Errorf("%s says %q", to, out)
			}
		}
		scan("filtered", wanHost)
		scan("filtered", "-6", wanHost6)
		b.Weir("load", b.Rules(fmt.Sprintf(systemRules, file, "NMAP syn scan")))
		scan("open", wanHost)
		if out, err := b.Try(lab.LAN, "socat", "-u", "TCP4:"+wanHost+":8000,connect-timeout=2", "-"); err == nil {
			b.Errorf("a SYN of Linux passes as one of nmap: %q", out)
		}
		main, rule, _ := strings.Cut(fmt.Sprintf(systemRules, file, "NMAP"), "pass in on lan0 proto tcp")
		b.Weir("load", b.Rules(main+"anchor guests\n"))
		scan("filtered", wanHost)
		loadAnchor(b, "guests", "pass in on lan0 proto tcp"+rule)
		scan("open", wanHost)
	})
}
