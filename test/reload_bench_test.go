package test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"weir/internal/lab"
	"weir/test/lib"
)

// manyRules returns a file with about that many rules. Files with other ports differ in one rule.
func manyRules(rules, port int) string {
	var text strings.Builder
	text.WriteString("set skip on lo\nmatch out on wan0 inet from lan0:network nat-to (wan0)\nblock\npass in on lan0\npass out\n")
	for i := range rules - 6 {
		fmt.Fprintf(&text, "block in on wan0 inet proto tcp from 198.51.100.%d to port %d\n", i%250+1, 1000+i/250)
	}
	fmt.Fprintf(&text, "block in on wan0 inet proto tcp to port %d\n", port)
	return text.String()
}

// BenchmarkReload measures how long weir load takes, from the start of the program to its end:
// of a file that differs in one rule from the loaded one, which is loaded in place, and of one with
// another option, for which all programs are loaded anew.
//
//	go test -run '^$' -bench 'BenchmarkReload$' -benchtime 20x ./test
func BenchmarkReload(b *testing.B) {
	for _, hook := range []string{"tcx", "xdp"} {
		for _, rules := range []int{50, 5000} {
			for _, kind := range []string{"in place", "anew"} {
				b.Run(fmt.Sprintf("%s/%d rules/%s", hook, rules, kind), func(b *testing.B) { benchmarkReload(b, hook, rules, kind == "anew") })
			}
		}
	}
}

func benchmarkReload(b *testing.B, hook string, rules int, anew bool) {
	box := weir.Box(b, hook)
	one, other := manyRules(rules, 4711), manyRules(rules, 4712)
	if anew {
		other = "set timeout udp.first 70\n" + other
	}
	files := []string{box.Rules(other), box.Rules(one)}
	box.WeirRun(files[1])
	n := 0
	for b.Loop() {
		box.Weir("load", files[n%2])
		n++
	}
}

// BenchmarkReloadPause measures the longest pause of a download during 50 loads, alternately of
// another rule and of another option, and during as long a time without them.
//
//	go test -run '^$' -bench 'BenchmarkReloadPause$' -benchtime 1x ./test
func BenchmarkReloadPause(b *testing.B) {
	for _, hook := range []string{"tcx", "xdp"} {
		b.Run(hook, func(b *testing.B) {
			box := weir.Box(b, hook)
			one, other := manyRules(50, 4711), manyRules(50, 4712)
			files := []string{box.Rules(other), box.Rules("set timeout udp.first 70\n" + one), box.Rules(one)}
			box.WeirRun(files[2])
			var during, without time.Duration
			for b.Loop() {
				begin := time.Now()
				pause := longestPause(box, func() {
					for n := range 50 {
						box.Weir("load", files[n%3])
					}
				})
				took := time.Since(begin)
				during = max(during, pause)
				without = max(without, longestPause(box, func() { time.Sleep(took) }))
			}
			b.ReportMetric(float64(during.Microseconds())/1000, "pause-ms")
			b.ReportMetric(float64(without.Microseconds())/1000, "pause-without-ms")
		})
	}
}

// longestPause returns the longest time without data that a download of 8 MB a second has while
// f runs.
func longestPause(box *lib.Box, f func()) time.Duration {
	box.Helper()
	var listener net.Listener
	var conn net.Conn
	err := box.Do(lab.WAN, func() (err error) {
		listener, err = net.Listen("tcp", wanHost+":8000")
		return err
	})
	if err != nil {
		box.Fatal(err)
	}
	defer listener.Close()
	go func() {
		server, err := listener.Accept()
		if err != nil {
			return
		}
		defer server.Close()
		chunk := make([]byte, 8000)
		for tick := time.NewTicker(time.Millisecond); ; <-tick.C {
			if _, err := server.Write(chunk); err != nil {
				return
			}
		}
	}()
	err = box.Do(lab.LAN, func() (err error) {
		conn, err = net.DialTimeout("tcp", wanHost+":8000", 10*time.Second)
		return err
	})
	if err != nil {
		box.Fatal(err)
	}
	if _, err := io.CopyN(io.Discard, conn, 80_000); err != nil { // the connection is at its pace
		box.Fatal(err)
	}
	done := make(chan time.Duration)
	go func() {
		var longest time.Duration
		data := make([]byte, 64<<10)
		for last := time.Now(); ; {
			if _, err := conn.Read(data); err != nil {
				done <- longest
				return
			}
			now := time.Now()
			longest, last = max(longest, now.Sub(last)), now
		}
	}()
	f()
	conn.Close()
	return <-done
}
