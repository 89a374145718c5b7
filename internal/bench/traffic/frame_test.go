package traffic

import (
	"fmt"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"weir/internal/bench/testbed"
	"weir/internal/fw/bpfload"
	"weir/internal/lab"
	"weir/internal/testenv"
)

const xdpTX = 3

// testTestbed returns a testbed for a test.
func testTestbed(t *testing.T) *testbed.Testbed {
	t.Helper()
	testenv.NeedRoot(t)
	b, err := testbed.Open(t.Context(), testbed.Options{Name: "weir-test-traffic", Offloads: lab.OffloadsOff})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// testSetup returns a setup with the given effect.
func testSetup(t *testing.T, b *testbed.Testbed, c Case, e Effect) *Setup {
	t.Helper()
	w := &Setup{Testbed: b, Case: c, Effect: e}
	base, err := w.MakeResults()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { base.Close() })
	return w
}

// testKinds returns all kinds of frames.
func testKinds() []Case {
	var kinds []Case
	for _, family := range []int{4, 6} {
		for _, protocol := range []string{UDP, TCP} {
			for _, size := range []int{64, 1518} {
				kinds = append(kinds, Case{Frame: TrueSize(size, family == 6, protocol == TCP), Flows: 100, Family: family,
					Protocol: protocol, Cores: 1, Direction: Both, Sink: Far})
			}
		}
	}
	return kinds
}

// generated returns the next frames of a generator.
func generated(t *testing.T, w *Setup, s Frame, count int) [][]byte {
	t.Helper()
	return generatedOf(t, w, s, w.AllFlows(), count)
}

