package test

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"weir/internal/lab"
	"weir/internal/testenv"
	"weir/test/lib"
)

// leaseScript is what udhcpc runs. It sets the address with the lifetime of the lease
// ("$lease"), like dhclient and NetworkManager, or with unlimited lifetime, like udhcpc's
// own script.
const leaseScript = `#!/bin/sh
case $1 in
deconfig) ip -4 address flush dev "$interface" ;;
bound | renew) ip address replace "$ip/$mask" dev "$interface" valid_lft LIFE preferred_lft LIFE && echo "$1: $ip" ;;
esac
`

// dnsmasq starts an address server on a device: DHCP for IPv4, router advertisements for
// IPv6.
func dnsmasq(b *lib.Box, host, device, dhcp, prefix string) *lib.Process {
	b.Helper()
	return b.Listen(host, 67, "dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--port=0", "--user=root",
		"--pid-file", "--log-facility=-", "--interface="+device, "--bind-interfaces", "--no-ping", "--dhcp-authoritative",
		"--dhcp-leasefile="+filepath.Join(b.TempDir(), "leases"), "--dhcp-range="+dhcp,
		"--enable-ra", "--dhcp-range="+prefix+",ra-only,64")
}

// udhcpc starts a client on a device and waits for its first lease. life: the lifetime of
// its address, or "forever".
func udhcpc(b *lib.Box, host, device, life string) *lib.Process {
	b.Helper()
	script := filepath.Join(b.TempDir(), "lease")
	testenv.WriteProgram(b, script, []byte(strings.ReplaceAll(leaseScript, "LIFE", life)))
	client := b.Start(host, "busybox", "udhcpc", "-f", "-i", device, "-s", script, "-t", "10", "-T", "1")
	b.Until(15*time.Second, "udhcpc has a lease", func() bool { return strings.Contains(client.Said(), "bound: ") })
	return client
}

//	lan ───────────── fw ───────────── wan
//	udhcpc, SLAAC     dnsmasq │ udhcpc, SLAAC     dnsmasq
//
// A box that gets its addresses from outside keeps them under rules that block all else,
// and gives addresses to the LAN.
func TestLeases(t *testing.T) {
	weir.BothAtOnce(t, func(b *lib.Box) {
		b.Sysctl(lab.FW, "net/ipv6/conf/wan0/accept_ra", "1") // weir sets it to 2 before it forwards
		b.Sysctl(lab.LAN, "net/ipv6/conf/eth0/accept_ra", "1")
		for _, end := range [][]string{{lab.FW, "wan0"}, {lab.LAN, "eth0"}} {
			b.Run(end[0], "ip", "-4", "address", "flush", "dev", end[1])
			b.Run(end[0], "ip", "-6", "address", "flush", "dev", end[1], "scope", "global")
		}
		b.WeirRun(gatewayConf(t))
		dnsmasq(b, lab.WAN, "eth0", "203.0.113.50,203.0.113.60,120", "2001:db8:113::")
		dnsmasq(b, lab.FW, "lan0", "192.168.1.50,192.168.1.60,120", "fd00:1::")
		for _, end := range []struct{ host, device, life, prefix4, prefix6 string }{
			{lab.FW, "wan0", `"$lease"`, "203.0.113.", "2001:db8:113:"},
			{lab.FW, "wan0", "forever", "203.0.113.", "2001:db8:113:"},
			{lab.LAN, "eth0", `"$lease"`, "192.168.1.", "fd00:1:"},
		} {
			client := udhcpc(b, end.host, end.device, end.life)
			if !strings.Contains(client.Said(), "bound: "+end.prefix4) {
				b.Errorf("%s: udhcpc said\n%s", end.host, client.Said())
			}
			time.Sleep(time.Second) // until weir knows the address
			client.Signal(syscall.SIGUSR1)
			b.Until(10*time.Second, "the lease is renewed", func() bool { return strings.Contains(client.Said(), "renew: ") })
			b.Until(15*time.Second, end.device+" has an address by SLAAC and a route", func() bool {
				return strings.Contains(b.Run(end.host, "ip", "-6", "address", "show", "dev", end.device, "dynamic"), end.prefix6) &&
					strings.Contains(b.Run(end.host, "ip", "-6", "route", "show", "proto", "ra"), "default via fe80:")
			})
			client.Kill()
		}
		if blocked := b.Rule(`label "martians"`); blocked.Packets != 0 {
			b.Errorf("%d packets of the lease were blocked", blocked.Packets)
		}
	})
}

