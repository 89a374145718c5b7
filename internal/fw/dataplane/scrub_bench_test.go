package dataplane

import (
	"runtime"
	"slices"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// BenchmarkScrub measures packets of a known connection under rules that normalise them.
// The figure is as in BenchmarkNew, and contains the work of a test run (about 30 ns).
func BenchmarkScrub(b *testing.B) {
	for _, c := range []struct{ name, rules string }{
		{"without", "pass"},
		{"no-df-max-mss", "match scrub (no-df max-mss 1400)\npass"},
		{"random-id-min-ttl", "match scrub (random-id min-ttl 100)\npass"},
		{"list", "scrub in all no-df random-id\npass"},
	} {
		b.Run(c.name, func(b *testing.B) {
			runtime.LockOSThread() // the caches belong to a core
			defer runtime.UnlockOSThread()
			h := newHarness(b, c.rules)
			ifindex, frame := h.arrive("lan", "udp 192.168.1.10:4000 > 203.0.113.1:53")
			frame = withHead(frame, 5, dontFragment)
			benchKnown(b, h, ifindex, frame)
		})
	}
}

// benchKnown measures the fast path under XDP for a frame, whose connection is known from its
// second time on. The caller has locked the thread, because caches belong to a core.
func benchKnown(b *testing.B, h *harness, ifindex int, frame []byte) {
	b.Helper()
	for range 2 {
		if r := h.xdp(ifindex, frame); r.verdict != redirect {
			b.Fatalf("%s (%s)", r.verdict, r.reason)
		}
	}
	out := make([]byte, 2*len(frame))
	context := [6]uint32{1: uint32(len(frame)), 3: uint32(ifindex)} // struct xdp_md
	var pins runtime.Pinner
	defer pins.Unpin()
	pins.Pin(&frame[0])
	pins.Pin(&out[0])
	pins.Pin(&context[0])
	run := timedRun{
		prog: uint32(h.dp.objects.Programs["weir_xdp"].FD()),
		in:   uintptr(unsafe.Pointer(&frame[0])), sizeIn: uint32(len(frame)),
		out:       uintptr(unsafe.Pointer(&out[0])),
		contextIn: uintptr(unsafe.Pointer(&context[0])), contextSizeIn: uint32(unsafe.Sizeof(context)),
		repeat: 1,
	}
	var times []uint32
	for b.Loop() {
		run.sizeOut = uint32(len(out))
		_, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_PROG_TEST_RUN, uintptr(unsafe.Pointer(&run)), unsafe.Sizeof(run))
		if errno != 0 {
			b.Fatal(errno)
		}
		times = append(times, run.duration)
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2]), "ns/packet")
	b.ReportMetric(float64(times[len(times)/20]), "ns/packet-5%")
}
