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

// pairsSwanctl is a far end that agrees to one network at either end at a time, as Cisco's ASA does.
const pairsSwanctl = `connections {
	near {
		version = 2
		proposals = aes256gcm16-prfsha384-ecp384
		local {
			auth = psk
			id = ` + ipsecFar + `
		}
		remote {
			auth = psk
			id = ` + ipsecNear + `
		}
		children {
			first {
				local_ts = 10.2.0.0/16
				remote_ts = 192.168.1.0/24
				esp_proposals = aes256gcm16-ecp384
				if_id_in = 42
				if_id_out = 42
			}
			second {
				local_ts = 10.3.0.0/16
				remote_ts = 192.168.1.0/24
				esp_proposals = aes256gcm16-ecp384
				if_id_in = 42
				if_id_out = 42
			}
		}
	}
}
secrets {
	ike-near {
		id = ` + ipsecNear + `
		secret = "` + ipsecPSK + `"
	}
}
`

//	lan ── lan0 fw wan0 ══ ipsec0 in ESP ══ wan, a strongSwan with keys for each pair of networks
//
// A peer that agrees to one pair of networks at a time gives keys for the first only; weir vpn check says so. With per-pair
// there are keys for each.
func TestIPsecPairs(t *testing.T) {
	needESP(t, lib.XFRM)
	weir.UnderTCX(t, func(b *lib.Box) {
		psk := filepath.Join(b.TempDir(), "far.psk")
		if err := os.WriteFile(psk, []byte(ipsecPSK+"\n"), 0o600); err != nil {
			b.Fatal(err)
		}
		far := b.Charon(lab.WAN)
		far.WriteFile("swanctl.conf", pairsSwanctl)
		far.Swanctl("--load-all", "--noprompt")
		b.IP(lab.WAN, "link add far0 type xfrm if_id 42", "link set far0 up mtu 1400")
		b.Address(lab.WAN, "far0", "10.2.0.1/16", "10.3.0.1/16")
		b.IP(lab.WAN, "route replace 192.168.1.0/24 dev far0")
		rules := func(option string) string {
			return b.Rules(fmt.Sprintf(`ikev2 ipsec0 address 192.168.1.77/32 peer %s srcid %s dstid %s psk file "%s" from 192.168.1.0/24 to { 10.2.0.0/16 10.3.0.0/16 } %s
block
pass in on lan0
pass out
pass in on wan0 proto esp
pass in on wan0 proto udp to port { 500 4500 }
pass in on ipsec0 proto icmp
`, wanHost, ipsecNear, ipsecFar, psk, option))
		}
		clear := b.ClearText("net 10.2.0.0/15")
		b.WeirRun(rules(""))
		ipsecRun(b, b.Charon(lab.FW))
		b.Until(30*time.Second, "the first network is reached", func() bool { return tunnelAnswers(b, lab.LAN, tunnelFar) })
		b.Until(30*time.Second, "weir vpn check says that there are keys for the first only", func() bool {
			out, status := b.WeirStatus("vpn", "check", "ipsec0")
			return status == 1 && strings.Contains(out, "wrong  keys: the peer has agreed to 10.2.0.0/16 only; nothing goes to 10.3.0.0/16")
		})
		b.Weir("load", rules("per-pair"))
		b.Until(30*time.Second, "both networks are reached", func() bool {
			return tunnelAnswers(b, lab.LAN, tunnelFar) && tunnelAnswers(b, lab.LAN, "10.3.0.1")
		})
		for _, from := range []string{tunnelFar, "10.3.0.1"} {
			b.Run(lab.WAN, "ping", "-n", "-c", "2", "-i", "0.1", "-W", "2", "-I", from, lanHost)
		}
		b.Until(30*time.Second, "weir vpn check finds nothing wrong", func() bool {
			out, _ := b.WeirStatus("vpn", "check", "ipsec0", "--to", "10.3.0.1")
			return !strings.Contains(out, "wrong")
		})
		if seen := clear(); seen != "" {
			b.Errorf("packets left in clear:\n%s", seen)
		}
	})
}
