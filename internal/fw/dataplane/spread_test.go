package dataplane

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weir/internal/fw/bpfload"
	"weir/internal/fw/limits"
	"weir/internal/fw/reason"
	"weir/internal/fw/ruleset"
	"weir/internal/host/netif"
	"weir/internal/testenv"
	"weir/pf/resolve"
)

// A spreadNet is the network of a harness with sockets at the far ends of both wires.
type spreadNet struct {
	*harness
	rules    string
	lan, wan int // sockets
	here     int // the core that receives
	other    int // one that frames are handed to
}

// newSpreadNet commits a generation that spreads what comes in at lan0. The test's thread is on the core
// that receives.
func newSpreadNet(t *testing.T, rules string) *spreadNet {
	t.Helper()
	h := &harness{tb: t, net: newNet(t), counted: make(map[int][reason.Count]uint64)}
	s := &spreadNet{harness: h, rules: rules}
	var all, one unix.CPUSet
	check(t, unix.SchedGetaffinity(0, &all))
	var cores []int
	for core := range 256 {
		if all.IsSet(core) {
			cores = append(cores, core)
		}
	}
	if len(cores) < 2 {
		testenv.Skip(t, "spreading needs two cores, and this machine has one")
	}
	s.here, s.other = cores[0], cores[1]
	one.Set(s.here)
	check(t, unix.SchedSetaffinity(0, &one))
	t.Cleanup(func() { check(t, unix.SchedSetaffinity(0, &all)) })
	for _, device := range []string{"lan0-far", "wan0-far"} { // a peer takes redirected frames with this
		check(t, netif.SetFeatures(device, netif.Features{"rx-gro": true}))
		setSysctl(t, "net/ipv4/conf/"+device+"/forwarding", "0") // what arrives there has arrived
	}
	s.lan, s.wan = farSocket(t, "lan0-far"), farSocket(t, "wan0-far")
	s.load(true)
	return s
}

func (s *spreadNet) config() Config {
	cfg := s.net.config()
	cfg.Spread = true
	cfg.Options.MarkMask = resolve.DefaultMarkMask // the stack forwards, too
	cfg.Program = must(ruleset.Compile(s.parse(s.rules), s.snapshot()))(s.tb)
	return cfg
}

// load commits a generation.
func (s *spreadNet) load(spreads bool) {
	s.tb.Helper()
	next := build(s.tb, s.config())
	const flags = InterfacePresent | InterfaceXDP | InterfaceTarget
	check(s.tb, next.Spread(s.net.lan0, spreads))
	first := s.dp == nil
	s.dp = next
	if first {
		s.setInterface(s.net.lan0, flags, lan0MAC)
		s.setInterface(s.net.wan0, flags, wan0MAC)
		check(s.tb, s.dp.SetAddresses(s.net.addresses()))
	}
	commit(s.tb, next, s.net.attachments(true))
}

// farSocket opens a packet socket on a device.
func farSocket(t *testing.T, device string) int {
	t.Helper()
	const all = unix.ETH_P_ALL<<8&0xff00 | unix.ETH_P_ALL>>8
	fd := must(unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0))(t)
	t.Cleanup(func() { unix.Close(fd) })
	check(t, unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20))
	check(t, unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 50_000}))
	check(t, unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: must(net.InterfaceByName(device))(t).Index}))
	return fd
}

// give has all buckets go to a core, by its number + 1, or every second one.
func (s *spreadNet) give(core int, every int) {
	s.tb.Helper()
	var shares [SpreadBuckets]uint8
	for i := range shares {
		if i%every == 0 {
			shares[i] = uint8(core)
		}
	}
	check(s.tb, s.dp.SetShares(s.net.lan0, &shares))
}

// slot is that of lan0.
func (s *spreadNet) slot() int { return s.net.lan0 % limits.SpreadSlots }

// core changes what is counted of the other core.
func (s *spreadNet) core(do func(*xdpSpreadCore)) {
	s.tb.Helper()
	check(s.tb, changeArray(s.dp.objects.Maps[mapSpreadCores], func(cores []xdpSpreadCore) { do(&cores[s.other]) }))
}

