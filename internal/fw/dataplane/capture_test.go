package dataplane

import (
	"bytes"
	"net/netip"
	"slices"
	"testing"
	"time"

	"weir/internal/fw/reason"
)

// captured reads the records in the ring.
func (h *harness) captured() []Record {
	h.tb.Helper()
	ring := must(h.dp.OpenRing(CaptureRing))(h.tb)
	defer ring.Close()
	var all []Record
	check(h.tb, ring.Read(time.Millisecond, func(r Record) {
		r.Data = bytes.Clone(r.Data)
		all = append(all, r)
	}))
	return all
}

// capture starts a capture, which ends with the test.
func (h *harness) capture(snap int, filters ...CaptureFilter) {
	h.tb.Helper()
	check(h.tb, h.dp.SetCapture(snap, filters))
	h.captured()
}

// everything is the filter of one reader who wants all packets.
var everything = CaptureFilter{Readers: 1, All: true}

// Packets as they came and as they leave, with the verdict.
func testCapture(h *harness) {
	defer func() { check(h.tb, h.dp.SetCapture(0, nil)) }()
	h.sub("what is written", testCaptureRecords)
	h.sub("bytes", testCaptureBytes)
	h.sub("filter", testCaptureFilter)
	h.sub("malformed", testCaptureMalformed)
	h.sub("switches", testCaptureSwitches)
	h.sub("full ring", testCaptureFull)
}

func testCaptureRecords(h *harness) {
	h.load(masquerade + "block in proto udp\npass proto tcp")
	h.capture(CaptureBytes, everything)
	syn := "tcp 192.168.1.10:4000 > 198.51.100.9:80 S seq 5"
	type seen struct {
		kind    RecordKind
		in      int
		verdict Verdict
		why     reason.Reason
		rule    uint32
		peer    int
		out     bool
	}
	lan, wan := h.net.lan0, h.net.wan0
	for _, step := range []struct {
		name string
		send func()
		want seen
	}{
		{"a new connection", func() { h.in(h.xdp, "lan", syn) }, seen{RecordAfter, lan, VerdictRedirect, reason.Rule, 4, wan, false}},
		{"a hit out of its window", func() { h.in(h.xdp, "lan", "tcp 192.168.1.10:4000 > 198.51.100.9:80 A seq 900000 ack 1 len 9") }, seen{RecordAfter, lan, VerdictDrop, reason.StateMismatch, 4, 0, false}},
		{"a hit", func() { h.in(h.xdp, "lan", "tcp 192.168.1.10:4000 > 198.51.100.9:80 S seq 5") }, seen{RecordAfter, lan, VerdictRedirect, reason.State, 4, wan, false}},
		{"by TCX", func() { h.in(h.tcIn, "lan", "tcp 192.168.1.11:4000 > 198.51.100.9:80 S seq 5") }, seen{RecordAfter, lan, VerdictRedirect, reason.Rule, 4, wan, false}},
		{"blocked", func() { h.in(h.xdp, "lan", "udp 192.168.1.10:4000 > 198.51.100.9:53") }, seen{RecordAfter, lan, VerdictDrop, reason.Block, 3, 0, false}},
		{"for the box", func() { h.in(h.xdp, "lan", "tcp 192.168.1.10:4000 > 192.168.1.1:22 S seq 5") }, seen{RecordAfter, lan, VerdictUp, reason.Local, 4, 0, false}},
		{"the box's own", func() {
			h.tcOut(wan, parsePkt("tcp 203.0.113.2:4000 > 198.51.100.9:80 S seq 5").frame(wan0MAC, wanHostMAC), 0)
		}, seen{RecordAfter, wan, VerdictPass, reason.Rule, 4, 0, true}},
	} {
		h.captured()
		step.send()
		got := h.captured()
		if len(got) != 2 || got[0].Kind != RecordBefore {
			h.tb.Errorf("%s: %d records", step.name, len(got))
			continue
		}
		r := got[1]
		is := seen{r.Kind, int(r.Ifindex), r.Verdict, r.Reason, r.Rule, int(r.Peer), r.Out}
		if is != step.want {
			h.tb.Errorf("%s: %+v, want %+v", step.name, is, step.want)
		}
		if r.Readers != 1 || r.Family != 4 || r.Time < got[0].Time || got[0].Ifindex != r.Ifindex {
			h.tb.Errorf("%s: before %+v, after %+v", step.name, got[0], r)
		}
	}
}