//	lan ─────── fw ─────── wan
//	curl        NAT        httpd
//
// Files arrive complete over both families, and several at a time.
func TestCurl(t *testing.T) {
	weir.BothAtOnce(t, func(b *lib.Box) {
		b.WeirRun(gatewayConf(t))
		dir := b.TempDir()
		data := make([]byte, 3<<20)
		rand.Read(data) //nolint:errcheck // it never fails
		if err := os.WriteFile(filepath.Join(dir, "file"), data, 0o600); err != nil {
			b.Fatal(err)
		}
		b.Listen(lab.WAN, 8000, "busybox", "httpd", "-f", "-p", "8000", "-h", dir)
		for _, to := range []string{wanHost, "[" + wanHost6 + "]"} {
			url := "http://" + to + ":8000/file"
			got := filepath.Join(dir, "got")
			b.Run(lab.LAN, "curl", "-sS", "--parallel", "--max-time", "20", "-o", got+"1", url, "-o", got+"2", url)
			for _, n := range []string{"1", "2"} {
				if file, err := os.ReadFile(got + n); err != nil || string(file) != string(data) {
					b.Errorf("%s: what came is not what was sent: %d bytes, %v", url, len(file), err)
				}
			}
		}
	})
}

//	lan ──▶ port 21 ──▶ wan
//	    ◀─✕── port 20 ──
//
// A server that connects back, like FTP's in active mode, is refused: weir does not look
// into connections to open ports. A client that connects again is not refused.
func TestActiveConnectionIsRefused(t *testing.T) {
	weir.BothAtOnce(t, func(b *lib.Box) {
		b.WeirRun(gatewayConf(t))
		b.Listen(lab.WAN, 21, "socat", "-t", "30", "TCP-LISTEN:21,fork", "EXEC:cat")
		b.Listen(lab.LAN, 40000, "socat", "-t", "30", "TCP-LISTEN:40000,fork", "EXEC:cat")
		b.Start(lab.LAN, "sh", "-c", "(echo PORT 192,168,1,10,156,64; sleep 20) | socat - TCP4:"+wanHost+":21")
		b.Until(5*time.Second, "the control connection is there", func() bool {
			return len(b.States("proto", "tcp", "port", "21")) == 1
		})
		b.Run(lab.WAN, "ip", "route", "add", "192.168.1.0/24", "via", fwWAN)
		for _, to := range []string{fwWAN, lanHost} {
			out, err := b.Try(lab.WAN, "curl", "-sS", "--local-port", "20", "--connect-timeout", "1", "http://"+to+":40000/")
			if err == nil || !strings.Contains(err.Error(), "exit status 28") {
				b.Errorf("a connection from port 20 to %s: %v\n%s", to, err, out)
			}
		}
		if got := b.Run(lab.LAN, "sh", "-c", "echo again | socat -t 30 - TCP4:"+wanHost+":21"); got != "again\n" {
			b.Errorf("the client's second connection said %q", got)
		}
	})
}

//	lan ═══ ssh session ═══ wan           fw: weir load, weir run again
//
// A session goes on over loads of other rules and over a takeover, with its traffic.
func TestSSHOverReloads(t *testing.T) {
	weir.BothAtOnce(t, func(b *lib.Box) {
		b.WeirRun(gatewayConf(t))
		key := filepath.Join(b.TempDir(), "key")
		b.Run(lab.LAN, "dropbearkey", "-t", "ed25519", "-f", key)
		b.Run(lab.LAN, "sh", "-c", "dropbearkey -y -f "+key+" | grep ^ssh > "+key+".pub")
		// The server's root has its own home, so that no real one is touched.
		b.Listen(lab.WAN, 22, "unshare", "--mount", "sh", "-c",
			"mount -t tmpfs -o mode=700 none ~root && mkdir -m 700 ~root/.ssh && cp "+key+".pub ~root/.ssh/authorized_keys && "+
				"cp "+key+" "+key+".host && exec dropbear -P "+key+".pid -F -E -s -r "+key+".host -p 22")
		session := b.Start(lab.LAN, "dbclient", "-y", "-y", "-i", key, "root@"+wanHost,
			"i=0; while [ $i -lt 400 ]; do i=$((i + 1)); echo line $i; sleep 0.01; done; echo end")
		b.Until(15*time.Second, "the session speaks", func() bool { return strings.Contains(session.Said(), "line 10\n") })
		b.Weir("load", b.Rules(gatewayText(t)+"block out quick on wan0 proto tcp to port ssh flags S/SA\n"))
		b.WeirRun(gatewayConf(t))
		b.Weir("load", b.Rules(gatewayText(t)+"# again\n"))
		said := session.Wait(40*time.Second, 0)
		for i := range 400 {
			if !strings.Contains(said, fmt.Sprintf("line %d\n", i+1)) {
				b.Fatalf("line %d is missing of\n%s", i+1, said)
			}
		}
	})
}
