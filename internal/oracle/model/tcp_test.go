package model

import (
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"weir/internal/fw/reason"
	"weir/internal/fw/state"
	"weir/pf/ast"
	"weir/pf/resolve"
)

// tcpSegment is a segment between client (dir 0) and server, as a test writes it.
type tcpSegment struct {
	back   bool
	flags  string // of "SAFR"
	seq    uint32
	ack    uint32
	data   int
	window uint16
	scale  int // of a SYN's option, 0: none
}

func (g tcpSegment) bytes(t *testing.T) []byte {
	t.Helper()
	l := &layers.TCP{Seq: g.seq, Ack: g.ack, Window: g.window, SrcPort: 4000, DstPort: 80}
	src, dst := client, server
	if g.back {
		src, dst, l.SrcPort, l.DstPort = server, client, 80, 4000
	}
	for _, f := range g.flags {
		switch f {
		case 'S':
			l.SYN = true
		case 'A':
			l.ACK = true
		case 'F':
			l.FIN = true
		case 'R':
			l.RST = true
		}
	}
	if g.scale > 0 {
		l.Options = []layers.TCPOption{{OptionType: layers.TCPOptionKindNop},
			{OptionType: layers.TCPOptionKindWindowScale, OptionLength: 3, OptionData: []byte{byte(g.scale)}}}
	}
	return frame(t, ip(src, dst, layers.IPProtocolTCP), l, gopacket.Payload(make([]byte, g.data)))
}

// step is a segment and its expected result. Without a phase the state is gone or
// unchanged.
type step struct {
	tcpSegment
	verdict Verdict
	reason  reason.Reason
	phase   state.Phase
}

func (w *world) play(steps ...step) {
	w.t.Helper()
	for i, s := range steps {
		index := uint32(lanIndex)
		if s.back {
			index = wanIndex
		}
		o := w.Handle(&Frame{Hook: XDP, Interface: index, Bytes: s.bytes(w.t)}, nil)
		if o.Verdict != s.verdict || o.Reason != s.reason {
			w.t.Fatalf("segment %d: verdict %d (%s), want %d (%s); states %+v", i, o.Verdict, o.Reason, s.verdict, s.reason, w.States())
		}
		if states := w.States(); len(states) == 0 || states[len(states)-1].Phase != s.phase {
			w.t.Fatalf("segment %d: states %+v, want phase %s", i, states, s.phase)
		}
	}
}

func seg(back bool, flags string, seq, ack uint32, data int) tcpSegment {
	return tcpSegment{back: back, flags: flags, seq: seq, ack: ack, data: data, window: 1000}
}

func ok(g tcpSegment, p state.Phase) step  { return step{g, Redirect, reason.State, p} }
func first(g tcpSegment) step              { return step{g, Redirect, reason.Rule, state.TCPFirst} }
func bad(g tcpSegment, p state.Phase) step { return step{g, Drop, reason.StateMismatch, p} }

// opened returns a connection after its handshake: both ends at 101 and 501.
func opened(t *testing.T) *world {
	w := newWorld(t, &resolve.Rule{Flags: resolve.TCPFlags{Set: flagSYN, Mask: flagSYN | flagACK}})
	w.play(first(seg(false, "S", 100, 0, 0)),
		ok(seg(true, "SA", 500, 101, 0), state.TCPOpening),
		ok(seg(false, "A", 101, 501, 0), state.TCPEstablished))
	return w
}

func TestHandshakeAndClose(t *testing.T) {
	w := opened(t)
	w.play(
		ok(seg(false, "A", 101, 501, 200), state.TCPEstablished),
		ok(seg(true, "A", 501, 301, 900), state.TCPEstablished),
		ok(seg(false, "FA", 301, 1401, 0), state.TCPClosing),
		ok(seg(true, "A", 1401, 302, 0), state.TCPClosing),
		ok(seg(true, "FA", 1401, 302, 0), state.TCPFinWait),
		ok(seg(false, "A", 302, 1402, 0), state.TCPClosed),
	)
	if s := w.only(); s.Flow[0].Packets != 5 || s.Flow[1].Packets != 4 || s.Flow[0].SeqLo != 302 || s.Flow[1].SeqLo != 1402 {
		t.Errorf("state %+v", s)
	}
}