// Records hold the exact bytes that came and that leave.
func testCaptureBytes(h *harness) {
	h.load(masquerade + "pass")
	for name, hook := range map[string]func(int, []byte) result{"xdp": h.xdp, "tcx": h.tcIn} {
		h.forget()
		h.capture(CaptureBytes, everything)
		ifindex, frame := h.arrive("lan", "udp 192.168.1.10:4000 > 198.51.100.9:53 len 900")
		left := hook(ifindex, frame)
		got := h.captured()
		if len(got) != 2 || !bytes.Equal(got[0].Data, frame) || !bytes.Equal(got[1].Data, left.frame) || bytes.Equal(frame, left.frame) {
			h.tb.Errorf("%s: the bytes are others", name)
		}
		h.capture(60, everything)
		hook(ifindex, frame)
		got = h.captured()
		if len(got) != 2 || int(got[0].Length) != len(frame) || !bytes.Equal(got[0].Data, frame[:60]) || len(got[1].Data) != 60 {
			h.tb.Errorf("%s: with 60 bytes: %+v", name, got)
		}
	}
}

func testCaptureFilter(h *harness) {
	h.load(masquerade + "pass")
	end := func(prefix string) CaptureEnd { return CaptureEnd{Prefix: netip.MustParsePrefix(prefix)} }
	port := func(low, high uint16) CaptureEnd { return CaptureEnd{Ports: true, PortLow: low, PortHigh: high} }
	without := func(e CaptureEnd) CaptureEnd { e.Not, e.PortsNot = e.Prefix.IsValid(), e.Ports; return e }
	const web, dns6 = "tcp 192.168.1.10:4000 > 198.51.100.9:80 S seq 5", "udp [fd00:1::10]:4000 > [2001:db8:9::1]:53 ext rh4,dst"
	for _, c := range []struct {
		name   string
		filter CaptureFilter
		packet string
		want   bool
	}{
		{"nothing asked", CaptureFilter{}, web, true},
		{"family", CaptureFilter{Family: 4}, web, true},
		{"other family", CaptureFilter{Family: 6}, web, false},
		{"protocol", CaptureFilter{Proto: 6}, web, true},
		{"other protocol", CaptureFilter{Proto: 17}, web, false},
		{"source", CaptureFilter{Src: end("192.168.1.0/28")}, web, true},
		{"other source", CaptureFilter{Src: end("192.168.2.0/24")}, web, false},
		{"not that source", CaptureFilter{Src: without(end("192.168.2.0/24"))}, web, true},
		{"source as it leaves", CaptureFilter{Src: end("203.0.113.2/32")}, web, true},
		{"destination", CaptureFilter{Dst: end("198.51.100.9/32")}, web, true},
		{"not that destination", CaptureFilter{Dst: without(end("198.51.100.9/32"))}, web, false},
		{"port", CaptureFilter{Dst: port(80, 80)}, web, true},
		{"other port", CaptureFilter{Dst: port(81, 65535)}, web, false},
		{"not that port", CaptureFilter{Dst: without(port(80, 80))}, web, false},
		{"source port", CaptureFilter{Src: port(3999, 4001)}, web, true},
		{"not that source port, but as it leaves", CaptureFilter{Src: without(port(4000, 4000))}, web, true},
		{"interface it came by", CaptureFilter{Ifindex: h.net.lan0}, web, true},
		{"interface it leaves by", CaptureFilter{Ifindex: h.net.wan0}, web, true},
		{"another interface", CaptureFilter{Ifindex: 1}, web, false},
		{"v6", CaptureFilter{Family: 6, Proto: 17, Src: end("fd00:1::/64"), Dst: port(53, 53)}, dns6, true},
		{"v4 asked of v6", CaptureFilter{Src: end("192.168.1.0/24")}, dns6, false},
		{"every v4 address asked of v6", CaptureFilter{Src: end("0.0.0.0/0")}, dns6, false},
		{"every v6 address", CaptureFilter{Family: 6, Src: end("::/0")}, dns6, true},
		{"ports of what has none", CaptureFilter{Dst: port(0, 65535)}, "icmp 192.168.1.10 > 198.51.100.9 type 8 id 3", false},
	} {
		c.filter.Readers = 4
		h.forget()
		h.capture(CaptureBytes, CaptureFilter{Readers: 8, Ifindex: 1}, c.filter)
		h.in(h.xdp, "lan", c.packet)
		got := h.captured()
		if (len(got) == 2) != c.want || c.want && got[0].Readers != 4 {
			h.tb.Errorf("%s: %d records of %s", c.name, len(got), c.packet)
		}
	}
	both := CaptureFilter{Readers: 1, Proto: 6}
	h.capture(CaptureBytes, slices.Repeat([]CaptureFilter{both}, CaptureFilters-1)...)
	if err := h.dp.SetCapture(CaptureBytes, slices.Repeat([]CaptureFilter{both}, CaptureFilters+1)); err == nil {
		h.tb.Error("more filters than there is room for are accepted")
	}
}

