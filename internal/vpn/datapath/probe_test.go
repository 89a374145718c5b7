package datapath

import (
	"bytes"
	"errors"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/vpn/device"
)

// asks has the end ask another, and returns whether that answers.
func (e *end) asks(of *end, ends [2]netip.AddrPort, size int, wait time.Duration) bool {
	e.Helper()
	peer := e.device.LookupPeer(device.NoisePublicKey(of.secret.Public()))
	_, answered, err := e.path.Ask(e.Context(), peer, ends[0].Addr(), ends[1].Addr(), size, wait)
	if err != nil {
		e.Error(err)
	}
	return answered
}

// The engine at the other end answers requests of every size by itself. None reaches a tun device.
func TestAsk(t *testing.T) {
	for _, at := range []string{"127.0.0.1", "::1"} {
		a, b := pairOf(t, at, 1)
		peer := a.device.LookupPeer(device.NoisePublicKey(b.secret.Public()))
		if _, _, err := a.path.Ask(t.Context(), peer, four[0].Addr(), four[1].Addr(), 100, patience); !errors.Is(err, ErrNoSession) {
			t.Fatalf("without a session: %v", err)
		}
		a.reaches(b, numbered(0))
		for _, ends := range [][2]netip.AddrPort{four, six} {
			for _, size := range []int{1, 100, 1279, 1280, 1420, 1500, 9000} {
				if !a.asks(b, ends, size, patience) {
					t.Errorf("over %s: %d bytes from %v are not answered", at, size, ends[0])
				}
			}
		}
		if a.asks(b, four, 100, 0) {
			t.Error("it waits for no answer, and has one")
		}
		a.reaches(b, numbered(1))
		for _, e := range []*end{a, b} {
			if got := e.takeAny(50 * time.Millisecond); got != nil {
				t.Errorf("a tun device gets %x", got[0])
			}
			if len(e.errors) > 0 {
				t.Errorf("errors: %q", e.errors)
			}
		}
	}
}

// Too many requests go to the hosts behind, which answer them as any others.
func TestAskHosts(t *testing.T) {
	a, b := pairOf(t, "127.0.0.1", 1)
	a.reaches(b, numbered(0))
	const count = 4 * mostAnswers
	hosts := 0 // that have answered
	for i := range 2 * count {
		ends := [][2]netip.AddrPort{four, six}[i%2]
		done := make(chan bool, 1)
		go func() { done <- a.asks(b, ends, 500, patience) }()
		select {
		case answered := <-done:
			if !answered {
				t.Fatalf("request %d is not answered", i)
			}
			continue
		default:
		}
		for answered := false; !answered; {
			if got := b.takeAny(time.Millisecond); got != nil {
				answerEcho(t, b, got[0])
				hosts++
			}
			select {
			case answered = <-done:
				if !answered {
					t.Fatalf("request %d is not answered", i)
				}
			default:
			}
		}
	}
	if hosts == 0 {
		t.Errorf("the engine has answered all of %d requests", 2*count)
	}
}

// answerEcho answers a request as a host does.
func answerEcho(t *testing.T, e *end, p []byte) {
	t.Helper()
	ip, kind, reply, head := 40, byte(echo6), byte(echoReply6), []byte{}
	if p[0]>>4 == 4 {
		if ip, kind, reply = 20, echo4, echoReply4; slowSum(p[:20]) != 0 {
			t.Errorf("the checksum of IPv4 is wrong: %x", p[:20])
		}
	} else {
		head = append(append(head, p[8:40]...), 0, 0, byte((len(p)-40)>>8), byte(len(p)-40), 0, 0, 0, 58)
	}
	if p[ip] != kind || len(p) != 500 || slowSum(append(bytes.Clone(head), p[ip:]...)) != 0 {
		t.Errorf("no request of 500 bytes, or its checksum is wrong: %x", p)
	}
	answer := bytes.Clone(p)
	if ip == 20 {
		copy(answer[12:], p[16:20])
		copy(answer[16:], p[12:16])
	} else {
		copy(answer[8:], p[24:40])
		copy(answer[24:], p[8:24])
	}
	answer[ip], answer[ip+2], answer[ip+3] = reply, 0, 0
	check := slowSum(append(bytes.Clone(head), answer[ip:]...))
	answer[ip+2], answer[ip+3] = byte(check>>8), byte(check)
	e.put(0, append(make([]byte, sizeVnet), answer...))
}

// What an engine answers is right to the bit.
func TestReply(t *testing.T) {
	for i, ends := range [][2]netip.AddrPort{four, six} {
		p := probeRequest(ends[0].Addr(), ends[1].Addr(), 321, 0x1234567890abcdef)
		request, kind := bytes.Clone(p), []byte{echoReply4, echoReply6}[i]
		probeReply(p, kind)
		ip, head := 20, []byte{}
		if i == 1 {
			ip, head = 40, append(bytes.Clone(p[8:40]), 0, 0, byte((len(p)-40)>>8), byte(len(p)-40), 0, 0, 0, 58)
		}
		if !bytes.Equal(source(p), destination(request)) || !bytes.Equal(destination(p), source(request)) || p[ip] != kind ||
			slowSum(append(head, p[ip:]...)) != 0 || i == 0 && slowSum(p[:20]) != 0 || !bytes.Equal(p[ip+4:], request[ip+4:]) {
			t.Errorf("the answer to\n%x is\n%x", request, p)
		}
	}
}

// Requests are sent whole, and what else is sent is cut as it was before, or everywhere.
func TestWhole(t *testing.T) {
	for _, at := range []string{"127.0.0.1", "::1"} {
		a, b := pairOf(t, at, 1)
		a.reaches(b, numbered(0))
		s, level, option := a.path.four.socket, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER
		if at == "::1" {
			s, level, option = a.path.six.socket, unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER
		}
		read := func(option int) int {
			n, err := unix.GetsockoptInt(s.fd, level, option)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		var during atomic.Int32
		f := fault(func(messages []byte, _ int, _ *device.Endpoint) unix.Errno {
			if len(messages) > 4000 {
				during.Store(int32(read(option)))
			}
			return 0
		})
		s.fault.Store(&f)
		for _, cut := range []bool{false, true, false} {
			a.path.Cut(cut)
			if !a.asks(b, four, 5000, patience) {
				t.Error("there is no answer")
			}
			want := unix.IP_PMTUDISC_WANT
			if cut && at != "::1" {
				want = unix.IP_PMTUDISC_DONT
			}
			if got := read(option); during.Load() != unix.IP_PMTUDISC_PROBE || got != want {
				t.Errorf("over %s, cut %v: %d while a request is sent, and then %d", at, cut, during.Load(), got)
			}
		}
	}
}
