package dataplane

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// BenchmarkEther measures packets of a known connection that come in where frames meet ether
// rules. The figure is as in BenchmarkScrub.
func BenchmarkEther(b *testing.B) {
	var users strings.Builder
	for i := range 500 {
		fmt.Fprintf(&users, "ether pass in quick on lan0 proto 0x0800 from 02:00:00:00:%02x:%02x l3 from 10.0.%d.%d to any tag auth\n", i>>8, i&255, i>>8, i&255)
	}
	const last = "ether pass in quick on lan0 proto 0x0800 from " + lanHostMAC + " l3 from 192.168.1.10 to any tag auth\n"
	for _, c := range []struct{ name, rules string }{
		{"without", "pass"},
		{"elsewhere", "ether block in on wan0\npass"},
		{"one", last + "pass"},
		{"500", users.String() + last + "pass"},
		{"500-tables", "table <t> persist\n" + users.String() + "ether block in on lan0 l3 from <t> to any\n" + last + "pass"},
	} {
		b.Run(c.name, func(b *testing.B) {
			runtime.LockOSThread() // the caches belong to a core
			defer runtime.UnlockOSThread()
			h := newHarness(b, c.rules)
			h.meetFrames(h.dp.config.Program)
			ifindex, frame := h.arrive("lan", "udp 192.168.1.10:4000 > 203.0.113.1:53")
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
		})
	}
}
