package device

import (
	"bytes"
	"sync"
	"testing"
	"time"
)

// sessions returns two peers that have made a handshake: the one that began it is a device of the first.
func sessions(t testing.TB) (a, b *Peer) {
	t.Helper()
	ends := [2]*Device{}
	for i := range ends {
		sk, err := newPrivateKey()
		if err != nil {
			t.Fatal(err)
		}
		ends[i] = NewDevice(noNetwork{}, DefaultMTU, NewLogger(LogLevelSilent, ""))
		if err := ends[i].SetPrivateKey(sk); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(ends[i].Close)
	}
	var err error
	if a, err = ends[0].NewPeer(ends[1].staticIdentity.publicKey); err != nil {
		t.Fatal(err)
	}
	if b, err = ends[1].NewPeer(ends[0].staticIdentity.publicKey); err != nil {
		t.Fatal(err)
	}
	a.Start()
	b.Start()
	first, err := ends[0].CreateMessageInitiation(a)
	if err != nil || ends[1].ConsumeMessageInitiation(first, &ends[1].staticIdentity) != b {
		t.Fatalf("the first message of a handshake is not taken: %v", err)
	}
	second, err := ends[1].CreateMessageResponse(b)
	if err != nil || ends[0].ConsumeMessageResponse(second, 0) != a {
		t.Fatalf("the second message of a handshake is not taken: %v", err)
	}
	for _, p := range []*Peer{a, b} {
		if err := p.BeginSymmetricSession(); err != nil {
			t.Fatal(err)
		}
	}
	return a, b
}

// Nobody gets a number that somebody else got, and none beyond the last.
func TestReserve(t *testing.T) {
	for _, from := range []uint64{0, RejectAfterMessages - 20000} {
		k := &Keypair{}
		k.sendNonce.Store(from)
		var mu sync.Mutex
		var all sync.WaitGroup
		taken := map[uint64]bool{}
		for i := range 8 {
			all.Add(1)
			go func() {
				defer all.Done()
				for range 2000 {
					n := 1 + i*8
					first, ok := k.Reserve(n)
					if !ok {
						continue
					}
					mu.Lock()
					for j := range uint64(n) {
						if taken[first+j] || first+j >= RejectAfterMessages || first+j < from {
							t.Errorf("number %d is taken twice, or is none", first+j)
						}
						taken[first+j] = true
					}
					mu.Unlock()
				}
			}()
		}
		all.Wait()
		if k.sendNonce.Load() > RejectAfterMessages {
			t.Errorf("from %d, the counter ends at %d", from, k.sendNonce.Load())
		}
		if from > 0 {
			if _, ok := k.Reserve(1); ok || len(taken) < 19900 {
				t.Errorf("of the last 20000 numbers %d were given", len(taken))
			}
		}
	}
}

// Near the end of its numbers a session asks for another, and after the end it sends nothing.
func TestEndOfNumbers(t *testing.T) {
	a, _ := sessions(t)
	a.device.state.state.Store(uint32(deviceStateUp))
	a.endpoint.Store(&Endpoint{})
	k := a.keypairs.Current()
	began := func() bool {
		a.handshake.mutex.RLock()
		defer a.handshake.mutex.RUnlock()
		return a.handshake.state == handshakeInitiationCreated
	}
	if a.Sending(time.Now()) != k || began() {
		t.Fatal("a new session is not used")
	}
	k.sendNonce.Store(RekeyAfterMessages + 1)
	a.Leaving()
	a.Sent(100)
	if !began() {
		t.Error("after 2^60 messages, no handshake begins")
	}
	k.sendNonce.Store(RejectAfterMessages - 1)
	if first, ok := k.Reserve(1); !ok || first != RejectAfterMessages-1 {
		t.Errorf("the last number is %d, %v", first, ok)
	}
	if _, ok := k.Reserve(1); ok {
		t.Error("there is a number after the last")
	}
	if a.Sending(time.Now()) != nil {
		t.Error("a session without numbers is used")
	}
}

// The answer to a message may come before the call that has sent it returns: the timers that it stops were set.
func TestTimersOfStaged(t *testing.T) {
	a, _ := sessions(t)
	a.device.state.state.Store(uint32(deviceStateUp))
	a.endpoint.Store(&Endpoint{})
	sent := 0
	a.device.net.network = asking(func() {
		if sent++; !a.Unanswered() {
			t.Error("when a packet is sent, no answer is expected yet")
		}
	})
	a.Stage([]byte("a packet"))
	a.SendStagedPackets()
	if sent != 1 {
		t.Fatalf("%d messages were sent", sent)
	}
	a.device.net.network = asking(func() {
		if sent++; !a.timers.retransmitHandshake.IsPending() {
			t.Error("when a handshake begins, no answer is expected yet")
		}
	})
	if err := a.SendHandshakeInitiation(false); err != nil || sent != 2 {
		t.Fatalf("%d messages were sent, %v", sent, err)
	}
}

// asking is a network that is asked for each message.
type asking func()

