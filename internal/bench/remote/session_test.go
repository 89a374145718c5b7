package remote

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/rpc"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/bench/iperf"
	"weir/internal/bench/sample"
	"weir/internal/testenv"
)

// testServer is a server that a test started.
type testServer struct {
	addr netip.AddrPort
	data uint16
	mu   sync.Mutex
	log  []string
	stop context.CancelFunc
	err  chan error
}

// givenPorts are the ports that tests have got from freePort. Nobody may listen on one of
// them yet.
var givenPorts sync.Map

// freePort returns a port that nobody listens on, another one for each test.
func freePort(t *testing.T) uint16 {
	t.Helper()
	for {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := addrPort(l.Addr()).Port()
		l.Close()
		if _, given := givenPorts.LoadOrStore(port, true); !given {
			return port
		}
	}
}

// startServer serves on loopback until the test ends.
func startServer(t *testing.T, key Key, change func(*ServerOptions)) *testServer {
	t.Helper()
	testenv.NeedProgram(t, "iperf3")
	ctx, cancel := context.WithCancel(t.Context())
	r := &testServer{stop: cancel, err: make(chan error, 1)}
	ready := make(chan netip.AddrPort, 1)
	o := ServerOptions{
		Listen: "127.0.0.1:0", DataPort: freePort(t), Key: key, Limits: DefaultLimits(), Program: "test",
		Ready: func(a netip.AddrPort) { ready <- a },
		Log: func(format string, args ...any) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.log = append(r.log, fmt.Sprintf(format, args...))
		},
	}
	if change != nil {
		change(&o)
	}
	r.data = o.DataPort
	go func() { r.err <- Serve(ctx, o) }()
	select {
	case r.addr = <-ready:
	case err := <-r.err:
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-r.err:
			if err != nil {
				t.Errorf("the server ended with %v", err)
			}
		case <-time.After(10 * time.Second):
			t.Error("the server does not end")
		}
		if t.Failed() {
			t.Log(strings.Join(r.log, "\n"))
		}
	})
	return r
}

func startClient(t *testing.T, r *testServer, key Key) *client {
	t.Helper()
	c, err := connect(t.Context(), r.addr, key, "test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.calls.Close() })
	return c
}

// measureWith returns what a benchmark needs besides the session.
func measureWith(t *testing.T, r *testServer) *measured {
	t.Helper()
	o := Defaults()
	m := &measured{options: &o, server: r.addr}
	var err error
	if m.tool, err = iperf.Find(t.Context()); err != nil {
		t.Fatal(err)
	}
	if m.sampler, err = sample.Open(""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.sampler.Close() })
	return m
}

// The tests that move data run alone, for they would take it from each other.
func TestRunInEachDirection(t *testing.T) {
	testenv.NeedRoot(t) // for the raw socket of ICMP echo
	key := NewKey()
	r := startServer(t, key, nil)
	c := startClient(t, r, key)
	m := measureWith(t, r)
	for _, test := range []struct {
		name string
		c    Case
	}{
		{"tcp up", Case{TCP, Up, 1, 50e6, 0}},
		{"tcp down", Case{TCP, Down, 3, 50e6, 0}},
		{"tcp both", Case{TCP, Both, 2, 50e6, 0}},
		{"udp up", Case{UDP, Up, 1, 5e6, 1518}},
		{"udp down", Case{UDP, Down, 1, 5e6, 512}},
		{"udp both, smallest", Case{UDP, Both, 1, 2e6, 64}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := m.run(t.Context(), c, test.c.request(r.addr.Addr(), time.Second))
			if err != nil {
				t.Fatal(err)
			}
			if (got.up != nil) != (test.c.Direction != Down) || (got.down != nil) != (test.c.Direction != Up) {
				t.Fatalf("directions: up %v, down %v", got.up, got.down)
			}
			for _, d := range []*direction{got.up, got.down} {
				checkDirection(t, d, test.c)
			}
			if len(got.rtts) < 20 || got.lost > len(got.rtts) {
				t.Errorf("%d round-trip times, %d probes lost", len(got.rtts), got.lost)
			}
			if len(got.own) == 0 || len(got.theirs) == 0 {
				t.Errorf("%d samples of the client, %d of the server", len(got.own), len(got.theirs))
			}
		})
	}
}