func TestSynRetransmission(t *testing.T) {
	w := newWorld(t, pass())
	w.play(first(seg(false, "S", 100, 0, 0)),
		ok(seg(false, "S", 100, 0, 0), state.TCPOpening),
		ok(seg(true, "SA", 500, 101, 0), state.TCPOpening),
		ok(seg(true, "SA", 500, 101, 0), state.TCPOpening),
		ok(seg(false, "A", 101, 501, 0), state.TCPEstablished),
		ok(seg(false, "A", 101, 501, 100), state.TCPEstablished),
		ok(seg(false, "A", 101, 501, 100), state.TCPEstablished))
}

func TestWindow(t *testing.T) {
	w := opened(t)
	w.play(
		bad(seg(false, "A", 101+1001, 501, 1), state.TCPEstablished), // past what the server granted
		bad(seg(false, "A", 101, 501, 1001), state.TCPEstablished),
		bad(seg(false, "A", 101, 501+70000, 10), state.TCPEstablished), // acknowledges what was never sent
		ok(seg(false, "A", 101, 501, 1000), state.TCPEstablished),
		bad(seg(false, "A", 100, 501, 10), state.TCPEstablished), // older than a whole window
		ok(seg(false, "A", 102, 501, 10), state.TCPEstablished),
		ok(seg(true, "A", 501, 1101, 0), state.TCPEstablished), // opens the window further
		ok(seg(false, "A", 1101, 501, 1000), state.TCPEstablished),
	)
}

func TestScale(t *testing.T) {
	w := newWorld(t, pass())
	syn, answer := seg(false, "S", 100, 0, 0), seg(true, "SA", 500, 101, 0)
	syn.scale, answer.scale = 3, 40 // 40 counts as 14
	w.play(first(syn), ok(answer, state.TCPOpening), ok(seg(false, "A", 101, 501, 0), state.TCPEstablished))
	s := w.only()
	if s.Flow[0].WScale != 3 || s.Flow[1].WScale != 14 || s.Flow[0].MaxWin != 8000 || s.Flow[1].MaxWin != 1000 {
		t.Errorf("flows %+v", s.Flow)
	}
	w.play(ok(seg(true, "A", 501, 101, 1400), state.TCPEstablished), ok(seg(true, "A", 8000, 101, 501), state.TCPEstablished),
		bad(seg(true, "A", 8501, 101, 1), state.TCPEstablished))
	// only one end offers a scale: nobody scales
	w = newWorld(t, pass())
	answer.scale = 0
	w.play(first(syn), ok(answer, state.TCPOpening), ok(seg(false, "A", 101, 501, 0), state.TCPEstablished))
	if s := w.only(); s.Flow[0].MaxWin != 1000 {
		t.Errorf("flows %+v", s.Flow)
	}
}

func TestReset(t *testing.T) {
	w := opened(t)
	w.play(
		ok(seg(true, "A", 501, 101, 500), state.TCPEstablished),
		bad(seg(true, "RA", 503, 101, 0), state.TCPEstablished), // a blind one
		bad(seg(true, "RA", 999, 101, 0), state.TCPEstablished),
		ok(seg(true, "RA", 1001, 101, 0), state.TCPClosed),
	)
	if s := w.only(); s.Flow[0].Peer != state.PeerTimeWait || s.Flow[1].Peer != state.PeerTimeWait {
		t.Errorf("flows %+v", s.Flow)
	}
	// the reply to a SYN at a closed port: it has no sequence number of its own
	w = newWorld(t, pass())
	w.play(first(seg(false, "S", 100, 0, 0)), ok(seg(true, "RA", 0, 101, 0), state.TCPClosed))
}

