package test

import (
	"fmt"
	"strings"
	"testing"

	"weir/internal/lab"
	"weir/test/lib"
)

// strangersHandshake is a client that reuses a port while the server holds the old
// connection in TIME_WAIT. Its kernel does not know its address, so it does not interfere.
const strangersHandshake = `
import time
def ask(segment, want, timeout):
    s = AsyncSniffer(iface='eth0', count=1, lfilter=lambda p: TCP in p and p[IP].src == wan and want(p[TCP].flags))
    s.start()
    time.sleep(0.3)
    sendp(frame/IP(src=me, dst=wan)/segment, iface='eth0', verbose=0)
    s.join(timeout=timeout)
    if s.running:
        s.stop()
    return s.results[0][TCP] if s.results else None
def tcp(flags, seq, ack=0):
    return TCP(sport=4000, dport=8080, flags=flags, seq=seq, ack=ack)
first = 3000000000
opened = ask(tcp('S', first), lambda f: f == 'SA', 10)
closed = ask(tcp('A', first+1, opened.seq+1), lambda f: f.F, 10)
ask(tcp('FA', first+1, closed.seq+1+len(closed.payload)), lambda f: f == 'A', 10)
for attempt in range(4):
    if ask(tcp('S', 1000000000), lambda f: f == 'SA', 2):
        print('accepted at attempt', attempt)
        break
`

//	lan ── SYN of a used port ──▶ fw ──▶ wan: TIME_WAIT
//	                              fw ◀── ACK of the old connection
//	                              fw ─── RST ──▶ wan
//	lan ── SYN ─────────────────▶ fw ──▶ wan ── SYN-ACK ──▶
//
// A server's answer for an older connection is answered for the client, whom it never
// reaches. The client's next SYN is accepted.
func TestStalledHandshake(t *testing.T) {
	weir.BothAtOnce(t, func(b *lib.Box) {
		b.WeirRun(b.Rules("match out on wan0 inet nat-to (wan0) static-port\nblock\npass in on lan0\npass out on wan0\n"))
		b.Listen(lab.WAN, 8080, "socat", "TCP-LISTEN:8080,fork,reuseaddr", "EXEC:true")
		const stranger = "192.168.1.77"
		b.Run(lab.FW, "ip", "neigh", "add", stranger, "lladdr", lanMAC, "dev", "lan0")
		out := b.Scapy(lab.LAN, fmt.Sprintf("me, wan = %q, %q\nframe = Ether(dst=%q, src=%q)\n", stranger, wanHost, fwLANMAC, lanMAC)+strangersHandshake)
		if !strings.Contains(out, "accepted at attempt 1") {
			b.Errorf("the client said: %s\n%s", out, b.Weir("info"))
		}
	})
}
