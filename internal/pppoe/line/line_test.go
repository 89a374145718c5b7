package line_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/fw/bpfload"
	"weir/internal/lab"
	"weir/internal/pppoe/discovery"
	"weir/internal/pppoe/line"
	"weir/internal/pppoe/wire"
	"weir/internal/testenv"
)

const session = 0x58a1

// end is one end of a session, in a network namespace of its own.
type end struct {
	host string
	mac  net.HardwareAddr
	line.Device
	programs *line.Programs
	session  line.Session
}

// pair is a session between two namespaces, whose ends are both made by this package.
//
//	home ppp0 ==== eth0 ---- eth0 ==== ppp0 provider
func pair(t *testing.T, mtu int) (l *lab.Lab, ends [2]*end) {
	t.Helper()
	testenv.NeedRoot(t)
	topology := lab.Topology{
		Hosts: []lab.Host{{Name: "home"}, {Name: "provider"}},
		Wires: []lab.Wire{{
			{Host: "home", Device: "eth0", MAC: "02:77:65:00:00:01"}, {Host: "provider", Device: "eth0", MAC: "02:77:65:00:00:02"},
		}},
	}
	name := fmt.Sprintf("line-%d", os.Getpid())
	l, err := lab.Up(t.Context(), lab.Options{Name: name, Topology: topology, Queues: 1})
	t.Cleanup(func() {
		if _, err := lab.Remove(name, topology); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	base := filepath.Join("/run/weir-line-test", name)
	for i, host := range []string{"home", "provider"} {
		run(t, l, host, "ip", "link", "set", "eth0", "mtu", fmt.Sprint(mtu+8))
		ends[i] = &end{host: host, mac: net.HardwareAddr{2, 0x77, 0x65, 0, 0, byte(i + 1)}}
		err := l.Do(host, func() error { return ends[i].up(filepath.Join(base, host), mtu) })
		t.Cleanup(func() { ends[i].programs.Close() })
		if err != nil {
			t.Fatal(err)
		}
		other := 2 - i
		run(t, l, host, "ip", "address", "add", fmt.Sprintf("198.51.100.%d", i+1), "peer", fmt.Sprintf("198.51.100.%d", other), "dev", "ppp0")
		run(t, l, host, "ip", "address", "add", fmt.Sprintf("fe80::%d/64", i+1), "dev", "ppp0", "nodad")
	}
	t.Cleanup(func() {
		if err := errors.Join(os.RemoveAll(base), bpfload.UnmountFS("/run/weir-line-test")); err != nil {
			t.Error(err)
		}
	})
	return l, ends
}

func (e *end) up(dir string, mtu int) (err error) {
	if err := bpfload.MountFS("/run/weir-line-test"); err != nil {
		return err
	}
	if e.Device, err = line.Add("ppp0"); err != nil {
		return err
	}
	if e.programs, err = line.Open(dir); err != nil {
		return err
	}
	nic, err := net.InterfaceByName("eth0")
	if err != nil {
		return err
	}
	other := discovery.MAC{2, 0x77, 0x65, 0, 0, 3 - e.mac[5]}
	e.session = line.Session{Device: e.Device, Carrier: nic.Index, ID: session, Peer: other, Local: discovery.MAC(e.mac)}
	return errors.Join(e.Describe(e.mac, mtu), e.programs.Enter(e.session), e.SetCarrier(true))
}

func run(t *testing.T, l *lab.Lab, host string, words ...string) string {
	t.Helper()
	out, err := l.Run(t.Context(), host, words[0], words[1:]...)
	if err != nil {
		t.Fatal(err, out)
	}
	return string(out)
}

// TestTraffic sends both families both ways, small and large, with and without the process
// that has set it up.
func TestTraffic(t *testing.T) {
	l, ends := pair(t, 1492)
	ping := func(words ...string) {
		t.Helper()
		out := run(t, l, "home", append([]string{"ping", "-c", "3", "-i", "0.05", "-W", "1"}, words...)...)
		if !strings.Contains(out, " 0% packet loss") {
			t.Error(out)
		}
	}
	ping("198.51.100.2")
	ping("-M", "do", "-s", "1464", "198.51.100.2")
	ping("fe80::2%ppp0")
	ping("-M", "do", "-s", "1444", "fe80::2%ppp0")
	for _, e := range ends {
		if err := e.programs.Close(); err != nil {
			t.Fatal(err)
		}
	}
	ping("198.51.100.2")
	transfer(t, l, "198.51.100.2")
	transfer(t, l, "198.51.100.2", "-R")
	transfer(t, l, "fe80::2%ppp0")
	transfer(t, l, "fe80::2%ppp0", "-R")
}

// transfer sends 64 MB by TCP. The offloads of the wire's devices are on: so are super-packets
// and checksums that are left to the device.
func transfer(t *testing.T, l *lab.Lab, to string, words ...string) {
	t.Helper()
	server := exec.CommandContext(t.Context(), "iperf3", "--server", "--one-off", "--port", "5201")
	if err := l.Start("provider", server); err != nil {
		t.Fatal(err)
	}
	if err := l.AwaitListener(t.Context(), "provider", 5201); err != nil {
		t.Fatal(err)
	}
	run(t, l, "home", append([]string{"iperf3", "-c", to, "-p", "5201", "-n", "64M", "-f", "m"}, words...)...)
	if err := server.Wait(); err != nil {
		t.Error(err)
	}
}

// TestDrops sends frames that are not the session's.
func TestDrops(t *testing.T) {
	l, ends := pair(t, 1492)
	home := ends[0]
	unanswered := func() {
		t.Helper()
		if out, err := l.Run(t.Context(), "provider", "ping", "-c", "3", "-i", "0.05", "-W", "0.3", "198.51.100.1"); err == nil {
			t.Errorf("answered: %s", out)
		}
	}
	enter := func(s line.Session) {
		t.Helper()
		if err := l.Do("home", func() error { return home.programs.Enter(s) }); err != nil {
			t.Fatal(err)
		}
	}
	s := home.session
	s.Peer[5]++
	enter(s)
	unanswered()
	drops, _, err := home.programs.Drops()
	if err != nil || drops != (line.Drops{Peer: 3}) {
		t.Errorf("frames of another concentrator: %+v, %v; want 3 drops", drops, err)
	}
	s = home.session
	s.ID++
	enter(s)
	unanswered()
	enter(home.session)
	run(t, l, "provider", "ping", "-c", "1", "-W", "1", "198.51.100.1")
	if err := l.Do("home", func() error { return errors.Join(home.SetCarrier(false), home.programs.Leave(home.Device)) }); err != nil {
		t.Fatal(err)
	}
	unanswered()
	if out := run(t, l, "home", "ip", "-o", "link", "show", "ppp0"); !strings.Contains(out, "NO-CARRIER") {
		t.Errorf("ppp0 without a session: %s", out)
	}
	if out := run(t, l, "home", "ip", "-o", "address", "show", "dev", "ppp0"); strings.Count(out, "\n") != 2 {
		t.Errorf("ppp0 without a session has these addresses: %s", out)
	}
}

// framed returns a frame of PPPoE.
func framed(to, from net.HardwareAddr, number, ether, kind uint16, payload []byte) []byte {
	b := slices.Concat(to, from)
	for _, n := range []uint16{ether, kind, number, uint16(len(payload))} {
		b = binary.BigEndian.AppendUint16(b, n)
	}
	return append(b, payload...)
}

// lcp returns an LCP packet with a magic number.
func lcp(code byte, magic uint32, tail int) []byte {
	b := binary.BigEndian.AppendUint16([]byte{code, 7}, uint16(8+tail))
	return append(binary.BigEndian.AppendUint32(b, magic), bytes.Repeat([]byte{0xa5}, tail)...)
}

// TestEcho sends LCP packets to an end without a client.
func TestEcho(t *testing.T) {
	l, ends := pair(t, 1492)
	home, provider := ends[0], ends[1]
	home.session.Magic, home.session.MTU = 0x11223344, 1492
	var w *wire.Wire
	err := errors.Join(
		l.Do("home", func() error { return errors.Join(home.programs.Enter(home.session), home.programs.Close()) }),
		l.Do("provider", func() (err error) { w, err = wire.Open("eth0", 0); return err }),
	)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	frame := func(number uint16, from net.HardwareAddr, lcp []byte) []byte {
		return framed(home.mac, from, number, 0x8864, 0x1100, slices.Concat([]byte{0xc0, 0x21}, lcp))
	}
	answer := func(request []byte) []byte {
		t.Helper()
		if err := w.Send(request); err != nil {
			t.Fatal(err)
		}
		select {
		case f := <-w.Frames:
			return f
		case <-time.After(200 * time.Millisecond):
			return nil
		}
	}
	long := lcp(9, 1, 0)
	long[3]++ // one byte more than there is
	stranger := net.HardwareAddr{2, 0x77, 0x65, 0, 0, 9}
	for _, test := range []struct {
		name    string
		request []byte
		tail    int // < 0: there is no answer
	}{
		{"a request", frame(session, provider.mac, lcp(9, 0x55667788, 0)), 0},
		{"one with data", frame(session, provider.mac, lcp(9, 0x55667788, 100)), 100},
		{"the largest", frame(session, provider.mac, lcp(9, 0x55667788, 1484)), 1484},
		{"no magic number", frame(session, provider.mac, lcp(9, 0, 0)), 0},
		{"our own magic number", frame(session, provider.mac, lcp(9, 0x11223344, 0)), -1},
		{"a reply", frame(session, provider.mac, lcp(10, 0x55667788, 0)), -1},
		{"another session", frame(session+1, provider.mac, lcp(9, 0x55667788, 0)), -1},
		{"another concentrator", frame(session, stranger, lcp(9, 0x55667788, 0)), -1},
		{"a length that is not there", frame(session, provider.mac, long), -1},
		{"without magic number", frame(session, provider.mac, []byte{9, 7, 0, 4}), -1},
	} {
		var want []byte
		if test.tail >= 0 {
			want = slices.Clone(test.request)
			copy(want, provider.mac)
			copy(want[6:], home.mac)
			copy(want[22:], lcp(10, 0x11223344, test.tail))
		}
		got := answer(test.request)
		if len(got) > len(want) && want != nil {
			got = got[:len(want)] // padding
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s: answered by % x, want % x", test.name, got, want)
		}
	}
	answers := 0
	for range 200 {
		if err := w.Send(frame(session, provider.mac, lcp(9, 1, 0))); err != nil {
			t.Fatal(err)
		}
	}
	for answer(frame(session, provider.mac, lcp(10, 1, 0))) != nil {
		answers++
	}
	if answers < 10 || answers > 40 { // a second may end between
		t.Errorf("%d of 200 requests at once are answered, want 20 or twice that", answers)
	}
}

// TestEnd sends frames that end a session, and some that only look so, to an end without a client. An ended
// session sends and takes nothing.
func TestEnd(t *testing.T) {
	l, ends := pair(t, 1492)
	home, provider := ends[0], ends[1]
	var w *wire.Wire
	if err := l.Do("provider", func() (err error) { w, err = wire.Open("eth0", 0); return err }); err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	run(t, l, "home", "ping", "-c", "1", "-W", "1", "198.51.100.2")
	stranger := net.HardwareAddr{2, 0x77, 0x65, 0, 0, 9}
	terminate := []byte{0xc0, 0x21, 5, 7, 0, 4}
	reason := []byte{0xc0, 0x21, 5, 7, 0, 9, 'n', 'i', 'g', 'h', 't'}
	errorTag := []byte{0x02, 0x03, 0, 5, 'n', 'i', 'g', 'h', 't'}
	longer := func(b []byte, at int) []byte {
		b = slices.Clone(b)
		b[at]++
		return b
	}
	padt := framed(home.mac, provider.mac, session, 0x8863, 0x11a7, nil)
	request := framed(home.mac, provider.mac, session, 0x8864, 0x1100, terminate)
	for _, test := range []struct {
		name     string
		frame    []byte
		by       string // ends the session
		answered bool
	}{
		{"a PADT", padt, "PADT", false},
		{"one with a tag", framed(home.mac, provider.mac, session, 0x8863, 0x11a7, errorTag), "PADT", false},
		{"one with padding", append(slices.Clone(padt), make([]byte, 40)...), "PADT", false},
		{"a PADT longer than its frame", longer(padt, 19), "", false},
		{"a PADT of another version", framed(home.mac, provider.mac, session, 0x8863, 0x12a7, nil), "", false},
		{"a PADT from another station", framed(home.mac, stranger, session, 0x8863, 0x11a7, nil), "", false},
		{"a PADT to another station", framed(stranger, provider.mac, session, 0x8863, 0x11a7, nil), "", false},
		{"a PADT to all", framed(net.HardwareAddr{255, 255, 255, 255, 255, 255}, provider.mac, session, 0x8863, 0x11a7, nil), "", false},
		{"a PADT of another session", framed(home.mac, provider.mac, session+1, 0x8863, 0x11a7, nil), "", false},
		{"a PADT of session 0", framed(home.mac, provider.mac, 0, 0x8863, 0x11a7, nil), "", false},
		{"a PADT as session data", framed(home.mac, provider.mac, session, 0x8864, 0x11a7, nil), "", false},
		{"a cut PADT", padt[:19], "", false},
		{"a PADT of a VLAN", slices.Concat(padt[:12], []byte{0x81, 0, 0, 7}, padt[12:]), "", false},
		{"a PADS", framed(home.mac, provider.mac, session, 0x8863, 0x1165, nil), "", false},
		{"a Terminate-Request", request, "LCP Terminate-Request", true},
		{"one with a reason", framed(home.mac, provider.mac, session, 0x8864, 0x1100, reason), "LCP Terminate-Request", true},
		{"one from another station", framed(home.mac, stranger, session, 0x8864, 0x1100, terminate), "", false},
		{"one of another session", framed(home.mac, provider.mac, session+1, 0x8864, 0x1100, terminate), "", false},
		{"one as discovery", framed(home.mac, provider.mac, session, 0x8863, 0x1100, terminate), "", false},
		{"one whose length is too small", longer(request, 19)[:25], "", false},
		{"one longer than its frame", framed(home.mac, provider.mac, session, 0x8864, 0x1100, longer(terminate, 5)), "", false},
		{"one shorter than its frame says", framed(home.mac, provider.mac, session, 0x8864, 0x1100, append(slices.Clone(terminate), 0)), "", false},
		{"a Terminate-Ack", framed(home.mac, provider.mac, session, 0x8864, 0x1100, longer(terminate, 2)), "", false},
		{"an end of IPCP", framed(home.mac, provider.mac, session, 0x8864, 0x1100, longer(longer(terminate, 0), 1)[:6]), "", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := l.Do("home", func() error { return errors.Join(home.programs.Leave(home.Device), home.programs.Enter(home.session)) })
			if err != nil {
				t.Fatal(err)
			}
			run(t, l, "home", "ping", "-c", "1", "-W", "1", "198.51.100.2")
			if err := w.Send(test.frame); err != nil {
				t.Fatal(err)
			}
			var got []byte
			select {
			case got = <-w.Frames:
			case <-time.After(200 * time.Millisecond):
			}
			if test.answered {
				want := slices.Concat(provider.mac, home.mac, test.frame[12:])
				want[22] = 6
				if len(got) < len(want) || !bytes.Equal(got[:len(want)], want) {
					t.Errorf("answered by % x, want % x", got, want)
				}
			} else if got != nil {
				t.Errorf("answered by % x", got)
			}
			if by := home.programs.Ended(home.Device).By; by != test.by || home.programs.IsOpen(home.Index) != (test.by == "") {
				t.Errorf("ended by %q, want %q", by, test.by)
			}
			before, _, err := home.programs.Drops()
			if err != nil {
				t.Fatal(err)
			}
			_, fromHome := l.Run(t.Context(), "home", "ping", "-c", "1", "-W", "0.3", "198.51.100.2")
			_, fromProvider := l.Run(t.Context(), "provider", "ping", "-c", "1", "-W", "0.3", "198.51.100.1")
			if open := test.by == ""; open != (fromHome == nil) || open != (fromProvider == nil) {
				t.Errorf("ping from home: %v, from the provider: %v", fromHome, fromProvider)
			}
			after, _, err := home.programs.Drops()
			if err != nil {
				t.Fatal(err)
			}
			if test.by != "" && (after.Out == before.Out || after.Over == before.Over) {
				t.Errorf("dropped %+v, before %+v", after, before)
			}
			err = l.Do("home", func() error { return home.programs.Enter(home.session) })
			if (test.by != "") != errors.Is(err, line.ErrEnded) {
				t.Errorf("enter the session again: %v", err)
			}
		})
	}
	_, ended, err := home.programs.Drops()
	if err != nil || ended != (line.Ends{PADT: 3, Terminate: 2}) {
		t.Errorf("%+v have ended, %v", ended, err)
	}
}