// A blind SYN-ACK with a wrong acknowledgement sets no window.
func TestBlindSYNACK(t *testing.T) {
	w := newWorld(t, pass())
	w.play(first(seg(false, "S", 100, 0, 0)), bad(seg(true, "SA", 500, 100000, 0), state.TCPFirst))
	if s := w.only(); s.Flow[1].Flags != 0 || s.Flow[1].SeqLo != 0 {
		t.Errorf("flow %+v", s.Flow[1])
	}
}

func TestSynInState(t *testing.T) {
	w := opened(t)
	w.play(ok(seg(false, "S", 90000, 0, 0), state.TCPEstablished)) // the end host answers it
	if s := w.only(); s.Flow[0].SeqLo != 101 || s.Flow[0].Packets != 3 {
		t.Errorf("flow %+v", s.Flow[0])
	}
	w.play(ok(seg(true, "RA", 501, 101, 0), state.TCPClosed),
		first(seg(false, "S", 90000, 0, 0)))
	if s := w.only(); s.Flow[0].SeqLo != 90001 || s.Flow[0].Packets != 1 {
		t.Errorf("the new connection's flow %+v", s.Flow[0])
	}
}

func TestStrangersNeedTheirFlags(t *testing.T) {
	w := newWorld(t, block(), &resolve.Rule{Flags: resolve.TCPFlags{Set: flagSYN, Mask: flagSYN | flagACK}})
	w.in(lanIndex, seg(false, "A", 100, 500, 10).bytes(t), Drop, reason.Block)
	w.in(lanIndex, seg(false, "SA", 100, 500, 0).bytes(t), Drop, reason.Block)
	// picked up in the middle by a rule without flags; the other end's window is not
	// known yet
	w = newWorld(t, pass())
	w.play(first(seg(false, "A", 100, 500, 10)), ok(seg(false, "A", 110, 500, 1400), state.TCPOpening),
		ok(seg(true, "A", 500, 110, 10), state.TCPOpening))
}

func TestExpiry(t *testing.T) {
	w := newWorld(t, &resolve.Rule{Flags: resolve.TCPFlags{Set: flagSYN, Mask: flagSYN | flagACK}}, &resolve.Rule{Action: ast.Block, Direction: ast.In, Interface: resolve.Interface{Name: "wan"}})
	w.play(first(seg(false, "S", 100, 0, 0)))
	w.SetClock(120*state.TicksPerSecond - 1)
	w.play(ok(seg(true, "SA", 500, 101, 0), state.TCPOpening))
	w.SetClock(150*state.TicksPerSecond - 1)
	w.in(wanIndex, seg(true, "SA", 500, 101, 0).bytes(t), Drop, reason.Block)
	if len(w.States()) != 0 {
		t.Errorf("the expired state lives: %+v", w.States())
	}
}

func TestAdaptive(t *testing.T) {
	w := newWorld(t, pass())
	w.rules.Options.Timeouts.AdaptiveStart, w.rules.Options.Timeouts.AdaptiveEnd = 2, 6
	for port := range uint16(4) {
		w.in(lanIndex, udp(t, client, 4000+port, server, 53, "q"), Redirect, reason.Rule)
	}
	w.SetClock(30*state.TicksPerSecond - 1) // 60 s shrink to half for 4 states
	w.in(lanIndex, udp(t, client, 4000, server, 53, "q"), Redirect, reason.State)
	w.SetClock(30 * state.TicksPerSecond)
	w.Sweep()
	if n := len(w.States()); n != 1 {
		t.Errorf("%d states left", n)
	}
}

func TestUDPPhases(t *testing.T) {
	w := newWorld(t, pass())
	question, answer := udp(t, client, 4000, server, 53, "q"), udp(t, server, 53, client, 4000, "a")
	w.in(lanIndex, question, Redirect, reason.Rule)
	w.phase(state.UDPFirst)
	w.in(lanIndex, question, Redirect, reason.State)
	w.phase(state.UDPSingle)
	w.in(wanIndex, answer, Redirect, reason.State)
	w.phase(state.UDPSingle)
	w.in(lanIndex, question, Redirect, reason.State)
	w.phase(state.UDPMultiple)
}