// waits has so many frames of lan0 wait for a core.
func (s *spreadNet) waits(c *xdpSpreadCore, frames uint32) {
	c.Given, c.Tick = c.Taken+frames, s.dp.tables.shared.Now
	c.Gave[s.slot()] = c.Took[s.slot()] + uint16(frames)
}

// takes has a core take so many frames of lan0.
func (s *spreadNet) takes(c *xdpSpreadCore, frames uint32) {
	c.Taken += frames
	c.Took[s.slot()] += uint16(frames)
}

// spreadPatience is for how long tests wait for what has to happen. Emulated machines are slow.
const spreadPatience = 20 * time.Second

// answers sends a packet from the LAN and returns the next one that arrives there from the box, within some time.
func (s *spreadNet) answers(text string, within time.Duration) string {
	s.tb.Helper()
	_, err := unix.Write(s.lan, parsePkt(text).frame(lanHostMAC, lan0MAC))
	check(s.tb, err)
	buffer := make([]byte, 2048)
	for deadline := time.Now().Add(within); time.Now().Before(deadline); {
		n, from, err := unix.Recvfrom(s.lan, buffer, 0)
		if err == nil && from.(*unix.SockaddrLinklayer).Pkttype == unix.PACKET_HOST && buffer[12] == 8 {
			return decodePkt(buffer[14:n]).String()
		}
	}
	return "nothing"
}

// TestSpreadAnswers checks what the other core does with frames that are handed to it: it forwards them, answers
// them, and gives them to the stack with what XDP has decided.
func TestSpreadAnswers(t *testing.T) {
	s := newSpreadNet(t, masquerade+"pass\nblock return in on lan0 inet proto tcp to port 99")
	for _, core := range []int{0, s.other + 1} {
		s.give(core, 1)
		time.Sleep(50 * time.Millisecond)
		before := must(s.dp.HandedOver())(t)
		for i, c := range []struct{ text, answer string }{
			{"icmp 192.168.1.10 > 192.168.1.1 type 8 id 3", "icmp 192.168.1.1 > 192.168.1.10 id 3"},
			{"tcp 192.168.1.10:4000 > 198.51.100.9:99 S seq 5", "tcp 198.51.100.9:99 > 192.168.1.10:4000 RA"},
			{"udp 192.168.1.10:4000 > 198.51.100.9:53 ttl 1", "icmp 192.168.1.1 > 192.168.1.10 type 11"},
		} {
			if got := s.answers(c.text, spreadPatience); !strings.HasPrefix(got, c.answer) {
				t.Errorf("core %d, %s: %s, want %s", core, c.text, got, c.answer)
			}
			after := must(s.dp.HandedOver())(t)
			want := uint32(0)
			if core != 0 {
				want = uint32(i + 1)
			}
			if got := after[s.other].Taken - before[s.other].Taken; got != want {
				t.Errorf("core %d: %d frames were taken after %d, want %d", core, got, i+1, want)
			}
		}
	}
}

// stream is what a sender and a receiver know of each other's frames, while connections have traffic.
type stream struct {
	sent, arrived atomic.Uint64
	wrong         []string
}

const (
	streamFlows = 64
	// streamAhead is how many frames may be on their way: a veth's ring has 256.
	streamAhead = 150
	streamPause = 6 * time.Millisecond
)

// send sends numbered frames of all connections until over says so.
func (f *stream) send(fd int, over *atomic.Bool) error {
	frames := make([][]byte, streamFlows)
	for i := range frames {
		frames[i] = parsePkt(fmt.Sprintf("udp 192.168.1.10:%d > 198.51.100.9:53 len 8 nosum", 1000+i)).frame(lanHostMAC, lan0MAC)
	}
	for n := uint64(0); !over.Load(); n++ {
		for n-f.arrived.Load() >= streamAhead && !over.Load() {
			runtime.Gosched()
		}
		if n%2000 == 0 {
			time.Sleep(streamPause) // connections have bursts
		}
		frame := frames[n%streamFlows]
		binary.BigEndian.PutUint64(frame[len(frame)-8:], n)
		if _, err := unix.Write(fd, frame); err != nil {
			return err
		}
		f.sent.Store(n + 1)
	}
	return nil
}