func checkDirection(t *testing.T, d *direction, c Case) {
	t.Helper()
	if d == nil {
		return
	}
	if want := float64(c.Rate); d.Rate < 0.2*want || d.Rate > 1.5*want { // others may use the machine as well
		t.Errorf("%s, want about %s: %+v", Rate(d.Rate), c.Rate, *d)
	}
	if d.Seconds < 0.5 || len(d.Series) == 0 {
		t.Errorf("received %+v", *d)
	}
	if c.Protocol == UDP && (d.Packets == 0 || d.loss() > 30) {
		t.Errorf("%d datagrams sent, %d lost", d.Packets, d.Lost)
	}
}

func TestWrongKey(t *testing.T) {
	t.Parallel()
	key := NewKey()
	r := startServer(t, key, nil)
	if _, err := connect(t.Context(), r.addr, NewKey(), "test"); !errors.Is(err, errNoKey) {
		t.Errorf("error %v, want %v", err, errNoKey)
	}
	// The server rejects a client that does not check the server's certificate.
	config, err := NewKey().config(roleClient, roleServer)
	if err != nil {
		t.Fatal(err)
	}
	config.VerifyConnection = nil
	if answer, err := speak(t, r, config); err == nil {
		t.Errorf("a client with another key got %v", answer)
	}
	config.Certificates = nil
	if answer, err := speak(t, r, config); err == nil {
		t.Errorf("a client without a certificate got %v", answer)
	}
	// It also rejects a client that has only the server's own certificate.
	if config, err = key.config(roleServer, roleServer); err != nil {
		t.Fatal(err)
	}
	if answer, err := speak(t, r, config); err == nil {
		t.Errorf("the server's certificate made %v of a client", answer)
	}
}