func testCaptureMalformed(h *harness) {
	h.load("pass")
	ifindex, whole := h.arrive("lan", "tcp 192.168.1.10:4000 > 198.51.100.9:80 S seq 5")
	bad := bytes.Clone(whole)
	bad[14] = 0x44 // ihl 4
	short := bytes.Clone(whole)
	short[17] = 24 // bytes of the IP packet
	sumHeader(short)
	arp := bytes.Clone(whole)
	arp[12], arp[13] = 0x08, 0x06
	for _, c := range []struct {
		name  string
		frame []byte
		why   reason.Reason
	}{
		{"short", short, reason.Short}, {"bad header", bad, reason.Malformed}, {"arp", arp, reason.Implicit},
	} {
		for name, hook := range map[string]func(int, []byte) result{"xdp": h.xdp, "tcx": h.tcIn} {
			h.capture(CaptureBytes, everything)
			hook(ifindex, c.frame)
			got := h.captured()
			if len(got) != 2 || got[1].Reason != c.why || !bytes.Equal(got[1].Data, c.frame) {
				h.tb.Errorf("%s by %s: %+v", c.name, name, got)
			}
		}
	}
	h.capture(CaptureBytes, CaptureFilter{Readers: 1, Src: CaptureEnd{Prefix: netip.MustParsePrefix("192.168.1.10/32")}})
	h.xdp(ifindex, whole[:40])
	if got := h.captured(); len(got) != 2 {
		h.tb.Errorf("a malformed frame whose address is asked for: %d records", len(got))
	}
}

// Nothing is written without a reader: with capturing off, without a daemon, and at
// interfaces that are added later.
func testCaptureSwitches(h *harness) {
	h.load("pass")
	send := func() int {
		h.in(h.xdp, "lan", "udp 192.168.1.10:4000 > 198.51.100.9:53")
		return len(h.captured())
	}
	h.capture(CaptureBytes, everything)
	if n := send(); n != 2 {
		h.tb.Errorf("on: %d records", n)
	}
	h.setInterface(h.net.lan0, InterfacePresent|InterfaceTarget, lan0MAC)
	if n := send(); n != 2 {
		h.tb.Errorf("on, at an interface that was entered again: %d records", n)
	}
	h.dp.tables.shared.Now += 400
	if n := send(); n != 0 {
		h.tb.Errorf("without a daemon: %d records", n)
	}
	h.dp.Heartbeat()
	check(h.tb, h.dp.SetCapture(0, nil))
	if n := send(); n != 0 {
		h.tb.Errorf("off: %d records", n)
	}
	if flags := InterfaceFlags(h.dp.tables.shared.Interfaces[h.net.lan0].Flags); flags&interfaceCapture != 0 {
		h.tb.Errorf("off: the interface's flags are %#x", flags)
	}
}

// A full ring loses records but no packets.
func testCaptureFull(h *harness) {
	h.load("pass")
	h.capture(CaptureBytes, everything)
	before := must(h.dp.View().RecordsLost(CaptureRing))(h.tb)
	ifindex, frame := h.arrive("lan", "udp 192.168.1.10:4000 > 198.51.100.9:53 len 1400")
	const packets = 4000 // of 3 KB: more than the ring holds
	for range packets {
		if r := h.xdp(ifindex, frame); r.verdict != redirect {
			h.tb.Fatalf("a packet is not forwarded: %+v", r)
		}
	}
	lost := must(h.dp.View().RecordsLost(CaptureRing))(h.tb) - before
	got := uint64(len(h.captured()))
	if lost == 0 || got+lost != 2*packets {
		h.tb.Errorf("%d records of %d, %d lost", got, 2*packets, lost)
	}
}

// The constants are those of the header.
func TestCaptureMatchesHeader(t *testing.T) {
	text := header(t, "observe/capture_filter.h")
	for name, want := range map[string]int{
		"CAPTURE_BYTES": CaptureBytes, "CAPTURE_FILTERS": CaptureFilters, "CAPTURE_READERS": CaptureReaders,
		"FILTER_ALL": filterAll, "FILTER_PROTO": filterProto, "FILTER_SPORT": filterSport, "FILTER_DPORT": filterDport,
		"FILTER_NOT_SRC": filterNotSrc, "FILTER_NOT_DST": filterNotDst, "FILTER_NOT_SPORT": filterNotSport, "FILTER_NOT_DPORT": filterNotDport,
	} {
		if got := define(t, text, name); got != want {
			t.Errorf("%s is %d in the header, %d in Go", name, got, want)
		}
	}
	if got, want := define(t, header(t, "shared.h"), "INTERFACE_CAPTURE"), int(interfaceCapture); got != want {
		t.Errorf("INTERFACE_CAPTURE is %#x in the header, %#x in Go", got, want)
	}
}