// receive notes frames that come out of order, until as many have come as were sent and over says so.
func (f *stream) receive(fd int, over *atomic.Bool) {
	last := make(map[uint16]uint64)
	buffer := make([]byte, 2048)
	for quiet := 0; quiet < 4 && (!over.Load() || f.arrived.Load() < f.sent.Load()); {
		n, from, err := unix.Recvfrom(fd, buffer, 0)
		if err != nil {
			if over.Load() {
				quiet++
			}
			continue
		}
		frame := buffer[:n]
		if from.(*unix.SockaddrLinklayer).Pkttype == unix.PACKET_OUTGOING || n < 50 || frame[12] != 8 || frame[23] != unix.IPPROTO_UDP {
			continue
		}
		port, number := binary.BigEndian.Uint16(frame[34:]), binary.BigEndian.Uint64(frame[n-8:])
		if before, known := last[port]; known && number != before+streamFlows {
			f.wrong = append(f.wrong, fmt.Sprintf("port %d: frame %d after %d", port, number, before))
		}
		last[port] = number
		f.arrived.Add(1)
	}
}

// TestSpreadOrder checks that no frame of a connection is lost or overtakes another, while the daemon moves
// shares, other rules are loaded, and spreading ends and begins.
func TestSpreadOrder(t *testing.T) {
	s := newSpreadNet(t, "pass")
	s.give(s.other+1, 2)
	s.dp.Heartbeat()
	var f stream
	var over, done atomic.Bool
	var both sync.WaitGroup
	var failed error
	both.Go(func() { failed = onCore(s.here, func() error { return f.send(s.lan, &over) }) })
	both.Go(func() { f.receive(s.wan, &done) })
	dp := s.dp
	both.Go(func() { // without it a packet goes by the stack now and then, to probe its neighbour
		for ; !done.Load(); time.Sleep(100 * time.Millisecond) {
			dp.Heartbeat()
		}
	})
	before := must(s.dp.HandedOver())(t)[s.other]
	for round := range 2 { // each takes a minute on an emulated machine
		for every := range 4 {
			s.give((s.other+1)*min(every, 1), max(every, 1))
			time.Sleep(30 * time.Millisecond)
		}
		s.give(s.other+1, 1+round%2)
		s.load(true)
		time.Sleep(30 * time.Millisecond)
		s.settle()
		check(t, s.dp.Spread(s.net.lan0, false))
		time.Sleep(20 * time.Millisecond)
		check(t, s.dp.Spread(s.net.lan0, true))
	}
	over.Store(true)
	for deadline := time.Now().Add(spreadPatience); f.arrived.Load() < f.sent.Load() && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	done.Store(true)
	both.Wait()
	check(t, failed)
	after := must(s.dp.HandedOver())(t)[s.other]
	if handed := after.Taken - before.Taken; handed < uint32(f.sent.Load()/20) || after.Full != 0 {
		t.Errorf("of %d frames %d were handed over, %d found no room", f.sent.Load(), handed, after.Full)
	}
	if len(f.wrong) > 0 || f.arrived.Load() != f.sent.Load() {
		t.Errorf("%d of %d frames arrived; out of order: %d, first %v", f.arrived.Load(), f.sent.Load(), len(f.wrong), f.wrong[:min(len(f.wrong), 8)])
	}
	t.Logf("lan0: %s; wan0: %s; %s", s.counts(s.net.lan0), s.counts(s.net.wan0), devicesDropped(t))
	t.Logf("%d frames, %d handed over", f.sent.Load(), after.Taken-before.Taken)
}

// settle takes all buckets back, and waits until no frame is on its way to another core.
func (s *spreadNet) settle() {
	s.tb.Helper()
	s.give(0, 1)
	for deadline := time.Now().Add(spreadPatience); ; time.Sleep(time.Millisecond) {
		now := must(s.dp.Shares(s.net.lan0))(s.tb)
		if now.Idle() {
			return
		}
		if time.Now().After(deadline) {
			s.tb.Fatalf("frames are still handed over: %v", now.Cores)
		}
	}
}

