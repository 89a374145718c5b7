package lib

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"weir/internal/lab"
)

// HasESP reports whether this machine's kernel encrypts.
func HasESP() bool { return hasModules("esp4", "esp6", "gcm") }

// An ESP is a pair of security associations between fw and wan, which an administrator has set up by
// hand. Each direction has one at both ends.
type ESP struct {
	b     *Box
	ifID  int // of the XFRM interfaces; 0: for policies without one
	spi   int // of the associations in use, to the far end; the way back has the next one
	box   string
	far   string
	reqID int
}

// ESP sets up associations between the outer addresses of fw and wan.
func (b *Box) ESP(ifID int) *ESP {
	b.Helper()
	e := BareESP(b)
	e.ifID = ifID
	e.add(e.spi)
	return e
}

// BareESP is ESP without associations, for policies alone.
func BareESP(b *Box) *ESP {
	b.Helper()
	return &ESP{b: b, spi: 0x1000, reqID: 7, box: b.Addr(lab.FW, "wan0", false).String(), far: b.Addr(lab.WAN, "eth0", false).String()}
}

// option returns the argument that names the XFRM interfaces.
func (e *ESP) option() string {
	if e.ifID == 0 {
		return ""
	}
	return fmt.Sprintf(" if_id %d", e.ifID)
}

func (e *ESP) add(spi int) {
	e.b.Helper()
	for _, host := range []string{lab.FW, lab.WAN} {
		for n, ends := range [][2]string{{e.box, e.far}, {e.far, e.box}} {
			key := fmt.Sprintf("0x%040x", spi+n) // each has another
			e.b.IP(host, fmt.Sprintf("xfrm state add src %s dst %s proto esp spi %#x reqid %d mode tunnel flag af-unspec%s aead rfc4106(gcm(aes)) %s 128",
				ends[0], ends[1], spi+n, e.reqID, e.option(), key))
		}
	}
}

// Rekey makes new associations and ends the old ones, as a key exchange does.
func (e *ESP) Rekey() {
	e.b.Helper()
	old := e.spi
	e.spi += 2
	e.add(e.spi)
	e.remove(old)
}

// Remove ends the associations in use, and nothing replaces them.
func (e *ESP) Remove() {
	e.b.Helper()
	e.remove(e.spi)
}

func (e *ESP) remove(spi int) {
	for _, host := range []string{lab.FW, lab.WAN} {
		for n, ends := range [][2]string{{e.box, e.far}, {e.far, e.box}} {
			e.b.IP(host, fmt.Sprintf("xfrm state delete src %s dst %s proto esp spi %#x", ends[0], ends[1], spi+n))
		}
	}
}

// Policies returns the commands that add or delete the policies of one end, between the networks near
// and far. do is "add" or "delete".
func (e *ESP) Policies(host, do, near, far string) []string {
	own, peer := e.box, e.far
	if host == lab.WAN {
		own, peer = peer, own
	}
	var all []string
	for _, p := range []struct{ dir, src, dst, from, to string }{
		{"out", near, far, own, peer}, {"in", far, near, peer, own}, {"fwd", far, near, peer, own},
	} {
		command := fmt.Sprintf("xfrm policy %s src %s dst %s dir %s%s", do, p.src, p.dst, p.dir, e.option())
		if do != "delete" {
			command += fmt.Sprintf(" tmpl src %s dst %s proto esp reqid %d mode tunnel", p.from, p.to, e.reqID)
		}
		all = append(all, command)
	}
	return all
}

// Interface makes an XFRM interface at both ends, over which everything goes that is routed there.
func (e *ESP) Interface(name string) {
	e.b.Helper()
	under := map[string]string{lab.FW: "wan0", lab.WAN: "eth0"}
	for _, host := range []string{lab.FW, lab.WAN} {
		e.b.IP(host, fmt.Sprintf("link add %s mtu 1400 type xfrm dev %s if_id %d", name, under[host], e.ifID))
		for _, all := range []string{"0.0.0.0/0", "::/0"} {
			e.b.IP(host, e.Policies(host, "add", all, all)...)
		}
		e.b.IP(host, "link set "+name+" up")
	}
}

// ClearText has tcpdump look for packets on the wire to wan which a filter describes, until the
// returned function returns what it has seen.
func (b *Box) ClearText(filter string) (seen func() string) {
	b.Helper()
	p := b.Start(lab.WAN, "tcpdump", "-n", "-l", "-Q", "in", "-i", "eth0", filter)
	b.AwaitSaid(p, "listening on")
	return func() string {
		var lines []string
		for line := range strings.Lines(p.Said()) {
			if strings.Contains(line, "IP ") || strings.Contains(line, "IP6 ") {
				lines = append(lines, line)
			}
		}
		return strings.Join(lines, "")
	}
}

// Unencrypted has nftables of wan count what comes in there from networks and was not encrypted, until the
// returned function says how many packets that were; "": none. tcpdump cannot tell: without an interface of its
// own, it shows what was encrypted once more, in clear.
func (b *Box) Unencrypted(networks ...string) (seen func() string) {
	b.Helper()
	rules := "table inet unencrypted {\n\tchain in {\n\t\ttype filter hook prerouting priority raw;\n"
	for _, n := range networks {
		family := "ip"
		if strings.Contains(n, ":") {
			family = "ip6"
		}
		rules += fmt.Sprintf("\t\t%s saddr %s meta ipsec missing counter\n", family, n)
	}
	file := filepath.Join(b.TempDir(), "unencrypted.nft")
	if err := os.WriteFile(file, []byte(rules+"\t}\n}\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	b.Run(lab.WAN, "nft", "-f", file)
	return func() string {
		var lines []string
		for line := range strings.Lines(b.Run(lab.WAN, "nft", "list", "table", "inet", "unencrypted")) {
			if strings.Contains(line, "counter") && !strings.Contains(line, "packets 0 ") {
				lines = append(lines, line)
			}
		}
		return strings.Join(lines, "")
	}
}
