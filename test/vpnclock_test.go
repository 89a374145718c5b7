package test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"weir/internal/fw/rundir"
	"weir/internal/lab"
	"weir/internal/vpn/key"
	"weir/test/lib"
)

// handshakeAgain is after how long an unanswered first message is followed by another one (REKEY_TIMEOUT of the paper).
const handshakeAgain = 5 * time.Second

//	lan ── fw wan0 ══ wg0 ══ wan, a plain WireGuard
//
// The box's clock has gone back by an hour over a restart of weir vpn run: handshakes before it had a time that is yet to come. The peer
// takes none that is not later, and weir says a later one. Without the record of that, the peer does not answer.
func TestVPNClockOverRestart(t *testing.T) {
	weir.UnderTCX(t, func(b *lib.Box) {
		secret, public := vpnKeys(b)
		far := b.FarEnd(public, key.Secret{}, "10.9.0.1/32,192.168.1.0/24", "10.9.0.2/30", tunnelFar+"/16")
		b.IP(lab.WAN, "route add 192.168.1.0/24 dev "+lib.FarDevice)
		b.WeirRun(b.Rules(fmt.Sprintf(`wireguard wg0 key file "%s" address 10.9.0.1/30 engine userspace
peer far on wg0 key "%s" endpoint %s port %d allowed { 10.9.0.2 10.2.0.0/16 }
block
pass in on lan0
pass out
`, secret, far.Key, wanHost, far.Port)))
		record := filepath.Join(rundir.Folder(b.RunFolder()).VPN(), "stamps.json")
		if err := os.MkdirAll(filepath.Dir(record), 0o700); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(record, []byte(fmt.Sprintf("{\"sent\": %q}\n", time.Now().Add(time.Hour).Format(time.RFC3339Nano))), 0o600); err != nil {
			b.Fatal(err)
		}
		run := vpnRun(b)
		works := func() bool { return tunnelAnswers(b, lab.LAN, tunnelFar) }
		b.Until(10*time.Second, "the tunnel works", works)
		said := func() (r struct{ Sent time.Time }) {
			if err := rundir.ReadJSON(record, &r); err != nil {
				b.Fatal(err)
			}
			return r
		}
		for range 2 {
			before := said().Sent
			run.Kill()
			run = vpnRun(b)
			began := time.Now()
			b.Until(30*time.Second, "the tunnel works again", works)
			if took := time.Since(began); took > lib.Scaled(handshakeAgain) {
				b.Errorf("after a restart the tunnel worked after %v: the peer has not taken the first handshake", took)
			}
			b.Until(10*time.Second, "the time of that handshake is on record", func() bool { return said().Sent.After(before) })
		}
		run.Kill()
		if err := os.Remove(record); err != nil {
			b.Fatal(err)
		}
		run = vpnRun(b)
		for end := time.Now().Add(6 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
			if works() {
				b.Fatal("the peer takes a handshake of an earlier time: this story shows nothing")
			}
		}
		run.Kill()
	})
}
