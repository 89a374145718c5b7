package test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"weir/test/lib"
)

//	fw: weir load a file with 300,000 addresses
//
// Reading such a file takes several hundred MiB. The daemon gives them back, and keeps what
// the table needs.
func TestMemoryAfterLoad(t *testing.T) {
	weir.UnderTCX(t, func(b *lib.Box) {
		daemon := b.WeirRun(b.Rules("pass\n"))
		before := residentMiB(b, daemon.PID())
		var text strings.Builder
		text.WriteString("table <t> {\n")
		for i := range 300_000 {
			fmt.Fprintf(&text, "11.%d.%d.%d\n", i>>16, i>>8&255, i&255)
		}
		b.Weir("load", b.Rules(text.String()+"}\nblock in from <t>\npass\n"))
		b.Until(20*time.Second, "memory is given back", func() bool { return residentMiB(b, daemon.PID()) < before+100 })
	})
}

func residentMiB(b *lib.Box, pid int) int {
	b.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	var kib int
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		b.Fatal(err)
	}
	return kib >> 10
}
