package dataplane

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"testing"

	"github.com/vishvananda/netns"

	"weir/internal/oracle/model"
)

// fuzzRules are the rules of a small gateway, with something for every step.
const fuzzRules = `
match out on wan0 inet from (lan0:network) nat-to (wan0)
match in on wan0 inet proto tcp to (wan0) port 80 rdr-to 192.168.1.10 port 8080
block return
block return-icmp (filter-prohib, admin-unr) on wan0
pass in on lan0 allow-opts
pass out on wan0
pass in on wan0 inet proto tcp to 192.168.1.10 port 8080
pass out on lan0 inet proto tcp to 192.168.1.10 port 8080
pass in on wan0 inet6 proto udp to fd00:1::/64 port 53 no state
pass out on lan0 inet6 proto udp keep state
pass in on wan0 inet6 proto icmp6 icmp6-type echoreq
`

// fuzzOpening happens before the fuzzed frame. It opens connections that the frame may
// belong to.
var fuzzOpening = []struct{ from, packet string }{
	{"lan", "tcp 192.168.1.10:4000 > 198.51.100.7:443 S seq 1000 wscale 7"},
	{"lan", "udp 192.168.1.10:4000 > 198.51.100.7:53 len 20"},
	{"lan", "udp 192.168.1.10:4001 > 198.51.100.7:53 frag 0+ id 9 len 16"},
	{"lan", "tcp [fd00:1::10]:4000 > [2001:db8:7::7]:443 S seq 1000"},
	{"wan", "tcp [2001:db8:7::7]:443 > [fd00:1::10]:4000 SA seq 5000 ack 1001"},
	{"lan", "icmp6 fd00:1::10 > 2001:db8:7::7 type 128 id 7"},
	{"wan", "tcp 198.51.100.8:4000 > 203.0.113.2:80 S seq 1000"},
	{"wan", "udp [2001:db8:7::8]:4000 > [fd00:1::10]:53 len 20"},
	{"lan", "47 192.168.1.10 > 198.51.100.7 len 20"},
}

type fuzzSeed struct {
	at     byte
	packet string
}

// fuzzSeeds holds frames to start from, one of every kind. The first byte of an input
// says where the rest is seen and with which mark (see shot and mark).
var fuzzSeeds = []fuzzSeed{
	{0, "tcp 192.168.1.10:4000 > 198.51.100.7:443 A seq 1001 ack 5001 len 10"},
	{0, "tcp [fd00:1::10]:4000 > [2001:db8:7::7]:443 A seq 1001 ack 5001"},
	{1, "tcp [2001:db8:7::7]:443 > [fd00:1::10]:4000 A seq 5001 ack 1001 len 100"},
	{1, "tcp 198.51.100.8:4000 > 203.0.113.2:80 S seq 1000 wscale 7"},
	{0, "udp 192.168.1.10:4001 > 198.51.100.7:53 frag 24+ id 9 len 16"},
	{0, "udp 192.168.1.10:4001 > 198.51.100.7:53 frag 0+ id 9 len 16"},
	{1, "icmp 203.0.113.1 > 198.51.100.8 type 11 quote tcp 198.51.100.8:4000 > 203.0.113.2:80 S seq 1000"},
	{0, "icmp 192.168.1.10 > 198.51.100.8 type 3 code 3 quote tcp 198.51.100.8:4000 > 192.168.1.10:8080 S seq 1000"},
	{1, "icmp6 2001:db8:7::1 > fd00:1::10 type 2 quote tcp [fd00:1::10]:4000 > [2001:db8:7::7]:443 A seq 1001 len 20"},
	{0, "icmp6 fd00:1::10 > 2001:db8:7::7 type 128 id 7 len 8 ext hop,dst,rh4,ah"},
	{0, "udp fd00:1::10 > 2001:db8:7::7 frag 0+ id 9 len 16"},
	{0, "udp 192.168.1.10:68 > 192.168.1.1:67 len 20 opts 8"},
	{2, "udp 192.168.1.10:4000 > 198.51.100.7:53 len 20"},
	{3, "tcp 198.51.100.8:4000 > 203.0.113.2:80 A seq 1001"},
	{4, "udp 203.0.113.2:5000 > 198.51.100.7:53 len 20"},
	{4 + 6*4, "udp 192.168.1.10:4000 > 198.51.100.7:53 len 20"},
	{4 + 6*8, "udp 192.168.1.10:4000 > 198.51.100.7:53 len 20"},
	{5 + 6*29, "tcp 198.51.100.8:4000 > 192.168.1.10:8080 A seq 1001"},
	{5, "icmp 192.168.1.1 > 192.168.1.10 type 11 quote udp 192.168.1.10:4000 > 198.51.100.7:53 len 20"},
	{1, "47 198.51.100.7 > 203.0.113.2 len 20"},
}

// A fuzzer is a twin that runs the opening before each frame.
type fuzzer struct {
	*twin
	inside netns.NsHandle
}

func newFuzzer(tb testing.TB) *fuzzer {
	tb.Helper()
	f := &fuzzer{twin: newTwin(tb, true)}
	f.use(fuzzRules)
	f.inside = must(netns.Get())(tb)
	tb.Cleanup(func() { f.inside.Close() })
	return f
}

// input returns a seed as bytes.
func (f *fuzzer) input(at byte, packet string) []byte {
	from, to := lanHostMAC, lan0MAC
	if at%2 == 1 {
		from, to = wanHostMAC, wan0MAC
	}
	return append([]byte{at}, parsePkt(packet).frame(from, to)...)
}

