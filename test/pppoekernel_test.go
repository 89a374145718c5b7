package test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"weir/internal/fw/control"
	"weir/internal/fw/reason"
	"weir/internal/lab"
	"weir/internal/pppoe/discovery"
	"weir/internal/pppoe/wire"
	"weir/internal/testenv"
	"weir/test/lib"
)

// needKernelPPPoE skips a test on kernels without PPPoE.
func needKernelPPPoE(t *testing.T) {
	t.Helper()
	if out, err := exec.Command("modprobe", "-a", "pppoe", "ppp_generic").CombinedOutput(); err != nil {
		testenv.SkipOutside(t, "this kernel has no PPPoE; the emulated one has: %s", out)
	}
	testenv.NeedProgram(t, "pppd")
}

// startPPP starts a program of PPP in a host, with a folder of its own for /etc/ppp. It ends with all its children.
func startPPP(b *lib.Box, host, password string, options []string, command string) *lib.Process {
	b.Helper()
	folder := b.TempDir()
	secrets := fmt.Sprintf("me * \"%s\" *\n", password)
	files := map[string]string{"chap-secrets": secrets, "pap-secrets": secrets, "options": strings.Join(append(options, "debug", "logfile /etc/ppp/log", ""), "\n")}
	for file, text := range files {
		if err := os.WriteFile(filepath.Join(folder, file), []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	p := b.Start(host, "unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", "mount --bind "+folder+" /etc/ppp && exec "+command)
	b.Cleanup(func() {
		if b.Failed() {
			log, _ := os.ReadFile(filepath.Join(folder, "log")) //nolint:errcheck // there may be none
			b.Logf("%s: %s\n%s", command, p.Said(), log)
		}
	})
	return p
}

// childNamed returns the number of a process below another one.
func childNamed(b *lib.Box, pid int, name string) int {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%[1]d/task/%[1]d/children", pid))
	if err != nil {
		return 0
	}
	for _, field := range strings.Fields(string(text)) {
		child, err := strconv.Atoi(field)
		if err != nil {
			b.Fatal(err)
		}
		if comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", child)); err == nil && strings.TrimSpace(string(comm)) == name {
			return child
		}
		if found := childNamed(b, child, name); found != 0 {
			return found
		}
	}
	return 0
}

// kernelPackets sends packets through a session with the kernel's PPPoE at one end.
func kernelPackets(b *lib.Box, client string) {
	b.Helper()
	b.Ping(lab.FW, lib.ProviderPeer, 1)
	b.Ping(lab.LAN, lib.ProviderPeer, 2)
	b.Ping(lab.LAN, lib.ProviderPeer6, 2)
	b.Ping(lab.WAN, client, 1)
	b.Run(lab.LAN, "ping", "-n", "-c", "1", "-W", "10", "-M", "do", "-s", "1464", lib.ProviderPeer)
	for i, to := range []string{lib.ProviderPeer, lib.ProviderPeer6} {
		for j, way := range []string{"-b0", "-R"} {
			port := uint16(5500 + 2*i + j)
			b.Listen(lab.WAN, port, "iperf3", "-s", "-1", "-p", fmt.Sprint(port))
			b.Logf("to %s %s:%s", to, way, lastOf(b.Run(lab.LAN, "iperf3", "-c", to, "-p", fmt.Sprint(port), "-n", "2M", way, "-f", "m")))
		}
	}
}

// offerSessions answers PADIs and PADRs in wan, for pppd, which has no discovery for a concentrator. Each session that it gives
// is told.
func offerSessions(b *lib.Box) (given chan uint16) {
	b.Helper()
	var w *wire.Wire
	err := b.Do(lab.WAN, func() (err error) {
		w, err = wire.Open("eth0", 0)
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(w.Close)
	given = make(chan uint16, 10)
	go func() {
		id, asked := uint16(0x2a00), []byte(nil)
		for raw := range w.Frames {
			f, err := discovery.Parse(raw)
			if err != nil || f.Ether != discovery.EtherDiscovery {
				continue
			}
			tags, err := discovery.ParseTags(f.Payload)
			if err != nil {
				continue
			}
			uniq, _ := discovery.Find(tags, discovery.HostUniq)
			answer := discovery.Frame{
				To: f.From, From: w.MAC(), Ether: discovery.EtherDiscovery,
				Payload: discovery.AppendTags(nil, []discovery.Tag{{Type: discovery.ServiceName}, {Type: discovery.ACName, Value: []byte("kernel")}, {Type: discovery.HostUniq, Value: uniq}}),
			}
			switch f.Code {
			case discovery.PADI:
				answer.Code = discovery.PADO
			case discovery.PADR:
				answer.Code = discovery.PADS
				if asked == nil || !bytes.Equal(uniq, asked) { // else it asks again
					id, asked = id+1, bytes.Clone(uniq)
					given <- id
				}
				answer.SessionID = id
			default:
				continue
			}
			if err := w.Send(answer.Append(nil)); err != nil {
				return // the story is over
			}
		}
	}()
	return given
}

//	lan ── lan0 fw wan0 ══ ppp0 in a PPPoE session ══ wan, pppd and the kernel's PPPoE
//
// The kernel takes what weir puts into the session, and weir what the kernel does. The session outlives the daemon, and pppd ends
// it.
func TestPPPoEOfTheKernel(t *testing.T) {
	needKernelPPPoE(t)
	weir.BothAtOnce(t, func(b *lib.Box) {
		const client, secret = "198.51.100.20", "monday-0815-mule"
		password := filepath.Join(b.TempDir(), "password")
		if err := os.WriteFile(password, []byte(secret), 0o600); err != nil {
			b.Fatal(err)
		}
		b.IP(lab.FW, "route del default", "-6 route del default", "address flush dev wan0")
		mac := strings.Fields(b.Run(lab.FW, "ip", "-br", "link", "show", "wan0"))[2]
		given := offerSessions(b)
		rules := b.Rules(fmt.Sprintf(`pppoe ppp0 on wan0 user me password file "%s"
match out on ppp0 inet from (lan0:network) nat-to (ppp0)
block
pass in on lan0
pass out on lan0 from self
pass out on ppp0
pass in on ppp0 inet proto icmp
`, password))
		daemon := b.WeirRun(rules)
		up := func(id uint16) control.PPPoE {
			b.Helper()
			session := fmt.Sprintf("0x%04x", id)
			b.Until(30*time.Second, "session "+session+" is up", func() bool {
				s := pppoeStatus(b)
				return s.State == control.PPPoEUp && s.Session == session && s.IPv4.IsValid() && s.IPv6.IsValid()
			})
			b.Until(20*time.Second, "the concentrator has its device", func() bool {
				out, err := b.Try(lab.WAN, "ip", "-o", "address", "show", "dev", "ppp0")
				return err == nil && strings.Contains(out, client) && strings.Contains(out, "fe80::")
			})
			b.IP(lab.WAN, "address replace "+lib.ProviderPeer6+"/64 dev ppp0 nodad", "route replace fd00:1::/64 dev ppp0")
			return pppoeStatus(b)
		}
		serve := func() (*lib.Process, uint16) {
			b.Helper()
			select {
			case id := <-given:
				return startPPP(b, lab.WAN, secret, []string{"require-chap", "ms-dns 192.0.2.53", "+ipv6", "lcp-echo-interval 2", "lcp-echo-failure 4", "mru 1492", "mtu 1492"}, fmt.Sprintf(
					"pppd nodetach plugin rp-pppoe.so rp_pppoe_sess %d:%s eth0 %s:%s", id, mac, lib.ProviderPeer, client)), id
			case <-time.After(lib.Scaled(30 * time.Second)):
				b.Fatal("no session is asked for")
				return nil, 0
			}
		}
		concentrator, id := serve()
		first := up(id)
		if first.AC != "kernel" || first.IPv4.String() != client || first.MTU != 1492 || first.Auth != "CHAP-MD5" || len(first.DNS) != 1 {
			b.Errorf("the session: %+v", first)
		}
		if out := b.Run(lab.WAN, "cat", "/proc/net/pppoe"); !strings.Contains(out, "eth0") {
			b.Errorf("the kernel has no session:\n%s", out)
		}
		awaitVLAN(b, "ppp0", b.Hook, "")
		b.Tell("packets", func(b *lib.Box) { kernelPackets(b, client) })
		daemon.Kill()
		time.Sleep(12 * time.Second) // pppd would have given the session up
		b.Ping(lab.LAN, lib.ProviderPeer, 2)
		b.WeirRun(rules)
		if again := up(id); !again.Since.Equal(first.Since) {
			b.Errorf("after the next start: %+v, was %+v", again, first)
		}
		pid := childNamed(b, concentrator.PID(), "pppd")
		if pid == 0 {
			b.Fatal("there is no pppd")
		}
		if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
			b.Fatal(err)
		}
		concentrator, id = serve()
		if s := up(id); s.Ended.PADT+s.Ended.Terminate == 0 {
			b.Errorf("the data path has seen no end: %+v", s)
		}
		b.Ping(lab.LAN, lib.ProviderPeer, 2)
		b.Weir("pppoe", "down", "ppp0")
		b.Until(20*time.Second, "pppd has ended", func() bool { return !concentrator.Running() })
	})
}

//	lan ── lan0 fw wan0 ══ pppd and the kernel's PPPoE: ppp0 ══ wan, a concentrator
//
// pppd has the session, and weir the rules: those on ppp0 hold, and nothing is lost between XDP of wan0 and the kernel.
func TestPPPoEOfAnotherClient(t *testing.T) {
	needKernelPPPoE(t)
	weir.BothAtOnce(t, func(b *lib.Box) {
		p, password := b.Provider(1492)
		b.IP(lab.FW, "route del default", "-6 route del default", "address flush dev wan0")
		secret := strings.TrimSpace(read(b, password))
		b.WeirRun(b.Rules(`match on ppp0 inet proto tcp scrub (max-mss 1452)
match on ppp0 inet6 proto tcp scrub (max-mss 1432)
match out on ppp0 inet from (lan0:network) nat-to (ppp0)
block
pass in on lan0
pass out on lan0 from self
pass out on ppp0
pass in on ppp0 inet proto icmp
`))
		startPPP(b, lab.FW, secret, []string{"noauth", "noipdefault", "+ipv6", "defaultroute", "mru 1492", "mtu 1492", "user me", "lcp-echo-interval 2", "lcp-echo-failure 30"},
			"pppd nodetach plugin rp-pppoe.so rp_pppoe_ac ac wan0 file /etc/ppp/options")
		b.Until(30*time.Second, "ppp0 has its addresses", func() bool {
			out, err := b.Try(lab.FW, "ip", "-o", "address", "show", "dev", "ppp0")
			return err == nil && strings.Contains(out, lib.ProviderClient) && strings.Contains(out, "fe80::")
		})
		b.IP(lab.FW, "-6 route add default dev ppp0")
		b.Until(20*time.Second, "the provider serves it", func() bool { return len(p.Sessions()) == 1 && p.Serves(fmt.Sprintf("0x%04x", p.Sessions()[0].ID)) })
		awaitVLAN(b, "ppp0", "tcx", "")
		kernelPackets(b, lib.ProviderClient)
		if out, err := b.Try(lab.WAN, "curl", "-s", "-m", "2", "http://"+lib.ProviderClient+":22/"); err == nil {
			b.Errorf("the rules let a connection in: %s", out)
		}
		if n := b.Packets("ppp0", reason.Block); n == 0 {
			b.Error("no packet was blocked on ppp0")
		}
	})
}