func generatedOf(t *testing.T, w *Setup, s Frame, flows FlowRange, count int) [][]byte {
	t.Helper()
	g, err := NewGenerator(w, s, flows, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	var frames [][]byte
	for range count {
		for i := range g.frame {
			g.frame[i] = 0xee // left in the frame by a router
			if i >= len(g.frame)-s.payload(w) {
				g.frame[i] = 0
			}
		}
		out, err := bpfload.RunXDP(g.objects.Programs["generate"], bpfload.Run{Frame: g.frame})
		if err != nil {
			t.Fatal(err)
		}
		if out.Result != xdpTX {
			t.Fatalf("the generator returned %d", out.Result)
		}
		frames = append(frames, out.Frame)
	}
	return frames
}

// payload returns the length of a step's frames without headers.
func (s Frame) payload(w *Setup) int {
	return s.length - (&frameSpec{ipv6: w.Case.IPv6(), tcp: s.seg}).headerLen()
}

// TestGeneratedFrames checks frames with another implementation of checksums.
func TestGeneratedFrames(t *testing.T) {
	b := testTestbed(t)
	for _, c := range testKinds() {
		for _, tagged := range []bool{false, true} {
			w := testSetup(t, b, c, Effect{Routes: true, Tagged: tagged})
			for i, s := range append(w.FirstFrames(), w.Steady(false)) {
				t.Run(fmt.Sprintf("%d bytes IPv%d %s step %d, tagged %t", c.Frame, c.Family, c.Protocol, i+1, tagged), func(t *testing.T) {
					for number, frame := range generated(t, w, s, 50) {
						checkFrame(t, w, s, uint32(number), frame)
					}
				})
			}
		}
	}
}

func checkFrame(t *testing.T, w *Setup, s Frame, number uint32, frame []byte) {
	t.Helper()
	checkFrameOf(t, w, s, s.length, number, frame)
}

func checkFrameOf(t *testing.T, w *Setup, s Frame, length int, number uint32, frame []byte) {
	t.Helper()
	if w.Tagged {
		length += vlanLen
	}
	if len(frame) != length {
		t.Fatalf("%d bytes, want %d", len(frame), length)
	}
	p := gopacket.NewPacket(frame, layers.LayerTypeEthernet, gopacket.Default)
	if tag, ok := p.Layer(layers.LayerTypeDot1Q).(*layers.Dot1Q); ok != w.Tagged || ok && tag.VLANIdentifier != w.tag(w.Door(s.back)) {
		t.Fatalf("flow %d: tag %v", number, tag)
	}
	if p.ErrorLayer() != nil {
		t.Fatalf("flow %d: %v in %x", number, p.ErrorLayer().Error(), frame)
	}
	want := flowOf(number)
	if w.Case.Pattern == Ordered {
		want = flowInOrder(number)
	}
	from, to := fmt.Sprint(want.sourcePort), fmt.Sprint(want.targetPort)
	if s.back {
		from, to = to, from
	}
	f := p.TransportLayer().TransportFlow()
	if f.Src().String() != from || f.Dst().String() != to {
		t.Errorf("flow %d: ports %v, want %s->%s", number, f, from, to)
	}
	if l4, ok := p.TransportLayer().(interface {
		SetNetworkLayerForChecksum(gopacket.NetworkLayer) error
	}); !ok || l4.SetNetworkLayerForChecksum(p.NetworkLayer()) != nil {
		t.Fatal("gopacket does not look at this frame's checksum")
	}
	sums, mismatches := p.VerifyChecksums()
	if sums != nil || len(mismatches) > 0 {
		t.Fatalf("flow %d: checksums: %v %v in %x", number, sums, mismatches, frame)
	}
	if udp, ok := p.TransportLayer().(*layers.UDP); ok && udp.Checksum == 0 {
		t.Errorf("flow %d: no checksum", number)
	}
}

// TestChecker accepts correct frames, and none that differ in one bit.
func TestChecker(t *testing.T) {
	b := testTestbed(t)
	for _, c := range testKinds() {
		if c.Frame > 128 {
			continue
		}
		for _, tagged := range []bool{false, true} {
			t.Run(fmt.Sprintf("IPv%d %s, tagged %t", c.Family, c.Protocol, tagged), func(t *testing.T) {
				// At the firewall's device frames are still as they were
				// sent.
				w := testSetup(t, b, c, Effect{ToDoor: true, Tagged: tagged})
				for turn, s := range w.FirstFrames() {
					k, err := newChecker(w, s, turn+1)
					if err != nil {
						t.Fatal(err)
					}
					frame := generated(t, w, s, 1)[0]
					examineFlips(t, k, frame)
					if err := k.Close(); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
}

func examineFlips(t *testing.T, k *checkSink, frame []byte) {
	t.Helper()
	right := func(frame []byte) bool {
		before := k.rightFrames()
		if _, err := bpfload.RunXDP(k.objects.Programs["check"], bpfload.Run{Frame: frame}); err != nil {
			t.Fatal(err)
		}
		return k.rightFrames() > before
	}
	if !right(frame) {
		_, err := k.verdict()
		t.Fatalf("a right frame is refused: %v", err)
	}
	if flows, err := k.verdict(); flows != 1 || err != nil {
		t.Errorf("%d flows, %v; want 1", flows, err)
	}
	for bit := range len(frame) * 8 {
		frame[bit/8] ^= 1 << (bit % 8)
		if right(frame) {
			t.Errorf("bit %d of byte %d differs and is not noticed", bit%8, bit/8)
		}
		frame[bit/8] ^= 1 << (bit % 8)
	}
	if right(frame[:len(frame)-1]) || right(append(frame[:len(frame):len(frame)], 0)) {
		t.Error("a frame of another length is not noticed")
	}
	if _, err := k.verdict(); err == nil {
		t.Error("no error after wrong frames")
	}
}

func (k *checkSink) rightFrames() (n uint64) {
	for i := range k.findings {
		n += k.findings[i].Frames[0]
	}
	return n
}

// TestCheckerWantsTranslation rejects frames that arrive untranslated on a path that
// translates.
func TestCheckerWantsTranslation(t *testing.T) {
	b := testTestbed(t)
	c := testKinds()[0]
	plain, translating := testSetup(t, b, c, Effect{ToDoor: true}), testSetup(t, b, c, Effect{ToDoor: true, Translates: true})
	k, err := newChecker(translating, plain.FirstFrames()[0], 1)
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	frame := generated(t, translating, translating.FirstFrames()[0], 1)[0]
	if _, err := bpfload.RunXDP(k.objects.Programs["check"], bpfload.Run{Frame: frame}); err != nil {
		t.Fatal(err)
	}
	if got := k.findings; k.rightFrames() != 0 || !anyFault(got, 5) {
		t.Errorf("an untranslated source is not noticed: %+v", got)
	}
}

func anyFault(findings []checkFinding, fault int) bool {
	for i := range findings {
		if findings[i].Frames[fault] > 0 {
			return true
		}
	}
	return false
}