func (asking) Open(port uint16) (uint16, error) { return port, nil }
func (asking) Close() error                     { return nil }
func (ask asking) Send([]byte, *Endpoint) error { ask(); return nil }

// The zone of an address may be a number or a name.
func TestZones(t *testing.T) {
	for _, c := range []struct {
		text  string
		scope uint32
	}{{"[fe80::1%7]:51820", 7}, {"[fe80::1%lo]:51820", 1}, {"[fe80::1]:51820", 0}, {"192.0.2.1:51820", 0}} {
		e, err := ParseEndpoint(c.text)
		if err != nil || e.Scope != c.scope || e.Remote.Port() != 51820 || e.Remote.Addr().Zone() != "" {
			t.Errorf("%s is read as %+v, %v", c.text, e, err)
			continue
		}
		if again, err := ParseEndpoint(e.String()); err != nil || *again != *e {
			t.Errorf("%s is written as %s", c.text, e)
		}
	}
	if e, err := ParseEndpoint("[fe80::1%nowhere0]:51820"); err == nil {
		t.Errorf("a zone that is none is read as %+v", e)
	}
}

// Old keys are neither sent with nor received with.
func TestEndOfTime(t *testing.T) {
	a, b := sessions(t)
	k := a.keypairs.Current()
	index := k.localIndex
	if p, got := a.device.Session(index, time.Now()); p != a || got != k {
		t.Fatal("a session is not found")
	}
	late := time.Now().Add(RejectAfterTime + time.Second)
	if _, got := a.device.Session(index, late); got != nil {
		t.Error("messages of an old session are taken")
	}
	if a.Sending(late) != nil {
		t.Error("messages are sent with an old session")
	}
	if b.keypairs.Current() != nil {
		t.Error("the end that answered sends before it has heard that its answer came")
	}
}

// What is sealed is opened, padded to 16 bytes and not beyond the MTU. Bytes behind the packet are not changed.
func TestSealAndOpen(t *testing.T) {
	a, b := sessions(t)
	from, to := a.keypairs.Current(), b.keypairs.next.Load()
	var nonce Nonce
	for n := range 1500 {
		room := bytes.Repeat([]byte{7}, n+PaddingMultiple)
		number, ok := from.Reserve(1)
		if !ok {
			t.Fatal("there is no number")
		}
		message := from.Seal(make([]byte, 2000), room[:n], number, DefaultMTU, &nonce)
		if !bytes.Equal(room, bytes.Repeat([]byte{7}, n+PaddingMultiple)) {
			t.Fatalf("bytes behind a packet of %d are changed", n)
		}
		if len(message) != MessageSize(n, DefaultMTU) || n <= DefaultMTU && len(message) > DefaultMTU+MessageTransportSize {
			t.Fatalf("the message of %d bytes has %d", n, len(message))
		}
		spoilt := append([]byte{}, message...)
		spoilt[len(spoilt)-1]++
		if packet, _ := to.Open(spoilt, &nonce); packet != nil {
			t.Fatal("a message that was changed is opened")
		}
		packet, got := to.Open(message, &nonce)
		if packet == nil || got != number || !bytes.Equal(packet[:n], room[:n]) || len(packet[n:]) > 15 || !bytes.Equal(packet[n:], make([]byte, len(packet)-n)) {
			t.Fatalf("the message of %d bytes becomes %d, number %d", n, len(packet), got)
		}
		if !to.Accept(got) || to.Accept(got) {
			t.Fatalf("number %d is not accepted once", got)
		}
	}
}

// Whatever is said to be a message of a handshake, only the one that a peer has made begins one.
func FuzzHandshake(f *testing.F) {
	a, b := sessions(f)
	genuine, err := a.device.CreateMessageInitiation(a)
	if err != nil {
		f.Fatal(err)
	}
	first := make([]byte, MessageInitiationSize)
	if err := genuine.marshal(first); err != nil {
		f.Fatal(err)
	}
	a.cookieGenerator.AddMacs(first)
	f.Add(first)
	f.Add(first[:MessageResponseSize])
	f.Add(first[:MessageCookieReplySize])
	f.Fuzz(func(t *testing.T, message []byte) {
		if len(message) < 4 || len(message) > MessageHandshakeSize {
			return
		}
		b.handshake.mutex.Lock()
		b.handshake.Clear()
		b.handshake.mutex.Unlock()
		for kind := range uint32(5) {
			elem := handshakeElement{msgType: kind, size: len(message)}
			copy(elem.packet[:], message)
			if kind == MessageInitiationType && len(message) != MessageInitiationSize || kind == MessageResponseType && len(message) != MessageResponseSize {
				continue // Handshake does not take it
			}
			b.device.handle(&elem)
		}
		b.handshake.mutex.RLock()
		defer b.handshake.mutex.RUnlock()
		if b.handshake.state != handshakeZeroed && !bytes.Equal(message[:132], first[:132]) {
			t.Errorf("%x begins a handshake", message) // but for its second code, which nobody has asked for
		}
	})
}
