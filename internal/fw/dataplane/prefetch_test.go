package dataplane

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/fw/bpfload"
	"weir/internal/fw/state"
	"weir/internal/oracle/model"
)

// What XDP programs return (linux/bpf.h).
const (
	xdpDrop     = 1
	xdpPass     = 2
	xdpRedirect = 4
)

// prefetchSpecs returns the programs, with the prefetch device's program changed so that it
// can be run by itself.
func prefetchSpecs() ([]*bpfload.Spec, error) {
	specs, err := copiedSpecs()
	for _, s := range specs {
		bpfload.RunAlone(s, programPrefetch)
	}
	return specs, err
}

// prefetch switches prefetching of the harness's frames on or off.
func (h *harness) prefetch(on bool) {
	h.tb.Helper()
	check(h.tb, h.dp.need(programPrefetch))
	devices := []int{h.net.lan0, h.net.wan0}
	if h.trunk != nil {
		devices = append(devices, h.trunk.device)
	}
	for _, ifindex := range devices {
		raw := must(h.dp.interfaceAt(ifindex))(h.tb)
		if !on {
			raw.change(0, interfaceDevmap|interfacePrefetch)
			continue
		}
		check(h.tb, h.dp.objects.Maps[mapPrefetchDevices].Put(uint32(ifindex), &[2]uint32{uint32(ifindex), 0}))
		raw.change(interfaceDevmap|interfacePrefetch, 0)
	}
	flag := uint32(0)
	if on {
		flag = 1
	}
	atomic.StoreUint32(&h.dp.tables.shared.Prefetch, flag)
}

// cool makes every core forget the connections that it has seen lately.
func (h *harness) cool() {
	h.tb.Helper()
	m := h.dp.objects.Maps[mapPrefetches]
	values := must(newPerCPU[xdpPrefetch]())(h.tb)
	check(h.tb, m.Lookup(uint32(0), values))
	for i := range values {
		clear(values[i].Recent[:])
	}
	check(h.tb, m.Put(uint32(0), values))
}

// exit does what the kernel does with a frame at the prefetch device that it was
// redirected to.
func (h *harness) exit(ifindex int, o *bpfload.Outcome) *bpfload.Outcome {
	h.tb.Helper()
	if o.Result != xdpRedirect || !h.dp.Prefetching() {
		return o
	}
	noted := h.hasNote(o.Frame)
	at := must(bpfload.RunXDP(h.dp.objects.Programs[programPrefetch], bpfload.Run{Frame: o.Frame, Meta: o.Meta, Ifindex: ifindex}))(h.tb)
	if noted {
		h.twice++
	} else if at.Result != xdpPass || !bytes.Equal(at.Frame, o.Frame) {
		h.tb.Errorf("a prefetch device does %d with a frame that was done, %x; it is %x then", at.Result, o.Frame, at.Frame)
	}
	if len(at.Meta) != 0 {
		h.tb.Errorf("a frame leaves with %x in front of it", at.Meta)
	}
	if at.Result == xdpPass {
		at.Result = xdpRedirect
		if h.hasNote(at.Frame) {
			h.tb.Errorf("a frame leaves with a note: %x", at.Frame)
		}
	}
	return &at
}

// hasNote reports whether a frame has had its first pass and has a note.
func (h *harness) hasNote(frame []byte) bool {
	return len(frame) >= 4 && binary.NativeEndian.Uint32(frame) == prefetchSecret(h.dp.ledger.HashSeed)
}

// withdrawDue withdraws hints as the garbage collection does.
func (t *twin) withdrawDue() {
	tables, timeouts := t.dp.tables, t.model.Timeouts()
	now := state.Tick(tables.shared.Now)
	for s := range t.dp.View().States() {
		if s.Expires(now, &timeouts) <= hintMargin(tables) {
			tables.withdraw(s.Index)
		}
	}
}

// hintMargin is hint_margin() of bpf/state/hint.h, in ticks.
func hintMargin(t *tables) int64 {
	pass := int64(len(t.states)-1) / 4096
	return 1000 + pass + pass/4 + 100
}