// onCore calls f on a thread of one core.
func onCore(core int, f func() error) error {
	runtime.LockOSThread() // the thread ends with its goroutine
	var one unix.CPUSet
	one.Set(core)
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return err
	}
	return f()
}

// devicesDropped returns how many frames the devices have dropped.
func devicesDropped(t *testing.T) (text string) {
	t.Helper()
	for _, name := range []string{"lan0", "lan0-far", "wan0", "wan0-far"} {
		c := must(netlink.LinkByName(name))(t).Attrs().Statistics
		text += fmt.Sprintf("%s: %d in, %d out; ", name, c.RxDropped, c.TxDropped)
	}
	return text
}

// bucket returns the bucket of a frame that comes in at lan0; -1: it has none.
func (s *spreadNet) bucket(frame []byte) int {
	s.tb.Helper()
	before := must(s.dp.Shares(s.net.lan0))(s.tb)
	must(bpfload.RunXDP(s.dp.objects.Programs[programSpread], bpfload.Run{Frame: slices.Clone(frame), Ifindex: s.net.lan0}))(s.tb)
	after := must(s.dp.Shares(s.net.lan0))(s.tb)
	for i := range after.Frames {
		if after.Frames[i] != before.Frames[i] {
			return i
		}
	}
	return -1
}

// TestSpreadBuckets checks which frames count as one connection: both directions, with and without tag and
// session, and all fragments of a packet. Connections have different buckets, but for chance.
func TestSpreadBuckets(t *testing.T) {
	s := newSpreadNet(t, "pass")
	s.give(0, 1)
	plain := func(text string) []byte { return parsePkt(text).frame(lanHostMAC, lan0MAC) }
	tag := func(frame []byte, head ...byte) []byte {
		return slices.Concat(frame[:12], head, frame[12:])
	}
	const udp, udp6 = "udp 192.168.1.10:4000 > 198.51.100.9:53 len 40", "udp [fd00:1::10]:4000 > [2001:db8:9::1]:53 len 40"
	frame, frame6 := plain(udp), plain(udp6)
	for _, c := range []struct {
		what     string
		one, two []byte
	}{
		{"the reply", frame, plain("udp 198.51.100.9:53 > 192.168.1.10:4000")},
		{"the reply, IPv6", frame6, plain("udp [2001:db8:9::1]:53 > [fd00:1::10]:4000")},
		{"with a tag", frame, tag(frame, 0x81, 0, 0, 7)},
		{"in a session", frame, slices.Concat(frame[:12], []byte{0x88, 0x64, 0x11, 0, 0, 7, 0, 70, 0, 0x21}, frame[14:])},
		{"in a session, IPv6", frame6, slices.Concat(frame6[:12], []byte{0x88, 0x64, 0x11, 0, 0, 7, 0, 90, 0, 0x57}, frame6[14:])},
		{"in a session with a tag", frame, slices.Concat(frame[:12], []byte{0x81, 0, 0, 7, 0x88, 0x64, 0x11, 0, 0, 7, 0, 70, 0, 0x21}, frame[14:])},
		{"fragments", plain("udp 192.168.1.10:4000 > 198.51.100.9:53 frag 0+ id 9 len 40"), plain("udp 192.168.1.10 > 198.51.100.9 frag 48 id 9 len 40")},
		{"fragments, IPv6", plain("udp [fd00:1::10]:4000 > [2001:db8:9::1]:53 frag 0+ id 9 len 40"), plain("udp fd00:1::10 > 2001:db8:9::1 frag 48 id 9 len 40")},
	} {
		if one, two := s.bucket(c.one), s.bucket(c.two); one < 0 || one != two {
			t.Errorf("%s: buckets %d and %d", c.what, one, two)
		}
	}
	for what, frame := range map[string][]byte{
		"a control frame of a session": append(ethernet(lanHostMAC, lan0MAC, 0x8864), 0x11, 0, 0, 7, 0, 10, 0xc0, 0x21, 9, 1, 0, 8, 0, 0, 0, 0),
		"ARP":                          append(ethernet(lanHostMAC, lan0MAC, 0x0806), make([]byte, 46)...),
		"IPv4 with options":            plain("udp 192.168.1.10:4000 > 198.51.100.9:53 opts 4"),
	} {
		if got := s.bucket(frame); got >= 0 {
			t.Errorf("%s has bucket %d", what, got)
		}
	}
	seen := make(map[int]bool)
	for port := range 400 {
		seen[s.bucket(plain(fmt.Sprintf("udp 192.168.1.10:%d > 198.51.100.9:53", 5000+port)))] = true
	}
	if len(seen) < 230 { // 277 are to be expected, and 255 or fewer once in a thousand times
		t.Errorf("400 connections have %d buckets", len(seen))
	}
}

