package lib

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"weir/internal/lab"
)

// WireGuardPort is the UDP port at both ends of a path's tunnel.
func (p *Path) WireGuardPort() int { return 51820 + p.side() }

// wireGuard makes a tunnel between fw and a path's host, over the path's outer wire.
func (b *Box) wireGuard(p *Path, far string) {
	b.Helper()
	type end struct{ host, device, outer, outerDevice, key, public string }
	outer := func(n int) string { return fmt.Sprintf("10.%d.%d.%d", p.side(), 100+p.number, n) }
	ends := [2]end{
		{host: lab.FW, device: p.Device, outer: outer(1), outerDevice: p.Under},
		{host: p.Host, device: far, outer: outer(10), outerDevice: "outer"},
	}
	for i := range ends {
		e := &ends[i]
		key := b.Run(e.host, "wg", "genkey")
		e.key = filepath.Join(b.dir, fmt.Sprintf("%s-%s.key", p.Device, e.host))
		if err := os.WriteFile(e.key, []byte(key), 0o600); err != nil {
			b.Fatal(err)
		}
		e.public = strings.TrimSpace(b.Run(e.host, "sh", "-c", "wg pubkey <"+e.key))
	}
	for i, e := range ends {
		peer := ends[1-i]
		b.Address(e.host, e.outerDevice, e.outer+"/24")
		b.IP(e.host, "link add "+e.device+" type wireguard")
		b.Run(e.host, "wg", "set", e.device, "listen-port", fmt.Sprint(p.WireGuardPort()), "private-key", e.key,
			"peer", peer.public, "allowed-ips", "0.0.0.0/0,::/0", "endpoint", fmt.Sprintf("%s:%d", peer.outer, p.WireGuardPort()))
	}
}

// ppp joins fw and a path's host by two pppds at the ends of a serial line.
func (b *Box) ppp(p *Path, far string) {
	b.Helper()
	ends := [2]string{filepath.Join(b.dir, p.Device+"-near"), filepath.Join(b.dir, p.Device+"-far")}
	b.Start(lab.FW, "socat", "PTY,raw,echo=0,link="+ends[0], "PTY,raw,echo=0,link="+ends[1])
	b.Until(10*time.Second, "the serial line is there", func() bool {
		_, near := os.Stat(ends[0])
		_, far := os.Stat(ends[1])
		return near == nil && far == nil
	})
	pppd := func(host, terminal, device, addresses string) {
		b.Start(host, "pppd", terminal, "nodetach", "noauth", "local", "nolock", "nocrtscts", "novj", "noccp",
			"ifname", device, addresses, "+ipv6", "mtu", "1500", "mru", "1500")
	}
	ours, theirs := fmt.Sprintf("10.%d.%d.1", p.side(), 100+p.number), fmt.Sprintf("10.%d.%d.10", p.side(), 100+p.number)
	pppd(lab.FW, ends[0], p.Device, ours+":"+theirs)
	pppd(p.Host, ends[1], far, theirs+":"+ours)
	for host, device := range map[string]string{lab.FW: p.Device, p.Host: far} {
		b.Until(30*time.Second, "pppd has made "+device, func() bool {
			out, err := b.Try(host, "ip", "-4", "address", "show", "dev", device)
			return err == nil && strings.Contains(out, "10.")
		})
	}
}
