package wgfile

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"weir/pf/resolve"
)

// Write writes a tunnel as wg-quick(8) reads it. Secret keys stay in their files, from which wg reads
// them. Where the routes are not those that wg-quick would make, commands add them.
func Write(out io.Writer, t *resolve.WireGuard) error {
	if err := writable(t.KeyFile); err != nil {
		return err
	}
	var b strings.Builder
	line := func(word, format string, args ...any) { fmt.Fprintf(&b, word+" = "+format+"\n", args...) }
	b.WriteString("[Interface]\n")
	line("PostUp", "wg set %%i private-key %s", shell(t.KeyFile))
	line("ListenPort", "%d", t.Port)
	if len(t.Addresses) > 0 {
		line("Address", "%s", join(t.Addresses))
	}
	if t.MTUFixed { // else wg-quick chooses one
		line("MTU", "%d", t.MTU)
	}
	asUsual := true
	for i := range t.Peers {
		p := &t.Peers[i]
		asUsual = asUsual && slices.Equal(p.Routes, p.Allowed)
		if err := writable(p.PSKFile); err != nil {
			return err
		}
		if p.PSKFile != "" {
			line("PostUp", "wg set %%i peer %s preshared-key %s", p.Key, shell(p.PSKFile))
		}
	}
	if !asUsual {
		line("Table", "off")
		for i := range t.Peers {
			for _, n := range t.Peers[i].Routes {
				line("PostUp", "ip route add %s dev %%i", n)
			}
		}
	}
	for i := range t.Peers {
		p := &t.Peers[i]
		fmt.Fprintf(&b, "\n[Peer]\n# Name = %s\n", p.Name)
		line("PublicKey", "%s", p.Key)
		if len(p.Allowed) > 0 {
			line("AllowedIPs", "%s", join(p.Allowed))
		}
		if p.Endpoint != "" {
			line("Endpoint", "%s", net.JoinHostPort(p.Endpoint, strconv.Itoa(int(p.Port))))
		}
		for _, w := range p.Ways {
			fmt.Fprintf(&b, "# weir has a way to %s", net.JoinHostPort(w.Endpoint, strconv.Itoa(int(w.Port))))
			if w.On != "" {
				fmt.Fprintf(&b, " on %s", w.On)
			}
			b.WriteString(": a file of wg-quick(8) has one, and no interface\n")
		}
		if p.Wide > 0 {
			b.WriteString("# weir has a wide link to it, if it is a weir: a file of wg-quick(8) has one port\n")
		}
		if p.Keepalive > 0 {
			line("PersistentKeepalive", "%d", p.Keepalive)
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// writable refuses the path of a file that wg-quick would take for another.
func writable(path string) error {
	if strings.Contains(path, "%i") || strings.ContainsAny(path, "#\n\r") {
		return fmt.Errorf("wg-quick cannot read the name of the file %q: it has %%i, # or the end of a line", path)
	}
	return nil
}

func join(all []netip.Prefix) string {
	var texts []string
	for _, p := range all {
		texts = append(texts, p.String())
	}
	return strings.Join(texts, ", ")
}

// shell quotes a word for a shell, if it needs that.
func shell(word string) string {
	if !unsafe.MatchString(strings.ReplaceAll(word, "/", "")) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
