package dataplane

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"slices"
	"testing"

	"github.com/vishvananda/netns"

	"weir/internal/fw/bpfload"
	"weir/internal/fw/reason"
	"weir/internal/oracle/model"
)

// A way is a twin with its programs attached to devices. A frame goes through XDP. If XDP
// hands it off, it goes on, with its metadata and mark, through TCX ingress, the stack
// and TCX egress. The test compares what leaves the box with the model.
type way struct {
	*twin
	taps   taps
	inside netns.NsHandle
}

func newWay(tb testing.TB) *way {
	tb.Helper()
	n, taps := newTapNet(tb)
	w := &way{twin: newTwinIn(n, true, false), taps: taps}
	for _, ifindex := range []int{n.lan0, n.wan0} {
		for hook, program := range map[bpfload.Hook]string{bpfload.Ingress: "weir_tc_in", bpfload.Egress: "weir_tc_out"} {
			link := must(bpfload.Attach(w.program(program), hook, ifindex))(tb)
			tb.Cleanup(func() { link.Close() })
		}
	}
	w.reach(true)
	w.inside = must(netns.Get())(tb)
	tb.Cleanup(func() { w.inside.Close() })
	return w
}

// reach says whether XDP can redirect to the devices. Otherwise TCX must do so.
func (w *way) reach(target bool) {
	for _, name := range []string{"lan0", "wan0"} {
		w.flags[name] = allFlags | InterfaceXDP
		if !target {
			w.flags[name] &^= InterfaceTarget
		}
	}
	w.use(fuzzRules)
}

// A left frame is a frame that has left the box.
type left struct {
	ifindex int
	frame   []byte
}

// poison is a byte that is rare in the frames of these tests. It fills the memory before
// each frame, so that reads beyond a frame's end show up.
const poison = 0xa7

// poison fills the memory that frames are copied to with poison.
func (w *way) poison() {
	frame := bytes.Repeat([]byte{poison}, 1514)
	copy(frame, mac(lan0MAC))
	check(w.tb, w.taps.send("lan0", frame))
	w.leaves()
}

// send makes a frame come in, and returns what leaves the box.
func (w *way) send(ifindex int, frame []byte) []left {
	check(w.tb, w.taps.send(map[int]string{w.net.lan0: "lan0", w.net.wan0: "wan0"}[ifindex], frame))
	return w.leaves()
}

func (w *way) leaves() (all []left) {
	for name, ifindex := range map[string]int{"lan0": w.net.lan0, "wan0": w.net.wan0} {
		for {
			frame, err := w.taps.receive(name)
			check(w.tb, err)
			if frame == nil {
				break
			}
			all = append(all, left{ifindex, frame})
		}
	}
	return all
}

// try sends the opening and a frame through the model and the box, and says how they
// differ. It returns what has left of the frame itself, or nil. redirected is the same
// for the frame when XDP redirects it.
func (w *way) try(ifindex int, frame []byte, redirected *left) (*left, error) {
	w.forget()
	for _, o := range fuzzOpening {
		at, opening := w.arrive(o.from, o.packet)
		w.send(at, opening)
		w.model.Handle(&model.Frame{Hook: model.XDP, Interface: uint32(at), Bytes: opening}, w.look())
	}
	w.poison()
	all := w.send(ifindex, frame)
	want := w.model.Handle(&model.Frame{Hook: model.XDP, Interface: uint32(ifindex), Bytes: frame}, w.look())
	for _, l := range all {
		if bytes.Contains(l.frame, bytes.Repeat([]byte{poison}, 8)) {
			return nil, fmt.Errorf("bytes of another frame leave by interface %d: %x", l.ifindex, l.frame)
		}
	}
	expected := w.expected(ifindex, &want)
	if want.Back {
		expected = redirected
	}
	return expected, w.differ(&want, expected, all)
}