// TestPrefetch handles packets in two passes. The second pass does what the first left.
// Packets that are not plain take one pass.
func TestPrefetch(t *testing.T) {
	const out, back = "udp 192.168.1.10:1000 > 198.51.100.9:53", "udp 198.51.100.9:53 > 203.0.113.2:1000"
	h := newHarness(t, "match out on wan0 inet nat-to 203.0.113.2 static-port\npass")
	h.prefetch(true)
	send := func(what, from, packet, want string, twice int) {
		t.Helper()
		before := h.twice
		r := h.in(h.xdp, from, packet)
		if got := string(r.verdict) + " " + r.reason; got != want || h.twice-before != twice {
			t.Errorf("%s: %s, prefetched: %d; want %s, %d", what, got, h.twice-before, want, twice)
		}
	}
	send("a new connection", "lan", out, "forward rule", 0)
	send("its second packet", "lan", out, "forward state", 0)
	send("its third packet", "lan", out, "forward state", 1)
	send("a reply", "wan", back, "forward state", 0)
	send("one that the stack answers", "lan", out+" ttl 1", "up up-ttl", 0)
	h.advance(0.5)
	send("with the route fresh", "lan", out, "forward state", 1)
	h.advance(1.5)
	send("when the next hop is to be asked for again", "lan", out, "forward state", 0)
	send("and was", "lan", out, "forward state", 1)
	h.dp.BumpRoutes()
	send("when a route has moved", "lan", out, "forward state", 0)
	send("and was looked up", "lan", out, "forward state", 1)
	if n := h.dp.View().KillStates(func(*state.State) bool { return true }); n != 1 {
		t.Fatalf("%d states were killed", n)
	}
	send("when the state was killed", "lan", out, "forward rule", 0)
	send("anew", "lan", out, "forward state", 0)
	send("anew, again", "lan", out, "forward state", 1)
	h.prefetch(false)
	send("one pass", "lan", out, "forward state", 0)
}

// hintWord is hint_word() of bpf/state/hint.h.
func hintWord(t *xdpTuple, nexthop uint16, s *xdpShared, seed uint64) uint32 {
	hash := uint32(t.hash(newHashKeys(seed)))
	return (hash^uint32(nexthop)*0x9e3779b1^s.RouteGeneration*0x85ebca6b)&^0xff | uint32(nexthop)&0xff
}

// onlyState returns the index of the only live state.
func (h *harness) onlyState() uint32 {
	h.tb.Helper()
	var found []uint32
	for s := range h.dp.View().States() {
		found = append(found, s.Index)
	}
	if len(found) != 1 {
		h.tb.Fatalf("%d states", len(found))
	}
	return found[0]
}