// shot parses an input: where the frame is seen, and the frame. It returns false if the
// kernel would not run a program on so few bytes.
func (f *fuzzer) shot(input []byte) (shot, bool) {
	if len(input) == 0 || len(input) > 1600 {
		return shot{}, false
	}
	at := input[0] % 6
	if frame := input[1:]; len(frame) > 25 && frame[24] == 0 && frame[25] == 0 {
		sumHeader(frame) // else most mutations would end there
	}
	s := shot{hook: []model.Hook{model.XDP, model.TCXIngress, model.TCXEgress}[at/2], ifindex: f.net.lan0, frame: input[1:]}
	if at%2 == 1 && s.hook != model.TCXEgress || at == 4 {
		s.ifindex = f.net.wan0
	}
	return s, len(s.frame) >= s.least()
}

// try shoots the opening and the frame.
func (f *fuzzer) try(tb testing.TB, input []byte) {
	s, ok := f.shot(input)
	if !ok {
		return
	}
	f.tb = tb
	f.forget()
	for _, o := range fuzzOpening {
		ifindex, frame := f.arrive(o.from, o.packet)
		if _, err := f.shoot(shot{hook: model.XDP, ifindex: ifindex, frame: frame}); err != nil {
			tb.Fatalf("%s: %v", o.packet, err)
		}
	}
	if s.hook != model.XDP {
		s.mark, s.noted = f.mark(input[0] / 6)
	}
	o, err := f.shoot(s)
	if err != nil {
		tb.Fatalf("%s\n%v", &s, err)
	}
	if o.Verdict == model.Out && !s.noted && weirs.Of(s.mark) != 0 && !whole(o.Frame) {
		tb.Fatalf("a malformed packet left that was handed up: %x", o.Frame)
	}
	if o.Verdict == model.Redirect && !wellFormed(o.Frame) {
		tb.Fatalf("a malformed packet was forwarded: %x", o.Frame)
	}
}

// mark returns a mark for an input's number: any value of weir's own bits, some of the
// administrator's, and whether there is a note.
func (f *fuzzer) mark(n byte) (mark uint32, noted bool) {
	return weirs.Set(uint32(n>>3)<<12, uint32(n&7)), n>>3 == 5
}

// whole reports whether a frame contains all of the IP packet that its header announces.
func whole(b []byte) bool {
	ip := b[14:]
	switch {
	case bytes.Equal(b[12:14], []byte{8, 0}):
		return len(ip) >= 20 && ip[0]>>4 == 4 && int(binary.BigEndian.Uint16(ip[2:])) <= len(ip) && ip[0]&15 >= 5
	case bytes.Equal(b[12:14], []byte{0x86, 0xdd}):
		return len(ip) >= 40 && ip[0]>>4 == 6 && 40+int(binary.BigEndian.Uint16(ip[4:])) <= len(ip)
	}
	return true
}

// wellFormed reports whether a router may send this forwarded frame.
func wellFormed(b []byte) bool {
	if len(b) < 34 {
		return false
	}
	ip := b[14:]
	if ip[0]>>4 == 4 {
		header, total := int(ip[0]&15)*4, int(binary.BigEndian.Uint16(ip[2:]))
		dst := netip.AddrFrom4([4]byte(ip[16:20]))
		return bytes.Equal(b[12:14], []byte{8, 0}) && header == 20 && total >= header && total <= len(ip) && ip[8] > 0 &&
			!dst.IsMulticast() && !dst.IsLoopback() && !dst.IsUnspecified()
	}
	return bytes.Equal(b[12:14], []byte{0x86, 0xdd}) && len(ip) >= 40 && ip[0]>>4 == 6 &&
		40+int(binary.BigEndian.Uint16(ip[4:])) <= len(ip) && ip[7] > 0 && ip[24] != 0xff
}

// FuzzXDP gives both engines arbitrary bytes as a frame, after a few connections were
// opened. go test -fuzz=FuzzXDP ./internal/fw/dataplane
func FuzzXDP(f *testing.F) {
	oneCPU(f, 0)
	fuzz := newFuzzer(f)
	for _, s := range fuzzSeeds {
		f.Add(fuzz.input(s.at, s.packet))
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		// Never unlocked: the thread ends with this goroutine.
		runtime.LockOSThread()
		check(t, netns.Set(fuzz.inside))
		fuzz.try(t, input)
	})
}

// TestMutatedFrames is a short, repeatable run of the same test.
func TestMutatedFrames(t *testing.T) {
	oneCPU(t, 0)
	f := newFuzzer(t)
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		seed := fuzzSeeds[random.IntN(len(fuzzSeeds))]
		at := seed.at + 6*byte(max(0, random.IntN(84)-42)) // every second one has a mark
		f.try(t, mutate(random, f.input(at, seed.packet)))
	}
}

// mutate changes a few bytes of an input, truncates it or lengthens it.
func mutate(random *rand.Rand, input []byte) []byte {
	for range random.IntN(4) {
		at := 1 + random.IntN(min(len(input)-1, 100))
		input[at] = []byte{0, 1, 0xff, 4, 0x45, 0x46, 0x60, 44, 43, 60, byte(random.Uint32())}[random.IntN(11)]
	}
	if len(input) > 26 && random.IntN(8) > 0 {
		input[25], input[26] = 0, 0 // shot sets the right checksum
	}
	switch random.IntN(8) {
	case 0:
		input = input[:1+random.IntN(len(input))]
	case 1:
		for range random.IntN(60) { // padding, which nothing may read
			input = append(input, byte(random.Uint32()))
		}
	}
	return input
}