func TestOneClientAtATime(t *testing.T) {
	t.Parallel()
	key := NewKey()
	r := startServer(t, key, nil)
	first := startClient(t, r, key)
	var refused *RefusedError
	if _, err := connect(t.Context(), r.addr, key, "test"); !errors.As(err, &refused) {
		t.Fatalf("a second client: %v, want a refusal", err)
	}
	first.calls.Close()
	for end := time.Now().Add(5 * time.Second); ; {
		c, err := connect(t.Context(), r.addr, key, "test")
		if err == nil {
			c.calls.Close()
			return
		}
		if time.Now().After(end) {
			t.Fatalf("after the first has gone: %v", err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestBounds(t *testing.T) {
	key := NewKey()
	limits := Limits{Rate: 50e6, Run: 2 * time.Second, Session: time.Minute, Data: 1e12, Connections: 2}
	r := startServer(t, key, func(o *ServerOptions) { o.Limits = limits })
	c, m := startClient(t, r, key), measureWith(t, r)
	m.noProbe = "not measured here"
	got, err := m.run(t.Context(), c, Case{TCP, Both, 8, 1e9, 0}.request(r.addr.Addr(), 5*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	if len(got.cut) != 3 || got.granted.Connections != 2 || got.granted.Rate != 50e6 ||
		got.granted.time() != limits.Run {
		t.Errorf("granted %+v, cut %q", got.granted, got.cut)
	}
	for _, d := range []*direction{got.up, got.down} {
		if d.Rate > 1.25*float64(limits.Rate) {
			t.Errorf("%s where the server's bound is %s", Rate(d.Rate), limits.Rate)
		}
	}
}

// TestClientFasterThanGranted: the server's limit holds without the client's help, for
// what a client requests from iperf3 and for what it does without a request.
func TestClientFasterThanGranted(t *testing.T) {
	key := NewKey()
	r := startServer(t, key, func(o *ServerOptions) { o.Limits.Rate = 20e6 })
	c, m := startClient(t, r, key), measureWith(t, r)
	for _, test := range []struct {
		c    Case
		rate Rate
	}{{Case{TCP, Up, 1, 0, 0}, 0}, {Case{TCP, Down, 1, 0, 0}, 0}, {Case{UDP, Up, 1, 20e6, 1518}, 200e6}} {
		asked, got := test.c.request(r.addr.Addr(), 5*time.Second), &result{}
		begun := time.Now()
		err := c.run(t.Context(), &asked, got, func(ctx context.Context, port uint16) error {
			got.granted.Rate = test.rate
			return got.traffic(ctx, m.tool, r.addr.Addr().String(), port)
		})
		if err == nil || time.Since(begun) > 6*time.Second {
			t.Errorf("%s faster than granted: %v after %s; want it cut off", test.c, err, time.Since(begun))
		}
	}
}

func TestBoundOnData(t *testing.T) {
	key := NewKey()
	r := startServer(t, key, func(o *ServerOptions) { o.Limits.Data = 20e6 })
	c, m := startClient(t, r, key), measureWith(t, r)
	m.noProbe = "not measured here"
	var refused *RefusedError
	asked := Case{TCP, Down, 1, 0, 0}.request(r.addr.Addr(), 3*time.Second)
	if _, err := m.run(t.Context(), c, asked); !errors.As(err, &refused) || refused.Why != errBudget.Error() {
		t.Errorf("%v, want %v", err, errBudget)
	}
	asked.Rate = 50e6 // 6.25 MB a second: enough for three seconds, then for at most one
	if got, err := m.run(t.Context(), c, asked); err != nil || got.granted.time() != 3*time.Second {
		t.Fatalf("%+v, %v", got, err)
	}
	if got, err := m.run(t.Context(), c, asked); err == nil && got.granted.Count > time.Second {
		t.Errorf("what was moved is not charged: %+v", got.granted)
	}
}

func TestBoundOnTime(t *testing.T) {
	t.Parallel()
	key := NewKey()
	r := startServer(t, key, func(o *ServerOptions) { o.Limits.Session = 1500 * time.Millisecond })
	c, m := startClient(t, r, key), measureWith(t, r)
	begun := time.Now()
	_, err := m.run(t.Context(), c, Case{UDP, Down, 1, 1e6, 512}.request(r.addr.Addr(), 20*time.Second))
	var refused *RefusedError
	if !errors.As(err, &refused) || !strings.Contains(refused.Why, "--max-session") {
		t.Errorf("after the session's time: %v", err)
	}
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
}

// listens reports whether something listens on the server's data port.
func (r *testServer) listens(t *testing.T) bool {
	t.Helper()
	p := port{number: r.data, peer: r.addr.Addr()}
	if err := p.look(); err != nil {
		t.Fatal(err)
	}
	return p.listens || p.ours
}

// begin requests a run and does not use it.
func begin(t *testing.T, r *testServer, c *client) {
	t.Helper()
	asked := Case{TCP, Down, 1, 10e6, 0}.request(r.addr.Addr(), 25*time.Second)
	if err := c.call(t.Context(), "Begin", &asked, &Granted{}, 0); err != nil {
		t.Fatal(err)
	}
}

// TestClientGoes: iperf3 runs only for a granted run, and ends with its client.
func TestClientGoes(t *testing.T) {
	t.Parallel()
	key := NewKey()
	r := startServer(t, key, nil)
	c := startClient(t, r, key)
	if r.listens(t) {
		t.Fatal("somebody listens before a run")
	}
	begin(t, r, c)
	if !r.listens(t) {
		t.Fatal("a run is granted, and nothing listens")
	}
	c.calls.Close()
	eventually(t, r, key).calls.Close()
	if r.listens(t) {
		t.Error("iperf3 outlives its client")
	}
}

// TestStrangerAtThePort: a run ends at once if a stranger takes it before the client
// does.
func TestStrangerAtThePort(t *testing.T) {
	t.Parallel()
	key := NewKey()
	r := startServer(t, key, nil)
	c := startClient(t, r, key)
	begin(t, r, c)
	conn, err := net.DialTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: int(r.data)})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var o Outcome
	if err := c.call(t.Context(), "Finish", false, &o, 0); err != nil || !strings.Contains(o.Ended, errStranger.Error()) {
		t.Errorf("%q, %v; want %v", o.Ended, err, errStranger)
	}
	// A socket like the one iperf3 makes for a datagram with a forged address.
	flow, err := net.DialUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: int(r.data)}, &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9})
	if err != nil {
		t.Fatal(err)
	}
	defer flow.Close()
	if err := (&port{number: r.data, peer: netip.MustParseAddr("192.0.2.1")}).guard(t.Context()); !errors.Is(err, errStranger) {
		t.Errorf("UDP: %v", err)
	}
}

// TestOutOfOrder: calls in a wrong order are refused.
func TestOutOfOrder(t *testing.T) {
	t.Parallel()
	key := NewKey()
	r := startServer(t, key, nil)
	c := startClient(t, r, key)
	var refused *RefusedError
	if err := c.call(t.Context(), "Finish", false, &Outcome{}, 0); !errors.As(err, &refused) {
		t.Errorf("the end of no run: %v", err)
	}
	begin(t, r, c)
	asked := Case{TCP, Down, 1, 10e6, 0}.request(r.addr.Addr(), time.Second)
	if err := c.call(t.Context(), "Begin", &asked, &Granted{}, 0); !errors.As(err, &refused) {
		t.Errorf("two runs at once: %v", err)
	}
	if err := c.call(t.Context(), "Hello", strings.Repeat("x", 2*maxFromClient), &Welcome{}, 0); err == nil {
		t.Error("a client may say what it likes")
	}
}

// TestServerDies: the client soon reports it. It looks at all tasks of the process, so it
// runs alone.
func TestServerDies(t *testing.T) {
	key := NewKey()
	r := startServer(t, key, nil)
	c, m := startClient(t, r, key), measureWith(t, r)
	time.AfterFunc(500*time.Millisecond, r.stop)
	begun := time.Now()
	_, err := m.run(t.Context(), c, Case{TCP, Both, 2, 50e6, 0}.request(r.addr.Addr(), 20*time.Second))
	if err == nil || time.Since(begun) > 15*time.Second {
		t.Errorf("error %v after %s", err, time.Since(begun))
	}
	// Nothing of the run continues after the call returned.
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for _, task := range []string{"probe.(*Echo).Run", "(*Sampler).Watch", "(*Tool).execute"} {
		if bytes.Contains(stacks, []byte(task)) {
			t.Errorf("%s still runs", task)
		}
	}
}

// TestOtherVersion: a side with another version is told so and gets no session.
func TestOtherVersion(t *testing.T) {
	t.Parallel()
	key := NewKey()
	r := startServer(t, key, nil)
	config, err := key.config(roleClient, roleServer)
	if err != nil {
		t.Fatal(err)
	}
	config.NextProtos = []string{"weir-bench/2"}
	_, err = tls.Dial("tcp", r.addr.String(), config)
	if err == nil || !strings.Contains(explain(err).Error(), "of this version") {
		t.Errorf("another version: %v", err)
	}
}

// eventually connects once the server has noticed that the previous client is gone.
func eventually(t *testing.T, r *testServer, key Key) *client {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		c, err := connect(t.Context(), r.addr, key, "test")
		if err == nil {
			return c
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// speak says hello to a server with any TLS configuration, and returns the answer.
func speak(t *testing.T, r *testServer, config *tls.Config) (w Welcome, err error) {
	t.Helper()
	conn, err := tls.Dial("tcp", r.addr.String(), config)
	if err != nil {
		return w, err
	}
	c := &client{calls: rpc.NewClient(conn)}
	defer c.calls.Close()
	return w, c.call(t.Context(), "Hello", "test", &w, 0)
}

// TestStrangers: connections without a key are few, end soon, and do not keep others out
// for long.
func TestStrangers(t *testing.T) {
	t.Parallel()
	key := NewKey()
	r := startServer(t, key, nil)
	var open []net.Conn
	for range maxStrangersEach {
		c, err := net.Dial("tcp", r.addr.String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		open = append(open, c)
	}
	more, err := net.Dial("tcp", r.addr.String()) // accepted after those
	if err != nil {
		t.Fatal(err)
	}
	defer more.Close()
	if n, err := readFor(more, handshakePatience-time.Second); n != 0 || !ended(err) {
		t.Errorf("one stranger too many: %d bytes, %v; want it closed", n, err)
	}
	for _, c := range open {
		if n, err := readFor(c, 4*handshakePatience); n != 0 || !ended(err) {
			t.Errorf("a silent stranger: %d bytes, %v; want it closed", n, err)
		}
	}
	startClient(t, r, key)
}

// TestForeignBytes: bytes that are not TLS get at most TLS's alert, and no session.
func TestForeignBytes(t *testing.T) {
	t.Parallel()
	r := startServer(t, NewKey(), nil)
	for _, b := range [][]byte{[]byte("GET / HTTP/1.0\r\n\r\n        "), []byte("WEIRBN1\n0123456789abcdef")} {
		c, err := net.Dial("tcp", r.addr.String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Write(b); err != nil {
			t.Fatal(err)
		}
		for all := 0; err == nil; {
			var n int
			if n, err = readFor(c, handshakePatience-time.Second); all+n > 16 {
				t.Errorf("%q is answered by %d bytes", b, all+n)
			}
			all += n
		}
		if !ended(err) {
			t.Errorf("%q: %v; want it closed", b, err)
		}
	}
	if r.listens(t) {
		t.Error("iperf3 was started for a stranger")
	}
}

func readFor(c net.Conn, d time.Duration) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(d)); err != nil {
		return 0, err
	}
	return c.Read(make([]byte, 64))
}

func ended(err error) bool {
	var timeout net.Error
	return errors.Is(err, io.EOF) || err != nil && !(errors.As(err, &timeout) && timeout.Timeout())
}
