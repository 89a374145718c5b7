package userspace

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"weir/internal/vpn/device"
	"weir/internal/vpn/tunnel"
)

// lanesOf returns the lanes of the end's link.
func (e *end) lanesOf() (all []*device.Peer) {
	e.wides.mu.Lock()
	defer e.wides.mu.Unlock()
	for _, l := range e.wides.links {
		all = append(all, l.peer.Lanes()...)
	}
	return all
}

// later has the end look after its links as it would after a while.
func (e *end) later(after time.Duration) {
	e.wides.mu.Lock()
	defer e.wides.mu.Unlock()
	for _, l := range e.wides.links {
		l.look(time.Now().Add(after))
	}
}

func running(peers []*device.Peer) bool {
	for _, p := range peers {
		if p.Running() {
			return true
		}
	}
	return false
}

// Another preshared key at one end ends the lanes of before at that end, though the other end knows nothing of it.
func TestRevoked(t *testing.T) {
	a, b := twoEnds(t, 3, 3)
	uses(t, 3, 5*time.Second, a, b)
	before := a.lanesOf()
	c := *a.applied
	c.Peers = append([]tunnel.Peer{}, c.Peers...)
	c.Peers[0].Preshared = b.secret
	if err := a.Apply(&c); err != nil {
		t.Fatal(err)
	}
	if a.later(25 * time.Second); !running(before) {
		t.Error("the lanes end before others can work")
	}
	if a.later(31 * time.Second); running(before) {
		t.Error("lanes work with a key that is not configured any more")
	}
}

// Lanes do not outlive the session of their first tunnel for long.
func TestOrphans(t *testing.T) {
	a, b := twoEnds(t, 3, 3)
	uses(t, 3, 5*time.Second, a, b)
	before := a.lanesOf()
	if a.later(orphanPause - time.Second); !running(before) {
		t.Error("the lanes end too early")
	}
	if a.later(orphanPause + time.Second); running(before) {
		t.Error("the lanes go on without a first tunnel")
	}
}

// A first tunnel that does not work is left out, and used again when it does.
func TestDeadFirst(t *testing.T) {
	a, b := twoEnds(t, 3, 3)
	traffic := exchange(a, b)
	uses(t, 3, 5*time.Second, a, b)
	time.Sleep(time.Second) // nothing is left to agree on
	nowhere := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), freePorts(t, 1))
	for there, tries := 0, 0; there < 2; tries++ { // what is under way takes an end back
		there = 0
		for i, e := range []*end{a, b} {
			if e.link().Ports[0].Endpoint == nowhere {
				there++
			} else if err := e.Move([]*end{b, a}[i].secret.Public(), nowhere); err != nil || tries > 100 {
				traffic.stop()
				t.Fatalf("an end does not stay where it was moved to: %v", err)
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	uses(t, 2, 5*time.Second, a, b)
	if w := a.link(); w.Ports[0].Works || !w.Ports[1].Works || !w.Ports[2].Works || w.Why == "" {
		t.Errorf("%+v", w)
	}
	a.wides.mu.Lock()
	for _, l := range a.wides.links { // as when a lane fails, too: nothing can be asked now
		l.of.Again(time.Now())
		if l.of.Agreed() {
			t.Error("the ends agree without an answer")
		}
	}
	a.wides.mu.Unlock()
	time.Sleep(time.Second)
	_, _, longest := traffic.stop()
	t.Logf("longest %v", longest)
	if longest > 3500*time.Millisecond {
		t.Errorf("a connection stood still for %v", longest)
	}
	traffic = exchange(a, b)
	time.Sleep(time.Second)
	if sent, came, _ := traffic.stop(); came[0] < sent[0]*95/100 || came[1] < sent[1]*95/100 {
		t.Errorf("connections go by a port that does not work: of %v datagrams %v came", sent, came)
	}
	if err := a.Move(b.secret.Public(), netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), b.port)); err != nil {
		t.Fatal(err)
	}
	uses(t, 3, 10*time.Second, a, b)
}

// said returns how often the end has said something of its peer.
func (e *end) said(text string) (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, r := range e.remarks {
		if strings.HasPrefix(r, "peer(") && strings.HasSuffix(r, ") - "+text) {
			n++
		}
	}
	return n
}

// A first tunnel is renewed for what lanes carry. Notes and handshakes of lanes are no data: for these it is not.
func TestFirstIsRenewed(t *testing.T) {
	a, b := twoEnds(t, 3, 3)
	uses(t, 3, 5*time.Second, a, b)
	time.Sleep(5200 * time.Millisecond) // no handshake begins within 5 s of another
	for _, e := range []*end{a, b} {
		for _, lane := range e.lanesOf() {
			if sent, received := lane.Own(); sent != 0 || received != 0 {
				t.Errorf("a lane that is not used has sent %d bytes and received %d", sent, received)
			}
		}
	}
	soon := device.RejectAfterTime - 20*time.Second
	const begins = "Sending handshake initiation"
	before := a.said(begins)
	a.later(soon)
	if a.later(soon + yieldPause); a.said(begins) != before {
		t.Error("the first tunnel is renewed though nothing is carried")
	}
	for flow := range 16 {
		a.send(b, flow, flow)
	}
	time.Sleep(200 * time.Millisecond)
	a.later(soon)
	if a.later(soon + yieldPause); a.said(begins) != before+1 {
		t.Error("the first tunnel is not renewed while lanes carry data")
	}
}

// Lanes leave from where the first tunnel does, also while nothing comes by them.
func TestOtherAddress(t *testing.T) {
	a, b := twoEnds(t, 3, 3)
	uses(t, 3, 5*time.Second, a, b)
	other := netip.MustParseAddr("127.0.0.2")
	if err := a.Move(b.secret.Public(), netip.AddrPortFrom(other, b.port)); err != nil {
		t.Fatal(err)
	}
	a.Recall(b.secret.Public())
	for until := time.Now().Add(3 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		there := 0
		for _, lane := range b.lanesOf() {
			if lane.Endpoint().Local == other {
				there++
			}
		}
		if there == 2 {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("%d of 2 lanes leave from %v", there, other)
		}
	}
}
