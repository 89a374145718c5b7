package test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weir/internal/lab"
	"weir/test/lib"
)

const (
	secondWANHost  = "203.0.113.9"
	secondWANHost6 = "2001:db8:113::9"
)

// endpointRules translate the first client with endpoint-independent, and the second one
// without.
const endpointRules = `set skip on lo
match out on wan0 inet from 192.168.1.10 nat-to (wan0) endpoint-independent
match out on wan0 inet6 from fd00:1::10 nat-to (wan0) endpoint-independent
match out on wan0 inet from 192.168.1.20 nat-to (wan0)
pass
`

//	lan (two clients) ──── fw ──── wan (a STUN server with two addresses)
//
// A STUN client finds out whether its NAT maps independently of the endpoint (RFC 5780, 4.3).
// The mapping goes on over a reload and the daemon's death, and ends with its states.
func TestEndpointIndependent(t *testing.T) {
	weir.Both(t, func(b *lib.Box) {
		b.Address(lab.LAN, "eth0", "192.168.1.20/24")
		b.Address(lab.WAN, "eth0", secondWANHost+"/24")
		b.Address(lab.WAN, "eth0", secondWANHost6+"/64")
		daemon := b.WeirRun(endpointRules)
		b.Listen(lab.WAN, 3478, "turnserver", "-n", "-z", "--no-tls", "--no-dtls", "--no-cli", "--log-file", "stdout",
			"--pidfile", filepath.Join(b.TempDir(), "pid"), "-L", wanHost, "-L", secondWANHost, "-L", wanHost6, "-L", secondWANHost6)
		discover := func(what, from, to string, port int, want string) {
			b.Helper()
			var said string
			for range 3 { // a busy machine may answer too late
				if said = b.Run(lab.LAN, "turnutils_natdiscovery", what, "-L", from, "-l", fmt.Sprint(port), to); strings.Contains(said, want) {
					return
				}
			}
			b.Errorf("%s, port %d: the client does not say %q:\n%s", from, port, want, said)
		}
		discover("-m", lanHost, wanHost, 5000, "NAT with Endpoint Independent Mapping!")
		discover("-m", lanHost6, wanHost6, 5000, "NAT with Endpoint Independent Mapping!")
		discover("-m", "192.168.1.20", wanHost, 5000, "Address and Port Dependent Mapping!")
		discover("-f", lanHost, wanHost, 5001, "Address and Port Dependent Filtering!")
		ports := outsidePorts(b, lanHost)
		b.Weir("load", b.Rules(endpointRules+"pass proto 99\n"))
		daemon.Kill()
		b.Run(lab.LAN, "sh", "-c", "echo x | socat - UDP4-SENDTO:"+secondWANHost+":5555,bind="+lanHost+":5001")
		if after := outsidePorts(b, lanHost); len(ports) != 1 || !slices.Equal(ports, after) {
			b.Errorf("port 5001 was %v outside, and is %v", ports, after)
		}
	})
}

// outsidePorts returns the ports that a client of the LAN has outside.
func outsidePorts(b *lib.Box, client string) (ports []uint16) {
	b.Helper()
	for _, s := range b.States() {
		if s.Proto != "udp" || s.Src.Addr.String() != client || s.Src.Port != 5001 || !s.Src.NewAddr.IsValid() {
			continue
		}
		if port := s.Src.NewPort; !slices.Contains(ports, port) {
			ports = append(ports, port)
		}
	}
	return ports
}