// differ compares what has left with what must leave: the frame, unless the stack got it
// and dropped it. Otherwise only the box's own frames may leave.
func (w *way) differ(want *model.Outcome, expected *left, all []left) error {
	matches := func(l left) bool {
		return expected != nil && l.ifindex == expected.ifindex &&
			(sameFrame(l.frame, expected.frame) || rewritten(want) && sameAddresses(l.frame, expected.frame))
	}
	found := slices.ContainsFunc(all, matches)
	due := expected != nil && (want.Verdict == model.Redirect || want.Verdict == model.Reject || want.Reason == reason.UpDevice)
	strange := slices.ContainsFunc(all, func(l left) bool { return !wellFormed(l.frame) && !w.own(l) || !matches(l) && !w.own(l) })
	if !strange && (found || !due) {
		return nil
	}
	text := fmt.Sprintf("model: %s", want.Reason)
	if expected != nil {
		text += fmt.Sprintf(", by interface %d %s", expected.ifindex, describe(expected.frame))
	}
	for _, l := range all {
		text += fmt.Sprintf("\nleft: by interface %d %s", l.ifindex, describe(l.frame))
	}
	return errors.New(text)
}

// rewritten reports whether the stack changes a packet that it forwards: one with
// options, or one that it fragments.
func rewritten(want *model.Outcome) bool {
	return want.Reason == reason.UpOptions || want.Reason == reason.UpMTU
}

// expected returns what must leave the box for a frame, or nil.
func (w *way) expected(ifindex int, want *model.Outcome) *left {
	switch {
	case want.Verdict == model.Redirect || want.Verdict == model.Reject:
		return &left{int(want.Interface), want.Frame}
	case want.Verdict != model.Up || want.Back || weirs.Of(want.Mark) == 0:
		return nil
	}
	out := w.forwarded(ifindex, want)
	if out == nil {
		return nil
	}
	o := w.model.Handle(out, nil)
	if o.Verdict != model.Out {
		return nil
	}
	return &left{int(out.Interface), o.Frame}
}

// forwarded returns what the stack makes of a frame that was handed off to it, or nil if
// it cannot forward it.
func (w *way) forwarded(ifindex int, up *model.Outcome) *model.Frame {
	frame := slices.Clone(up.Frame)
	ip := frame[14:]
	is6 := ip[0]>>4 == 6
	var dst netip.Addr
	if is6 {
		dst = netip.AddrFrom16([16]byte(ip[24:40]))
	} else {
		dst = netip.AddrFrom4([4]byte(ip[16:20]))
	}
	r := w.route(dst)
	ttl := 8
	if is6 {
		ttl = 7
	}
	if r.Kind != model.RouteForward || ip[ttl] <= 1 {
		return nil
	}
	copy(frame, r.Dst[:])
	copy(frame[6:], r.Src[:])
	ip[ttl]--
	length := 40 + int(binary.BigEndian.Uint16(ip[4:]))
	if !is6 {
		setHeaderSum(ip[:int(ip[0]&15)*4])
		length = int(binary.BigEndian.Uint16(ip[2:]))
	}
	return &model.Frame{Hook: model.TCXEgress, Interface: r.Interface, From: uint32(ifindex), Mark: up.Mark, Bytes: frame[:14+length]}
}

// own reports whether the box itself sends this frame: it asks for neighbours, replies,
// and reports errors.
func (w *way) own(l left) bool {
	b := l.frame
	switch {
	case len(b) < 34:
		return len(b) >= 14 && b[12] == 0x08 && b[13] == 0x06
	case b[12] == 0x08 && b[13] == 0x06: // ARP
		return true
	}
	ip := b[14:]
	proto, src, l4 := ip[9], netip.AddrFrom4([4]byte(ip[12:16])), int(ip[0]&15)*4
	if ip[0]>>4 == 6 {
		proto, src, l4 = ip[6], netip.AddrFrom16([16]byte(ip[8:24])), 40
		if proto == 0 && len(ip) > 48 { // MLD has a router alert
			proto, l4 = ip[40], 48
		}
	}
	if !w.owns(src) && !src.IsLinkLocalUnicast() && !src.IsUnspecified() || len(ip) < l4+8 {
		return false
	}
	switch proto {
	case 1:
		return slices.Contains([]byte{0, 3, 11, 12, 14}, ip[l4])
	case 58:
		return slices.Contains([]byte{1, 2, 3, 4, 129, 133, 135, 136, 131, 132, 143}, ip[l4])
	case 6:
		return len(ip) > l4+13 && ip[l4+13]&4 != 0
	case 2: // IGMP
		return true
	}
	return false
}

// owns reports whether an address is the box's.
func (t *twin) owns(a netip.Addr) bool {
	return slices.ContainsFunc(t.net.addresses(), func(own Address) bool { return own.Addr() == a })
}

