package test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

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
// of a file that differs in one rule from the loaded one, or in limits, set skip and a table, which is
// loaded in place, and of one with another option, for which all programs are loaded anew.
//
//	go test -run '^$' -bench 'BenchmarkReload$' -benchtime 20x ./test
func BenchmarkReload(b *testing.B) {
	for _, hook := range []string{"tcx", "xdp"} {
		for _, rules := range []int{50, 5000} {
			for _, kind := range []struct {
				name, options string
				port          int
			}{
				{"rule", "", 4712},
				{"options", "set limit states 90000\nset skip on { lo, lan7 }\ntable <t> persist { 198.51.100.0/24 }\n", 4711},
				{"anew", "set spread lan0 auto\n", 4711},
			} {
				b.Run(fmt.Sprintf("%s/%d rules/%s", hook, rules, kind.name), func(b *testing.B) {
					benchmarkReload(b, hook, manyRules(rules, 4711), kind.options+manyRules(rules, kind.port))
				})
			}
		}
	}
}

// benchmarkReload loads two files in turn.
func benchmarkReload(b *testing.B, hook, one, other string) {
	box := weir.Box(b, hook)
	files := []string{box.Rules(other), box.Rules(one)}
	box.WeirRun(files[1])
	n := 0
	for b.Loop() {
		box.Weir("load", files[n%2])
		n++
	}
}

// BenchmarkReloadPause measures how long loads hold up packets: 50 loads of another rule, which is
// loaded in place, or alternately of another rule and of another option, and as long a time without
// loads. delay-ms is the longest that a datagram of a
// thousand a second takes from its sender to the device of its receiver, by the kernel's clock. It does
// not contain what the programs at both ends wait for a core. pause-ms, which does, is the longest time
// without data that a download has.
//
//	go test -run '^$' -bench 'BenchmarkReloadPause$' -benchtime 1x ./test
func BenchmarkReloadPause(b *testing.B) {
	one, other := manyRules(50, 4711), manyRules(50, 4712)
	for _, hook := range []string{"tcx", "xdp"} {
		for _, kind := range []struct {
			name  string
			files []string
		}{
			{"rule", []string{other, one}},
			{"anew", []string{other, "set spread lan0 auto\n" + one, one}},
		} {
			b.Run(hook+"/"+kind.name, func(b *testing.B) { benchmarkReloadPause(b, hook, kind.files) })
		}
	}
}

// benchmarkReloadPause loads the files in turn. The last one is in force at first.
func benchmarkReloadPause(b *testing.B, hook string, texts []string) {
	box := weir.Box(b, hook)
	files := make([]string, len(texts))
	for i, text := range texts {
		files[i] = box.Rules(text)
	}
	box.WeirRun(files[len(files)-1])
	var during, without held
	for b.Loop() {
		begin := time.Now()
		during.worse(whileSending(box, func() {
			for n := range 50 {
				box.Weir("load", files[n%len(files)])
			}
		}))
		took := time.Since(begin)
		without.worse(whileSending(box, func() { time.Sleep(took) }))
	}
	during.report(b, "")
	without.report(b, "-without")
}

// held is how packets were held up.
type held struct {
	pause, delay time.Duration // the longest
	lost         int
}

func (h *held) worse(other held) {
	h.pause, h.delay, h.lost = max(h.pause, other.pause), max(h.delay, other.delay), h.lost+other.lost
}

func (h *held) report(b *testing.B, suffix string) {
	b.ReportMetric(float64(h.pause.Microseconds())/1000, "pause-ms"+suffix)
	b.ReportMetric(float64(h.delay.Microseconds())/1000, "delay-ms"+suffix)
	b.ReportMetric(float64(h.lost), "lost"+suffix)
}

// whileSending returns how packets are held up while f runs.
func whileSending(box *lib.Box, f func()) (h held) {
	box.Helper()
	var datagrams held
	h.pause = longestPause(box, func() { datagrams = longestDelay(box, f) })
	h.delay, h.lost = datagrams.delay, datagrams.lost
	return h
}

// longestDelay sends a datagram each millisecond from wan to lan while f runs.
func longestDelay(box *lib.Box, f func()) (h held) {
	box.Helper()
	server, client := udpPair(box)
	defer server.Close()
	defer client.Close()
	if _, err := client.Write([]byte("begin")); err != nil { // it makes the state
		box.Fatal(err)
	}
	_, to, err := server.ReadFromUDPAddrPort(make([]byte, 16))
	if err != nil {
		box.Fatal(err)
	}
	if err := stampArrivals(client); err != nil {
		box.Fatal(err)
	}
	stop, sent := make(chan struct{}), make(chan int)
	go func() {
		runtime.LockOSThread() // and ends with the goroutine
		first := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}
		if err := unix.SchedSetAttr(0, &first, 0); err != nil { // nothing comes between the clock and the sending
			box.Error(err)
		}
		n := 0
		for tick := time.NewTicker(time.Millisecond); ; <-tick.C {
			select {
			case <-stop:
				sent <- n
				return
			default:
			}
			if _, err := server.WriteToUDPAddrPort(binary.BigEndian.AppendUint64(nil, uint64(time.Now().UnixNano())), to); err == nil {
				n++
			}
		}
	}()
	received := make(chan int)
	go func() {
		n, data, control := 0, make([]byte, 16), make([]byte, 128)
		for {
			bytes, more, _, _, err := client.ReadMsgUDPAddrPort(data, control)
			if err != nil {
				received <- n
				return
			}
			at, ok := arrival(control[:more])
			if bytes != 8 || !ok {
				continue
			}
			n++
			h.delay = max(h.delay, at.Sub(time.Unix(0, int64(binary.BigEndian.Uint64(data)))))
		}
	}()
	f()
	close(stop)
	n := <-sent
	_ = client.SetReadDeadline(time.Now().Add(time.Second)) // what is on its way arrives
	h.lost = n - <-received
	return h
}

// udpPair returns a socket on wan, and one on lan that is connected to it.
func udpPair(box *lib.Box) (server, client *net.UDPConn) {
	box.Helper()
	at := &net.UDPAddr{IP: net.ParseIP(wanHost), Port: 8001}
	err := errors.Join(
		box.Do(lab.WAN, func() (err error) {
			server, err = net.ListenUDP("udp4", at)
			return err
		}),
		box.Do(lab.LAN, func() (err error) {
			client, err = net.DialUDP("udp4", nil, at)
			return err
		}),
	)
	if err != nil {
		box.Fatal(err)
	}
	return server, client
}

// stampArrivals has the kernel say when each datagram of a socket arrived, and gives the socket room
// for those that nobody reads for a while.
func stampArrivals(c *net.UDPConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = errors.Join(
			unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1),
			unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 32<<20),
		)
	})
	return errors.Join(err, failed)
}

// arrival returns when a datagram arrived, from its control messages.
func arrival(control []byte) (time.Time, bool) {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return time.Time{}, false
	}
	for _, m := range messages {
		if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SO_TIMESTAMPNS && len(m.Data) >= 16 {
			return time.Unix(int64(binary.NativeEndian.Uint64(m.Data)), int64(binary.NativeEndian.Uint64(m.Data[8:]))), true
		}
	}
	return time.Time{}, false
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
