package cli

import (
	"strings"
	"testing"

	"weir/internal/host/doctor"
)

// TestFarEndCannotControlTerminal checks that what a peer says is printed without control
// characters.
func TestFarEndCannotControlTerminal(t *testing.T) {
	evil := "wg\x1b]0;owned\a\x1b[2J\u009b31m\u202e"
	both := bothEnds{VPN: &doctor.VPN{}, Far: []farEnd{
		{Peer: "far", Tunnel: "wg0", Says: &doctor.VPN{Tunnels: []doctor.VPNTunnel{{
			Interface: evil, Workers: []doctor.WorkerPlace{{Allowed: evil}}, Limits: []doctor.VPNLimit{{Says: "cpu3 is full" + evil, Remedy: evil}},
		}}, Missing: []string{evil}}},
		{Peer: "other", Tunnel: "wg0", Error: "it does not tell"},
	}}
	var out strings.Builder
	if err := both.print(&out); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(out.String(), "\x1b\a\u009b\u202e") || !strings.Contains(out.String(), "cpu3 is full") || !strings.Contains(out.String(), "other of wg0:\nit does not tell\n") {
		t.Errorf("%q", out.String())
	}
}
