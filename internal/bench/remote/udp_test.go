package remote

import (
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"
)

// TestOtherLengths: what is not as long as was agreed on does not count, but is
// charged: neither small datagrams nor large ones make a rate that was not there.
func TestOtherLengths(t *testing.T) {
	const payload = 466 // in a frame of 512
	server, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	client, err := net.Dial("udp4", server.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	u := &udpReceiver{tag: newTicket().tag(), payload: payload, overhead: overhead4}
	left := newAccount(1 << 20)
	ended := make(chan error, 1)
	go func() { ended <- u.receive(server, nil, left) }()
	charged := 0
	for i, n := range []int{payload, dataHeader, maxPayload, payload, 1472, payload} {
		d := datagram{kind: kindData, tag: u.tag, number: uint32(i)}
		if _, err := client.Write(append(d.append(nil), noise(n-dataHeader)...)); err != nil {
			t.Fatal(err)
		}
		charged += n + overhead4
	}
	for end := time.Now().Add(10 * time.Second); u.packets.Load() < 3 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	if got := 1<<20 - left.left.Load(); got != int64(charged) {
		t.Errorf("%d bytes were charged, want %d", got, charged)
	}
	if p, b := u.packets.Load(), u.bytes.Load(); p != 3 || b != 3*512 {
		t.Errorf("%d datagrams of %d bytes counted, want 3 of 1536", p, b)
	}
	server.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestOddRuns: a server gives no run whose frames are not those of its datagrams,
// or that no Ethernet carries, and speaks no more with who asks for one.
func TestOddRuns(t *testing.T) {
	key := NewKey()
	r := startServer(t, key, nil)
	for name, change := range map[string]func(*Run){
		"oversized":        func(r *Run) { r.Payload, r.Frame = maxPayload+1, maxPayload+1+overhead4 },
		"another payload":  func(r *Run) { r.Payload /= 2 },
		"negative payload": func(r *Run) { r.Payload = -r.Payload },
	} {
		c := eventually(t, r, key)
		asked := Case{UDP, Up, 1, 1e6, 1518}.request(r.addr.Addr(), time.Second)
		change(&asked)
		m, err := c.ask(t.Context(), &message{Run: &asked})
		var refused *RefusedError
		if !errors.As(err, &refused) {
			t.Errorf("%s: %v, %v; want a refusal", name, m, err)
		}
		if _, err := c.hear(t.Context()); err == nil {
			t.Errorf("%s: the session goes on", name)
		}
		c.close()
	}
}

// eventually connects when the client before has been seen to have gone.
func eventually(t *testing.T, r *running, key Key) *client {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		c, err := connect(t.Context(), r.addr, key, "test")
		if err == nil {
			return c
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}
