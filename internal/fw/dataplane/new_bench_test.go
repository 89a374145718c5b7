package dataplane

import (
	"encoding/binary"
	"runtime"
	"slices"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// timedRun is the part of union bpf_attr for BPF_PROG_TEST_RUN (linux/bpf.h). The kernel
// writes result, sizeOut and duration.
type timedRun struct {
	prog, result    uint32
	sizeIn, sizeOut uint32
	in, out         uintptr
	repeat          uint32
	duration        uint32 // ns of one run, as the kernel measures it
	contextSizeIn   uint32
	contextSizeOut  uint32
	contextIn       uintptr
	contextOut      uintptr
	flags, cpu      uint32
	batch, pad      uint32
}

// A timer times runs of weir_xdp over one frame.
type timer struct {
	run   timedRun
	out   []byte
	pins  runtime.Pinner
	times []uint32
}

// newTimer prepares runs over a frame that comes in by an interface. The caller unpins.
func newTimer(h *harness, ifindex int, frame []byte) *timer {
	t := &timer{out: make([]byte, 2*len(frame))}
	context := &[6]uint32{1: uint32(len(frame)), 3: uint32(ifindex)} // struct xdp_md
	t.pins.Pin(&frame[0])
	t.pins.Pin(&t.out[0])
	t.pins.Pin(context)
	t.run = timedRun{
		prog: uint32(h.program("weir_xdp").FD()),
		in:   uintptr(unsafe.Pointer(&frame[0])), sizeIn: uint32(len(frame)),
		out:       uintptr(unsafe.Pointer(&t.out[0])),
		contextIn: uintptr(unsafe.Pointer(context)), contextSizeIn: uint32(unsafe.Sizeof(*context)),
		repeat: 1,
	}
	return t
}

// once makes a run.
func (t *timer) once(b testing.TB) {
	t.run.sizeOut = uint32(len(t.out))
	_, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_PROG_TEST_RUN, uintptr(unsafe.Pointer(&t.run)), unsafe.Sizeof(t.run))
	if errno != 0 {
		b.Fatal(errno)
	}
	t.times = append(t.times, t.run.duration)
}

// share returns the time that one of so many runs stays below, in ns.
func (t *timer) share(of int) float64 {
	slices.Sort(t.times)
	return float64(t.times[len(t.times)/of])
}

// BenchmarkNew measures packets of new flows: each makes a state, or is blocked. With limits
// the states count under a rule and one of 17 sources; with sources each flow has a source
// of its own. The
// kernel itself takes the time of each run of weir_xdp, so the system call around it does
// not count. The figure is the median. It tells builds apart that run in turn.
func BenchmarkNew(b *testing.B) {
	for _, c := range []struct{ name, rules string }{
		{"pass", "block\npass proto udp"},
		{"nat", "match out on wan0 inet from 192.168.0.0/16 nat-to 203.0.113.2\nblock\npass proto udp"},
		{"block", "block proto udp\npass proto tcp"},
		{"limits", "block\npass proto udp keep state (max 1000000, max-src-states 900000, source-track rule)"},
		{"sources", "set limit src-nodes 1000000\nblock\npass proto udp keep state (max 1000000, max-src-states 9, source-track rule)"},
	} {
		b.Run(c.name, func(b *testing.B) {
			runtime.LockOSThread() // the caches belong to a core
			defer runtime.UnlockOSThread()
			h := newHarness(b, "set limit states 1000000\n"+c.rules)
			_, frame := h.arrive("lan", "udp 192.168.1.10:4000 > 203.0.113.1:53")
			before := len(h.states())
			t := newTimer(h, h.net.lan0, frame)
			defer t.pins.Unpin()
			for flow := 0; b.Loop(); flow = (flow + 1) % 900_000 {
				newFlow(frame, flow)
				if c.name == "sources" {
					newSource(frame, flow)
				}
				t.once(b)
			}
			made := len(h.states()) - before
			if want := min(len(t.times), 900_000) - 1; c.name != "block" && made < want || c.name == "block" && made != 0 {
				b.Fatalf("%d packets made %d states", len(t.times), made)
			}
			b.ReportMetric(t.share(2), "ns/packet")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// newFlow writes the addresses and ports of a flow into a frame with IPv4 and UDP. No two
// of a million flows are alike, before or after a translation of their source.
func newFlow(frame []byte, flow int) {
	ip, udp := frame[14:34], frame[34:42]
	order := binary.BigEndian
	order.PutUint16(ip[14:], uint16(1<<8+10+flow/60_000)) // 192.168.1.10 to .26
	order.PutUint16(udp, uint16(1024+flow%60_000))
	order.PutUint16(udp[2:], uint16(1024+uint32(flow)*2654435761>>17))
	order.PutUint16(udp[6:], 0) // no checksum
	order.PutUint16(ip[10:], 0)
	var sum uint32
	for i := 0; i < len(ip); i += 2 {
		sum += uint32(order.Uint16(ip[i:]))
	}
	sum = sum>>16 + sum&0xffff
	order.PutUint16(ip[10:], ^uint16(sum+sum>>16))
}

// newSource gives a flow a source of its own.
func newSource(frame []byte, flow int) {
	ip := frame[14:34]
	binary.BigEndian.PutUint32(ip[12:], 10<<24|uint32(flow))
	setHeaderSum(ip)
}