// A hint that belongs to another state costs one packet and is then broken. A hint whose
// state has ended or expired costs one packet and is withdrawn.
func TestWrongHint(t *testing.T) {
	h := newHarness(t, "pass")
	h.prefetch(true)
	tables := h.dp.tables
	hinted := func(index uint32) uint32 { return tables.hints[index/hintsInLine].Word[index%hintsInLine] }
	send := func(what, packet, want string) {
		t.Helper()
		r := h.in(h.xdp, "lan", packet)
		if got := string(r.verdict) + " " + r.reason; got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	const first = "udp 192.168.1.10:1000 > 198.51.100.9:53"
	open := func() uint32 {
		t.Helper()
		send("a state's first packet", first, "forward rule")
		send("its second packet", first, "forward state")
		return h.onlyState()
	}
	index := open()
	holder := &tables.states[index]
	if got, want := hinted(index), hintWord(&holder.Forth.Tuple, holder.Forth.Nexthop, tables.shared, h.dp.ledger.HashSeed); got != want {
		t.Fatalf("the hint is %08x, want %08x", got, want)
	}

	tuple, port := holder.Forth.Tuple, uint16(2000)
	for ; ; port++ {
		tuple.Sport = fromWire(port)
		hash := tuple.hash(newHashKeys(h.dp.ledger.HashSeed))
		if 1+uint32((hash>>32)*uint64(tables.shared.Homes)>>32) == index {
			break
		}
	}
	other := fmt.Sprintf("udp 192.168.1.10:%d > 198.51.100.9:53", port)
	tables.hints[index/hintsInLine].Word[index%hintsInLine] =
		hintWord(&tuple, holder.Forth.Nexthop, tables.shared, h.dp.ledger.HashSeed)
	send("another tuple with the tag", other, "drop hint-stale")
	if got := hinted(index); got != 0x100 {
		t.Errorf("the hint is %08x then, want broken", got)
	}
	send("its next packet", other, "forward rule")
	send("the state's own", first, "forward state")
	if got := hinted(index); got != 0x100 {
		t.Errorf("the hint is %08x after a packet of the state, want broken", got)
	}

	h.forget()
	index = open()
	holder = &tables.states[index]
	h.advance(3600)
	tables.shared.Nexthops[holder.Forth.Nexthop].Checked = tables.shared.Now
	send("a state that has expired unnoticed", first, "drop hint-stale")
	send("its next packet", first, "forward rule")

	h.forget()
	index = open()
	tables.states[index].Status = statusDead
	if hinted(index) == 0 {
		t.Fatal("nothing has a hint")
	}
	send("a state that has ended unnoticed", first, "drop hint-stale")
	if hinted(index) != 0 {
		t.Error("a state that has ended still has a hint")
	}
	send("its next packet", first, "forward rule")
}

// Only weir can say that a frame was decided. A verdict that the device at the other end
// writes before a frame is removed. A prefetch device sends a frame with another's note
// unchanged, and a frame with weir's own note only to the state that it names.
func TestForgedNotes(t *testing.T) {
	const packet = "udp 192.168.1.10:1000 > 198.51.100.9:53"
	h := newHarness(t, "pass")
	h.prefetch(true)
	ifindex, frame := h.arrive("lan", packet)
	h.in(h.xdp, "lan", packet)
	index := h.onlyState()
	h.in(h.xdp, "lan", "udp 192.168.1.10:1001 > 198.51.100.9:53")
	var others uint32
	for s := range h.dp.View().States() {
		if s.Index != index {
			others = s.Index
		}
	}
	nexthop := uint32(h.dp.tables.states[index].Forth.Nexthop)
	secret := prefetchSecret(h.dp.ledger.HashSeed)
	words := func(words ...uint32) (b []byte) {
		for _, w := range words {
			b = binary.NativeEndian.AppendUint32(b, w)
		}
		return b
	}
	noted := func(f []byte, w ...uint32) []byte {
		return append(words(w...), f[12:]...)
	}
	arp := slices.Clone(frame)
	arp[12], arp[13] = 0x08, 0x06
	for i, mark := range []uint32{weirs.Set(0, model.MarkCame), weirs.Set(0, model.MarkRecord)} {
		_, first := h.arrive("lan", fmt.Sprintf("udp 192.168.1.10:%d > 198.51.100.9:53", 2000+i))
		for _, f := range [][]byte{first, arp} {
			o := must(bpfload.RunXDP(h.program("weir_xdp"), bpfload.Run{Frame: f, Meta: words(metadataMagic, mark, metadataRedirect|index<<1), Ifindex: ifindex}))(t)
			if len(o.Meta) != 0 {
				t.Errorf("a verdict for TCX stays in front of the frame: %x", o.Meta)
			}
		}
	}
	in := uint32(ifindex) << 16
	if o := must(bpfload.RunXDP(h.program("weir_xdp"), bpfload.Run{Frame: noted(frame, secret, index, nexthop|in), Ifindex: ifindex}))(t); o.Result == xdpRedirect {
		t.Errorf("what comes in with a note goes to a prefetch device: %x", o.Frame)
	}
	for _, c := range []struct {
		what string
		note []uint32
		want uint32
		asIs bool
	}{
		{"nothing wrong", []uint32{secret, index, nexthop | in}, xdpPass, false},
		{"another secret", []uint32{secret + 2, index, nexthop | in}, xdpPass, true},
		{"no state", []uint32{secret, 0xffffffff, nexthop | in}, xdpDrop, false},
		{"no interface", []uint32{secret, index, nexthop | 0xffff<<16}, xdpDrop, false},
		{"another's state", []uint32{secret, others, nexthop | in}, xdpDrop, false},
		{"a free slot", []uint32{secret, index + 1, nexthop | in}, xdpDrop, false},
	} {
		f := noted(frame, c.note...)
		o := must(bpfload.RunXDP(h.dp.objects.Programs[programPrefetch], bpfload.Run{Frame: f, Ifindex: ifindex}))(t)
		if o.Result != c.want || bytes.Equal(o.Frame, f) != (c.asIs || c.want == xdpDrop) {
			t.Errorf("a frame whose note has %s: %d, %x", c.what, o.Result, o.Frame)
		}
		hop := h.dp.tables.shared.Nexthops[nexthop]
		if o.Result == xdpPass && !c.asIs && !bytes.Equal(o.Frame[:12], append(hop.Dst[:], hop.Src[:]...)) {
			t.Errorf("a frame whose note has %s leaves with MACs %x", c.what, o.Frame[:12])
		}
	}
}

// A note begins with a group MAC, which differs for each table.
func TestSecrets(t *testing.T) {
	seen := make(map[uint32]bool)
	for seed := range uint64(64) {
		secret := prefetchSecret(seed)
		seen[secret] = true
		if first := binary.NativeEndian.AppendUint32(nil, secret)[0]; first&1 == 0 {
			t.Errorf("seed %d: a note would begin with %02x, as a station's MAC may", seed, first)
		}
	}
	if len(seen) < 60 {
		t.Errorf("64 seeds draw %d secrets", len(seen))
	}
}

// A new state goes to its home or to one of the seven indexes after it, as long as one is
// free, and gets a hint. Otherwise it goes anywhere, without a hint.
func TestWhereHintsAreFound(t *testing.T) {
	h := newHarness(t, "pass")
	h.prefetch(true)
	tables := h.dp.tables
	slots := stateCapacity(tables.limit())
	homeOf := func(port uint16) uint32 {
		source, destination := netip.MustParseAddr("192.168.1.10"), netip.MustParseAddr("198.51.100.9")
		tuple := xdpTuple{Src: rawAddr(source), Dst: rawAddr(destination), Sport: fromWire(port), Dport: fromWire(53), Proto: unix.IPPROTO_UDP}
		return 1 + uint32((tuple.hash(newHashKeys(h.dp.ledger.HashSeed))>>32)*uint64(slots)>>32)
	}
	open := func(port uint16, from, taken uint32) (index uint32, twice int) {
		h.forget()
		for i := range taken {
			atomic.StoreUint32(&tables.states[from+i].Status, statusNew)
		}
		packet := fmt.Sprintf("udp 192.168.1.10:%d > 198.51.100.9:53", port)
		before := h.twice
		for range 3 {
			if r := h.in(h.xdp, "lan", packet); r.verdict != redirect {
				t.Fatalf("%s: %s %s", packet, r.verdict, r.reason)
			}
		}
		return h.onlyState(), h.twice - before
	}
	const port = 1000
	home := homeOf(port)
	if home+8 > slots {
		t.Fatalf("the home %d is too near to the end, %d", home, slots)
	}
	for taken := range uint32(9) {
		index, twice := open(port, home, taken)
		switch {
		case taken < 8 && (index != home+taken || twice != 1):
			t.Errorf("with %d places taken the state of home %d is at %d, and is prefetched %d times", taken, home, index, twice)
		case taken == 8 && (index-home < 8 || twice != 0):
			t.Errorf("with all places taken the state of home %d is at %d, and is prefetched %d times", home, index, twice)
		}
	}
	last := uint16(1)
	for homeOf(last) != slots {
		last++
	}
	if index, twice := open(last, slots, 1); index != 1 || twice != 0 {
		t.Errorf("behind the table's end a state is at %d, and is prefetched %d times", index, twice)
	}
}

// Packets that wait for their second pass are tracked in the order of arrival: a RST fits
// its state only after the data before it.
func TestPrefetchKeepsOrder(t *testing.T) {
	h := newHarness(t, "pass")
	h.prefetch(true)
	const out, back = "tcp 192.168.1.10:1000 > 198.51.100.9:80 ", "tcp 198.51.100.9:80 > 192.168.1.10:1000 "
	for _, p := range []struct{ from, packet string }{
		{"lan", out + "S seq 100"}, {"wan", back + "SA seq 500 ack 101"}, {"lan", out + "A seq 101 ack 501"},
	} {
		if r := h.in(h.xdp, p.from, p.packet); r.verdict != redirect {
			t.Fatalf("%s: %s %s", p.packet, r.verdict, r.reason)
		}
	}
	oneCPU(t, 0)
	h.cool()
	var queued []bpfload.Outcome
	// The first waits for its second pass. The next one's state is taken to be in a cache.
	// The last must wait, because the first does.
	for i, packet := range []string{out + "A seq 101 ack 501 len 10", out + "A seq 111 ack 501 len 10", out + "R seq 121"} {
		ifindex, frame := h.arrive("lan", packet)
		o := must(bpfload.RunXDP(h.program("weir_xdp"), bpfload.Run{Frame: frame, Ifindex: ifindex}))(t)
		if o.Result != xdpRedirect || h.hasNote(o.Frame) == (i == 1) {
			t.Fatalf("%s: %d, %x", packet, o.Result, o.Frame)
		}
		queued = append(queued, o)
	}
	for i := range queued {
		if o := h.exit(h.net.lan0, &queued[i]); o.Result != xdpRedirect {
			t.Errorf("packet %d of the queue: %d, counted under %s", i, o.Result, h.counts(h.net.lan0))
		}
	}
	if phase := state.Phase(h.dp.tables.states[h.onlyState()].Phase); phase != state.TCPClosed {
		t.Errorf("the connection is in phase %v after a RST", phase)
	}
	before := h.twice
	if h.in(h.xdp, "lan", out+"A seq 121 ack 501"); h.twice != before {
		t.Error("a closed connection still has a hint")
	}
}

// The garbage collection withdraws a hint before its state can expire, and not earlier. A
// broken hint stays broken.
func TestGCWithdraws(t *testing.T) {
	h := newHarness(t, "set timeout { udp.first 12, udp.single 12 }\npass", func(c *Config) { c.Frozen = false })
	setTimeouts(h.dp.tables.shared, &h.dp.config.Options)
	check(t, h.dp.startGC())
	h.prefetch(true)
	time.Sleep(50 * time.Millisecond) // the timeouts take effect
	h.dp.Heartbeat()
	for range 2 { // the second makes the hint
		h.in(h.xdp, "lan", "udp 192.168.1.10:1000 > 198.51.100.9:53")
	}
	tables, index := h.dp.tables, h.onlyState()
	word := &tables.hints[index/hintsInLine].Word[index%hintsInLine]
	visited := func() uint32 {
		h.dp.Heartbeat()
		atomic.StoreUint32(&tables.states[index].CheckAt, atomic.LoadUint32(&tables.shared.Now))
		time.Sleep(100 * time.Millisecond)
		if tables.states[index].Status != statusLive {
			t.Fatal("the state has ended")
		}
		return atomic.LoadUint32(word)
	}
	if visited() == 0 {
		t.Error("nothing has a hint 12 s before the state expires")
	}
	time.Sleep(time.Second)
	if got := visited(); got != 0 {
		t.Errorf("%08x still has a hint 10.8 s before the state expires", got)
	}
	atomic.StoreUint32(word, 0x100)
	if got := visited(); got != 0x100 {
		t.Errorf("a broken hint is %08x after the garbage collection", got)
	}
}

// Interfaces whose packets find no hint are tried again only now and then.
func TestFewHints(t *testing.T) {
	oneCPU(t, 0) // each CPU counts its own
	h := newHarness(t, "pass")
	h.prefetch(true)
	const out = "udp 192.168.1.10:1000 > 198.51.100.9:53"
	unpinned := func(n int) {
		for i := range n {
			h.in(h.xdp, "lan", fmt.Sprintf("udp 192.168.1.11:%d > 192.168.1.1:53", 1000+i))
		}
	}
	for range 2 { // the second makes the hint
		h.in(h.xdp, "lan", out)
	}
	unpinned(61)
	if h.in(h.xdp, "lan", out); h.twice != 1 {
		t.Errorf("after 63 packets without a hint the next is prefetched %d times", h.twice)
	}
	unpinned(64)
	for range 1024 - 64 {
		h.in(h.xdp, "lan", out)
	}
	if h.twice != 1 {
		t.Errorf("after 64 packets without a hint others are prefetched %d times", h.twice-1)
	}
	h.in(h.xdp, "lan", out)
	if h.in(h.xdp, "lan", out); h.twice == 1 {
		t.Error("after 1,024 packets none is prefetched")
	}
}

// What goes through a prefetch device and what may be prefetched: when it is switched on
// and off, when waiting for running programs fails, after a reload and with new tables.
func TestPrefetchDevices(t *testing.T) {
	n := newNet(t)
	d := build(t, n.blank())
	commit(t, d, n.attachments(true))
	tell := func(d *Dataplane) {
		for _, ifindex := range []int{n.lan0, n.wan0} {
			check(t, d.SetInterface(ifindex, Interface{MAC: mac(lan0MAC), MTU: 1500, Flags: InterfacePresent | InterfaceXDP | InterfaceTarget}))
		}
	}
	flags := func(d *Dataplane, want InterfaceFlags, on bool) {
		t.Helper()
		for _, ifindex := range []int{n.lan0, n.wan0} {
			if got := InterfaceFlags(d.tables.shared.Interfaces[ifindex].Flags) & (interfaceDevmap | interfacePrefetch); got != want {
				t.Errorf("interface %d has flags %#x, want %#x", ifindex, got, want)
			}
		}
		if d.Prefetching() != on {
			t.Errorf("prefetches: %t", !on)
		}
	}
	entries := func(d *Dataplane, want int) {
		t.Helper()
		found := 0
		for _, ifindex := range []int{n.lan0, n.wan0} {
			var entry [2]uint32
			if d.objects.Maps[mapPrefetchDevices].Lookup(uint32(ifindex), &entry) == nil && entry[0] == uint32(ifindex) && entry[1] != 0 {
				found++
			}
		}
		if found != want {
			t.Errorf("%d prefetch devices with a program, want %d", found, want)
		}
	}
	tell(d)
	flags(d, 0, false)
	const gone = 9999
	check(t, d.SetInterface(gone, Interface{MTU: 1500, Flags: InterfacePresent | InterfaceXDP | InterfaceTarget}))

	failed := errors.New("no grace period")
	waitForRuns = func() error { return failed }
	t.Cleanup(func() { waitForRuns = bpfload.WaitForRuns })
	for range 2 {
		if err := d.Prefetch(true); !errors.Is(err, failed) {
			t.Errorf("without a grace period: %v", err)
		}
		flags(d, 0, false)
	}
	waits := 0
	waitForRuns = func() error { waits++; return bpfload.WaitForRuns() }
	for range 2 {
		check(t, d.Prefetch(true))
	}
	flags(d, interfaceDevmap|interfacePrefetch, true)
	entries(d, 2)
	if must(d.interfaceAt(gone))(t).has(interfaceDevmap | interfacePrefetch) {
		t.Error("an interface that is gone has a prefetch device")
	}
	tell(d) // a change of address
	flags(d, interfaceDevmap|interfacePrefetch, true)
	if waits != 1 {
		t.Errorf("it waited %d times, want once", waits)
	}

	next := build(t, n.blank())
	commit(t, next, n.attachments(true))
	flags(next, interfaceDevmap|interfacePrefetch, true)
	entries(next, 2)
	check(t, next.Prefetch(false))
	flags(next, 0, false)
	check(t, next.Prefetch(true))

	larger := n.blank()
	larger.Options.MaxStates *= 2
	last := build(t, larger)
	commit(t, last, n.attachments(true))
	flags(next, 0, false)
	flags(last, 0, false)
	tell(last)
	check(t, last.Prefetch(true))
	flags(last, interfaceDevmap|interfacePrefetch, true)
	entries(last, 2)
}
