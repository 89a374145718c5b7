package test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/lab"
	"weir/test/lib"
)

// awaitCheck waits until weir vpn check says something about ipsec0.
func awaitCheck(b *lib.Box, what string) {
	b.Helper()
	said := ""
	b.Until(time.Minute, "weir vpn check says "+what, func() bool {
		said, _ = b.WeirStatus("vpn", "check", "ipsec0", "--to", "10.2.0.1")
		return strings.Contains(said, what)
	})
	b.Logf("%s", said)
}

//	fw ══ IKE ══ wan, a plain strongSwan
//
// Weir says why the two ends do not know each other, and takes back what charon was given. This needs
// no IPsec in the kernel: there are no packets.
func TestIKE(t *testing.T) {
	weir.UnderTCX(t, func(b *lib.Box) {
		psk := filepath.Join(b.TempDir(), "far.psk")
		write := func(text string) {
			if err := os.WriteFile(psk, []byte(text+"\n"), 0o600); err != nil {
				b.Fatal(err)
			}
		}
		write("another preshared key")
		a := b.Authority("an authority")
		certificate, key := a.Issue(ipsecNear)
		tunnel := fmt.Sprintf("ikev2 ipsec0 peer %s srcid %s dstid %s networks 10.2.0.0/16 ", wanHost, ipsecNear, ipsecFar)
		byPSK := tunnel + fmt.Sprintf("psk file %q\n", psk)
		byCertificate := tunnel + fmt.Sprintf("certificate file %q key file %q ca file %q\n", certificate, key, a.File)
		const rules = "block\npass out\n"
		file := b.Rules(byPSK + rules)
		b.WeirRun(file)
		far := b.Charon(lab.WAN)
		run := b.WeirCommand("vpn", "run", "--vici", filepath.Join(b.TempDir(), "none"))
		b.AwaitSaid(run, "no charon listens on")
		run.Kill()
		run = b.WeirCommand("vpn", "run", "--vici", far.Socket)
		b.AwaitSaid(run, "another network namespace")
		run.Kill()
		near := b.Charon(lab.FW)
		far.Kill() // nobody answers
		near.WriteFile("swanctl.conf", "secrets {\n\tike-mine {\n\t\tid = mine\n\t\tsecret = \"another preshared key\"\n\t}\n}\n")
		near.Swanctl("--load-all", "--noprompt")
		run = ipsecRun(b, near)
		awaitCheck(b, "UDP 500 and 4500")
		far.Start()
		b.Weir("load", file)
		awaitCheck(b, "expects nobody at our address")
		b.Until(10*time.Second, "weir vpn log says so, too", func() bool {
			return strings.Contains(b.Weir("vpn", "log", "ipsec0"), "expects nobody at our address")
		})
		far.WriteFile("swanctl.conf", ipsecSwanctl)
		far.Swanctl("--load-all", "--noprompt")
		b.Weir("load", file)
		awaitCheck(b, "the peer refuses us")
		write(ipsecPSK)
		b.Weir("load", file)
		awaitCheck(b, wanHost+":")
		b.Until(10*time.Second, "the ends know each other", func() bool {
			ike := siteOf(b).Site.Speaking()
			return ike != nil && ike.Established() && ike.RemoteID == ipsecFar
		})
		b.Weir("load", b.Rules(byCertificate+rules))
		awaitCheck(b, "the peer refuses us")
		farCertificate, farKey := a.Issue(ipsecFar)
		for name, from := range map[string]string{"x509/far.pem": farCertificate, "x509ca/ca.pem": a.File, "private/far.key": farKey} {
			text, err := os.ReadFile(from)
			if err != nil {
				b.Fatal(err)
			}
			far.WriteFile(name, string(text))
		}
		far.WriteFile("swanctl.conf", strings.NewReplacer("auth = psk", "auth = pubkey").Replace(ipsecSwanctl))
		far.Swanctl("--load-all", "--noprompt")
		b.Weir("load", b.Rules(byCertificate+rules))
		b.Until(30*time.Second, "the ends know each other by certificates", func() bool {
			ike := siteOf(b).Site.Speaking()
			return ike != nil && ike.Established() && ike.RemoteID == ipsecFar
		})
		for _, secret := range []string{ipsecPSK, "PRIVATE KEY"} {
			if said := run.Said() + b.Weir("vpn", "status") + b.Weir("vpn", "status", "--json") + b.Run(lab.FW, "sh", "-c", "cat "+b.RunFolder()+"-vpn/*.json "+b.RunFolder()+"/tunnels.json"); strings.Contains(said, secret) {
				b.Errorf("weir tells a secret:\n%s", said)
			}
		}
		b.Weir("load", b.Rules(rules))
		b.Until(10*time.Second, "charon has nothing of weir's", func() bool {
			return !strings.Contains(near.Swanctl("--list-conns"), "weir-") && near.Swanctl("--list-sas") == ""
		})
		if _, err := os.Stat(b.RunFolder() + "-vpn/charon.json"); !os.IsNotExist(err) {
			b.Errorf("the record of what charon was given is still there: %v", err)
		}
	})
}

// Whoever has the preshared key of one tunnel cannot pass as the peer of another one.
func TestIKEImpersonation(t *testing.T) {
	weir.UnderTCX(t, func(b *lib.Box) {
		const other = "other.example.org"
		tunnel := func(name, id, psk, network string) string {
			path := filepath.Join(b.TempDir(), name+".psk")
			if err := os.WriteFile(path, []byte(psk+"\n"), 0o600); err != nil {
				b.Fatal(err)
			}
			return fmt.Sprintf("ikev2 %s passive srcid %s dstid %s psk file %q networks %s\n", name, ipsecNear, id, path, network)
		}
		rules := tunnel("ipsec0", ipsecFar, ipsecPSK, "10.2.0.0/16") + tunnel("ipsec1", other, "the preshared key of another", "10.3.0.0/16")
		b.WeirRun(b.Rules(rules + "block\npass out\npass in on wan0 proto udp to port { 500 4500 }\n"))
		near, far := b.Charon(lab.FW), b.Charon(lab.WAN)
		ipsecRun(b, near)
		b.Until(10*time.Second, "charon has both", func() bool { return strings.Count(near.Swanctl("--list-conns"), "weir-ipsec") >= 4 })
		honest := strings.Replace(ipsecSwanctl, "version = 2", "version = 2\n\t\tremote_addrs = 203.0.113.2", 1)
		begin := func(text, what string) {
			b.Helper()
			far.WriteFile("swanctl.conf", text)
			far.Swanctl("--load-all", "--noprompt")
			b.Try(lab.WAN, "swanctl", "--initiate", "--child", "near", "--timeout", "5", "--uri", "unix://"+far.Socket) //nolint:errcheck // without ESP there is no child
			b.Until(10*time.Second, "charon says "+what, func() bool { return strings.Contains(near.Said(), what) })
		}
		begin(strings.Replace(honest, "id = "+ipsecFar, "id = "+other, 1), "MAC mismatched")
		if said := near.Said(); strings.Contains(said, "with pre-shared key successful") {
			b.Errorf("the key of %s is taken for %s:\n%s", ipsecFar, other, said)
		}
		begin(honest, "authentication of '"+ipsecFar+"' with pre-shared key successful")
	})
}