// TestSpreadBetweenBursts checks that a bucket keeps its core while its connection's frames follow each other, and that
// it gets the other one after a pause.
func TestSpreadBetweenBursts(t *testing.T) {
	const burst, pause, attempts = 200, 3 * time.Millisecond, 20
	s := newSpreadNet(t, "pass")
	send := func(frame []byte) {
		must(bpfload.RunXDP(s.dp.objects.Programs[programSpread], bpfload.Run{Frame: slices.Clone(frame), Ifindex: s.net.lan0}))(t)
	}
	for attempt := range attempts {
		s.give(0, 1)
		frame := parsePkt(fmt.Sprintf("udp 192.168.1.10:%d > 198.51.100.9:53 len 40", 4000+attempt)).frame(lanHostMAC, lan0MAC)
		bucket := s.bucket(frame)
		core := func() int { return int(must(s.dp.Shares(s.net.lan0))(t).Cores[bucket]) }
		if core() != 0 {
			continue // it is that of another attempt
		}
		send(frame)
		last, steady := time.Now(), true
		s.give(s.other+1, 1)
		for range burst {
			send(frame)
			steady = steady && time.Since(last) < pause // this thread may have had to wait for its core
			last = time.Now()
		}
		if !steady {
			time.Sleep(20 * time.Millisecond)
			continue
		}
		if got := core(); got != 0 {
			t.Errorf("in a burst of %d frames the bucket went to core %d", burst, got-1)
		}
		time.Sleep(20 * time.Millisecond)
		send(frame)
		if got := core(); got != s.other+1 {
			t.Errorf("after a pause core %d has the bucket, want %d", got-1, s.other)
		}
		return
	}
	t.Errorf("none of %d bursts was without a pause", attempts)
}

// TestSpreadWhenUsed checks that the programs of other cores are loaded when an interface spreads, and not before.
func TestSpreadWhenUsed(t *testing.T) {
	n := newNet(t)
	cfg := n.blank()
	cfg.Spread = true
	d := build(t, cfg)
	commit(t, d, n.attachments(true))
	loaded := func() (names []string) {
		for name := range d.objects.Programs {
			if strings.HasPrefix(name, entryCore.name) || name == programSpread || name == programSpreadTake {
				names = append(names, name)
			}
		}
		return names
	}
	if got := loaded(); len(got) > 0 {
		t.Errorf("loaded without need: %v", got)
	}
	check(t, d.Spread(n.lan0, true))
	if got := loaded(); len(got) < len(tailNames)-len(rareTails) {
		t.Errorf("loaded: %v", got)
	}
}

