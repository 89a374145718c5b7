package dataplane

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
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
			benchKnown(b, h, ifindex, frame)
		})
	}
}