// sameFrame reports whether a frame has left as expected. The zeros after its packet,
// which pad it to 60 bytes, may be missing: Linux 6.12 leaves them out.
func sameFrame(got, want []byte) bool {
	return bytes.Equal(got, want) ||
		len(got) < len(want) && len(want) == 60 && wellFormed(got) && bytes.Equal(append(slices.Clone(got), make([]byte, len(want)-len(got))...), want)
}

// sameAddresses reports whether two packets are of one family and have the same
// addresses.
func sameAddresses(a, b []byte) bool {
	switch {
	case a[14]>>4 != b[14]>>4:
		return false
	case a[14]>>4 == 6:
		return bytes.Equal(a[22:54], b[22:54])
	}
	return bytes.Equal(a[26:34], b[26:34])
}

// waySeeds are frames for the way, as fuzzSeeds; what goes by the stack is among
// them in several forms.
var waySeeds = append([]fuzzSeed{
	{0, "udp 192.168.1.10:4000 > 198.51.100.7:53 len 20 opts 8"},
	{0, "udp 192.168.1.10:4000 > 198.51.100.7:53 len 20 ttl 1"},
	{0, "udp 192.168.1.10:4009 > 198.51.100.7:53 len 1473"},
	{0, "udp 192.168.1.10:4000 > 203.0.113.9:53 len 20"},
	{0, "udp [fd00:1::10]:4000 > [2001:db8:7::7]:53 len 20 ext dst"},
	{0, "udp [fd00:1::10]:4000 > [2001:db8:7::7]:53 len 20 ext hop"},
	{0, "tcp [fd00:1::10]:4000 > [2001:db8:7::7]:443 A seq 1001 ack 5001 ext dst"},
	{0, "icmp 192.168.1.10 > 198.51.100.7 type 8 id 5 len 20 opts 4"},
	{0, "udp 192.168.1.10:4000 > 192.168.1.1:9 len 20"},
	{0, "udp 192.168.1.10:4000 > 224.0.0.251:5353 len 20"},
	{1, "tcp 198.51.100.8:4000 > 203.0.113.2:80 S seq 1000 opts 4"},
}, fuzzSeeds...)

// TestMutatedWay sends frames with a few changed bytes through both ways to TCX egress,
// and again with devices that XDP cannot reach. What XDP then leaves to TCX ingress must
// leave the box as before.
func TestMutatedWay(t *testing.T) {
	oneCPU(t, 0)
	w := newWay(t)
	random := rand.New(rand.NewPCG(3, 4))
	const frames = 1500
	inputs, before := make([][]byte, frames), make([]*left, frames)
	for i := range inputs {
		seed := waySeeds[random.IntN(len(waySeeds))]
		for seed.at > 1 {
			seed = waySeeds[random.IntN(len(waySeeds))]
		}
		inputs[i] = mutate(random, (&fuzzer{twin: w.twin}).input(seed.at, seed.packet))
	}
	for _, target := range []bool{true, false} {
		w.reach(target)
		for i, input := range inputs {
			if len(input) < 15 {
				continue
			}
			ifindex := []int{w.net.lan0, w.net.wan0}[input[0]%2]
			l, err := w.try(ifindex, input[1:], before[i])
			if err != nil {
				t.Fatalf("XDP reaches devices: %t, interface %d: %s\n%v", target, ifindex, describe(input[1:]), err)
			}
			before[i] = l
		}
	}
}

// FuzzWay has any bytes come in as a frame. go test -fuzz=FuzzWay ./internal/fw/dataplane
func FuzzWay(f *testing.F) {
	oneCPU(f, 0)
	w := newWay(f)
	for _, s := range waySeeds {
		if s.at < 2 {
			f.Add((&fuzzer{twin: w.twin}).input(s.at, s.packet))
		}
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		if len(input) < 15 || len(input) > 1600 {
			return
		}
		runtime.LockOSThread() // for good: the thread ends with this goroutine
		check(t, netns.Set(w.inside))
		w.tb = t
		ifindex := []int{w.net.lan0, w.net.wan0}[input[0]%2]
		if _, err := w.try(ifindex, input[1:], nil); err != nil {
			t.Fatalf("interface %d: %s\n%v", ifindex, describe(input[1:]), err)
		}
	})
}