// TestSpreadCounts checks what is counted of frames that the kernel could not hand over: they are lost, and no bucket
// waits for them.
func TestSpreadCounts(t *testing.T) {
	s := newSpreadNet(t, "pass")
	const text, answer = "icmp 192.168.1.10 > 192.168.1.1 type 8 id 3", "icmp 192.168.1.1 > 192.168.1.10 id 3"
	count := func() HandOver { return must(s.dp.HandedOver())(t)[s.other] }
	send := func(what string) {
		t.Helper()
		if got := s.answers(text, spreadPatience); got != answer {
			t.Errorf("%s: %s", what, got)
		}
	}
	s.give(s.other+1, 1)
	time.Sleep(50 * time.Millisecond)
	s.answers(text, spreadPatience)
	s.core(func(c *xdpSpreadCore) { s.waits(c, 7) })
	send("some frames are lost")
	s.give(0, 1)
	time.Sleep(50 * time.Millisecond)
	before := count()
	if now := must(s.dp.Shares(s.net.lan0))(t); now.Idle() || before.Given-before.Taken != 7 {
		t.Errorf("nothing is waited for: %+v", before)
	}
	check(t, s.dp.CountLost(s.other, HandOver{Given: before.Given - 1, Taken: before.Taken})) // not as it is now
	if count() != before {
		t.Errorf("%+v became %+v", before, count())
	}
	check(t, s.dp.CountLost(s.other, before))
	if now, want := count(), (HandOver{Given: before.Given, Taken: before.Given, Lost: 7}); now != want {
		t.Errorf("%+v, want %+v", now, want)
	}
	if now := must(s.dp.Shares(s.net.lan0))(t); !now.Idle() {
		t.Errorf("something is still waited for: %v", now.Cores)
	}
	send("back on the core that receives")
	if now := count(); now.Given != before.Given {
		t.Errorf("%d frames were handed over", now.Given-before.Given)
	}
	s.give(s.other+1, 1)
	time.Sleep(50 * time.Millisecond)
	s.core(func(c *xdpSpreadCore) {
		s.waits(c, limits.SpreadRoom)
		c.Tick -= 100
	})
	before = count()
	send("no room, and nothing was taken for long")
	if now, want := count(), (HandOver{Given: before.Given + 1, Taken: before.Given + 1, Lost: 7 + limits.SpreadRoom}); now != want {
		t.Errorf("%+v, want %+v", now, want)
	}
}

// TestSpreadOffline takes the core away that frames are handed to. The kernel's thread goes on elsewhere, so nothing is
// counted where it should be, and its buckets would never settle. When the core is abandoned frames stay where they come
// in; when it is back, it takes them again.
func TestSpreadOffline(t *testing.T) {
	if os.Getenv("WEIR_TEST_OWN_MACHINE") == "" {
		testenv.SkipOutside(t, "it would take a core of this machine away, and so runs in an emulated one only")
	}
	s := newSpreadNet(t, "pass")
	online := func(value string) {
		t.Helper()
		check(t, os.WriteFile(fmt.Sprintf("/sys/devices/system/cpu/cpu%d/online", s.other), []byte(value), 0))
	}
	const text, answer = "icmp 192.168.1.10 > 192.168.1.1 type 8 id 3", "icmp 192.168.1.1 > 192.168.1.10 id 3"
	answered := func(what string, times int) {
		t.Helper()
		for range times {
			if got := s.answers(text, spreadPatience); got != answer {
				t.Errorf("%s: %s", what, got)
				return
			}
		}
	}
	s.give(s.other+1, 1)
	time.Sleep(50 * time.Millisecond)
	answered("before", 1)
	online("0")
	defer online("1")
	before := must(s.dp.HandedOver())(t)[s.other]
	answered("elsewhere", 5)
	s.give(0, 1)
	time.Sleep(50 * time.Millisecond)
	answered("nothing settles", 5)
	if now := must(s.dp.HandedOver())(t)[s.other]; now.Given-before.Given < 10 || now.Taken != before.Taken {
		t.Errorf("the core that is gone had %+v and has %+v: there is nothing to mend", before, now)
	}
	for _, want := range []bool{true, false} {
		if did := must(s.dp.AbandonCore(s.other))(t); did != want {
			t.Errorf("frames were handed to the core: %t, want %t", did, want)
		}
	}
	answered("abandoned", 2)
	if now := must(s.dp.Shares(s.net.lan0))(t); !now.Idle() {
		t.Errorf("the bucket is that of the core that is gone: %v", now.Cores)
	}
	online("1")
	before = must(s.dp.HandedOver())(t)[s.other]
	s.give(s.other+1, 1)
	time.Sleep(50 * time.Millisecond)
	answered("it is back", 2)
	if after := must(s.dp.HandedOver())(t)[s.other]; int32(after.Taken-before.Given) < 2 || after.Full != before.Full {
		t.Errorf("the core takes nothing: %+v, was %+v", after, before)
	}
}
