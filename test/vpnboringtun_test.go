package test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/lab"
	"weir/internal/testenv"
	"weir/internal/vpn/keeper"
	"weir/internal/vpn/key"
	"weir/test/lib"
)

// boringtun is a WireGuard in Rust that others have written. No distribution here has it: cargo install boringtun-cli.
const boringtun = "boringtun-cli"

//	lan ── lan0 fw wan0 ══ wg0 in UDP ══ wan, boringtun
//
// The peer is neither wireguard-go nor the kernel. A link to it that is to be wide stays on one port, and it is found again
// after it was killed.
func TestVPNBoringtun(t *testing.T) {
	program, err := exec.LookPath(boringtun)
	if err != nil {
		testenv.SkipOutside(t, "%s is not installed: cargo install %s", boringtun, boringtun)
	}
	weir.UnderTCX(t, func(b *lib.Box) {
		dir := b.TempDir()
		secret, farSecret, psk := filepath.Join(dir, "wg0.key"), filepath.Join(dir, "far.key"), filepath.Join(dir, "far.psk")
		public, far := strings.TrimSpace(b.Weir("vpn", "genkey", secret)), strings.TrimSpace(b.Weir("vpn", "genkey", farSecret))
		if err := key.WriteFile(psk, key.NewPreshared()); err != nil {
			b.Fatal(err)
		}
		// Its control socket has a path of the machine's, not of the namespace: two stories at once need two names.
		device, port := fmt.Sprintf("bt%d", os.Getpid()), 51999
		control := "/var/run/wireguard/" + device + ".sock"
		b.Cleanup(func() { os.Remove(control) })
		start := func() *lib.Process {
			b.Helper()
			os.Remove(control) // wg removes one that nobody listens at, but may remove its successor
			p := b.Start(lab.WAN, program, "--foreground", "--disable-drop-privileges", device)
			b.Until(10*time.Second, "boringtun has its device", func() bool {
				_, err := b.Try(lab.WAN, "wg", "set", device, "listen-port", fmt.Sprint(port), "private-key", farSecret,
					"peer", public, "preshared-key", psk, "allowed-ips", "10.9.0.1/32,fd09::1/128,192.168.1.0/24,fd00:1::/64")
				return err == nil
			})
			b.IP(lab.WAN, "link set "+device+" mtu 1420 up", "route add 192.168.1.0/24 dev "+device, "route add fd00:1::/64 dev "+device)
			for _, a := range []string{"10.9.0.2/30", tunnelFar + "/16", "fd09::2/64", tunnelFar6 + "/48"} {
				b.Address(lab.WAN, device, a)
			}
			return p
		}
		peer := start()
		rules := func(wide string) string {
			return b.Rules(fmt.Sprintf(`wireguard wg0 key file "%s" address { 10.9.0.1/30 fd09::1/64 }
peer far on wg0 key "%s" psk file "%s" endpoint %s port %d allowed { 10.9.0.2 10.2.0.0/16 fd09::2 fd02::/48 } %s
pass
`, secret, far, psk, wanHost, port, wide))
		}
		b.WeirRun(rules(""))
		vpnRun(b)
		b.AwaitHook("wg0")
		works := func() bool {
			return tunnelAnswers(b, lab.LAN, tunnelFar) && tunnelAnswers(b, lab.LAN, tunnelFar6)
		}
		b.Until(10*time.Second, "the tunnel works", works)
		server := uint16(5600)
		for to, headers := range map[string]int{tunnelFar: 28, tunnelFar6: 48} {
			for _, way := range []string{"-b0", "-R"} {
				server++ // iperf3 resets who connects while it ends a test
				b.Listen(lab.WAN, server, "iperf3", "-s", "-1", "-p", fmt.Sprint(server))
				b.Logf("to %s %s:%s", to, way, lastOf(b.Run(lab.LAN, "iperf3", "-c", to, "-p", fmt.Sprint(server), "-n", "8M", way, "-f", "m")))
			}
			b.Run(lab.LAN, "ping", "-n", "-c", "1", "-W", "2", "-M", "do", "-s", fmt.Sprint(1420-headers), to)
		}
		b.Weir("load", rules("wide auto"))
		b.Until(20*time.Second, "the link says that it has one port", func() bool {
			w := tunnelOf(b).Peers[0].Wide
			return w != nil && w.Used == 1 && w.Why != ""
		})
		b.Until(10*time.Second, "the tunnel works", works)
		if out, _ := b.WeirStatus("vpn", "check", "far"); strings.Count(out, "wrong") != 1 || !strings.Contains(out, "wrong  ports: 1 of ") {
			b.Errorf("a link that is to be wide: weir vpn check says\n%s", out)
		}
		b.Weir("load", rules(""))
		b.Until(10*time.Second, "the tunnel works", works)
		peer.Kill()
		start()
		began := time.Now()
		b.Until(lib.Scaled(40*time.Second), "the tunnel works again", works) // 15 s without an answer begin a handshake
		b.Logf("the tunnel worked again after %v", time.Since(began))
		if s := tunnelOf(b).Peers[0]; s.Session != keeper.Current || s.Error != "" || s.Refused != nil {
			b.Errorf("weir vpn status: %+v", s)
		}
	})
}
