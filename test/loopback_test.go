package test

import (
	"testing"

	"weir/internal/lab"
	"weir/test/lib"
)

//	fw: ping 127.0.0.1, ::1; set skip on lo0, block all
//
// Most files from BSD skip lo0, which Linux calls lo. Without the skip the same pings are
// blocked.
func TestLoopbackOfBSD(t *testing.T) {
	weir.BothAtOnce(t, func(b *lib.Box) {
		b.WeirRun(b.Rules("set skip on lo0\nblock all\n"))
		for _, to := range []string{"127.0.0.1", "::1"} {
			b.Ping(lab.FW, to, 2)
		}
		b.Weir("load", b.Rules("block all\n"))
		if out, err := b.Try(lab.FW, "ping", "-n", "-c", "1", "-W", "1", "127.0.0.1"); err == nil {
			b.Errorf("without set skip, ping is answered:\n%s", out)
		}
	})
}
