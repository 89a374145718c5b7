package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/bench/sample"
)

// running is a server that a test started.
type running struct {
	addr netip.AddrPort
	mu   sync.Mutex
	log  []string
	stop context.CancelFunc
	err  chan error
}

// startServer serves on loopback until the test ends.
func startServer(t *testing.T, key Key, change func(*ServerOptions)) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := &running{stop: cancel, err: make(chan error, 1)}
	ready := make(chan netip.AddrPort, 1)
	o := ServerOptions{
		Listen: "127.0.0.1:0", Key: key, Limits: DefaultLimits(), Program: "test",
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

func (r *running) logged(text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Contains(strings.Join(r.log, "\n"), text)
}

func startClient(t *testing.T, r *running, key Key) *client {
	t.Helper()
	c, err := connect(t.Context(), r.addr, key, "test")
	if err != nil {
		t.Fatal(err)
	}
	if c.sampler, err = sample.Open(""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.close(); c.sampler.Close() })
	return c
}

func TestRunInEachDirection(t *testing.T) {
	key := NewKey()
	r := startServer(t, key, nil)
	c := startClient(t, r, key)
	if c.probes == nil {
		t.Fatalf("no UDP to the server: %v", c.unproven)
	}
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
			got, err := c.run(t.Context(), test.c.request(r.addr.Addr(), 600*time.Millisecond))
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
	if want := float64(c.Rate); d.rate() < 0.2*want || d.rate() > 1.5*want { // others may use the machine as well
		t.Errorf("%s, want about %s: %+v", Rate(d.rate()), c.Rate, *d)
	}
	if !d.received.Whole || d.received.Window < 500*time.Millisecond || len(d.received.Series) == 0 {
		t.Errorf("received %+v", d.received)
	}
	if c.Protocol == UDP && (d.sent.Packets == 0 || d.loss() > 0.3 || d.received.Packets > d.sent.Packets) {
		t.Errorf("%d datagrams sent, %d received", d.sent.Packets, d.received.Packets)
	}
}

func TestWrongKey(t *testing.T) {
	r := startServer(t, NewKey(), nil)
	if _, err := connect(t.Context(), r.addr, NewKey(), "test"); !errors.Is(err, errNoKey) {
		t.Errorf("error %v, want %v", err, errNoKey)
	}
	// A client that does not look at the server's certificate is refused by it.
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
}

// TestServerWithAnotherKey: whoever only pretends to be the server learns
// nothing that would let it in elsewhere.
func TestServerRoleIsNotTheClients(t *testing.T) {
	key := NewKey()
	r := startServer(t, key, nil)
	// Somebody who has only the server's own certificate is not a client.
	config, err := key.config(roleServer, roleServer)
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := speak(t, r, config); err == nil {
		t.Errorf("the server's certificate made %v of a client", answer)
	}
}

func TestOneClientAtATime(t *testing.T) {
	key := NewKey()
	r := startServer(t, key, nil)
	first := startClient(t, r, key)
	var refused *RefusedError
	if _, err := connect(t.Context(), r.addr, key, "test"); !errors.As(err, &refused) {
		t.Fatalf("a second client: %v, want a refusal", err)
	}
	first.close()
	for end := time.Now().Add(5 * time.Second); ; {
		c, err := connect(t.Context(), r.addr, key, "test")
		if err == nil {
			c.close()
			return
		}
		if time.Now().After(end) {
			t.Fatalf("after the first has gone: %v", err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// atMost is what passes a bound in a window: after a pause of the machine the
// bucket's burst comes on top.
func atMost(rate float64, window time.Duration) float64 {
	return 1.1 * rate * (window + bucketBurst).Seconds() / window.Seconds()
}

func TestBounds(t *testing.T) {
	key := NewKey()
	limits := Limits{Rate: 50e6, Run: 1200 * time.Millisecond, Session: time.Minute, Data: 1e12, Connections: 2}
	r := startServer(t, key, func(o *ServerOptions) { o.Limits = limits })
	c := startClient(t, r, key)
	got, err := c.run(t.Context(), Case{TCP, Both, 8, 1e9, 0}.request(r.addr.Addr(), 5*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	if len(got.cut) != 3 || got.granted.Connections != 2 || got.granted.Rate != 50e6 ||
		got.granted.Omit+got.granted.Count != limits.Run {
		t.Errorf("granted %+v, cut %q", got.granted, got.cut)
	}
	for _, d := range []*direction{got.up, got.down} {
		if d.rate() > atMost(limits.Rate, limits.Run) {
			t.Errorf("%s where the server's bound is %s", Rate(d.rate()), Rate(limits.Rate))
		}
	}
}

// TestClientFasterThanGranted: the server's bound holds without the client's
// help.
func TestClientFasterThanGranted(t *testing.T) {
	key := NewKey()
	r := startServer(t, key, func(o *ServerOptions) { o.Limits.Rate = 20e6 })
	c := startClient(t, r, key)
	run := Case{TCP, Up, 1, 0, 0}.request(r.addr.Addr(), time.Second)
	e, m := grantedRun(t, c, run)
	e.run.Rate = 0 // as fast as it goes
	d, err := finish(t, c, e, m)
	if err != nil {
		t.Fatal(err)
	}
	if rate := float64(d.Received.Bytes) * 8 / d.Received.Window.Seconds(); rate > atMost(20e6, time.Second) {
		t.Errorf("the server took %s, bound 20 Mbit/s", Rate(rate))
	}
	run = Case{UDP, Up, 1, 20e6, 1518}.request(r.addr.Addr(), 3*time.Second)
	e, m = grantedRun(t, c, run)
	e.run.Rate = 200e6
	if d, err := finish(t, c, e, m); err == nil && d.Ended != errTooFast.Error() {
		t.Errorf("ten times the rate of UDP: %+v", d)
	}
}

// grantedRun does what client.run does up to the start.
func grantedRun(t *testing.T, c *client, run Run) (*exchange, *granted) {
	t.Helper()
	m, err := c.ask(t.Context(), &message{Run: &run})
	if err != nil || m.Granted == nil {
		t.Fatalf("%v %v", m, err)
	}
	e := &exchange{run: m.Granted.Run, sends: run.Up, receives: run.Down}
	t.Cleanup(e.close)
	if err := c.connectAll(t.Context(), e, m.Granted.Tickets); err != nil {
		t.Fatal(err)
	}
	if m, err := c.ask(t.Context(), &message{Go: &struct{}{}}); err != nil || m.Started == nil {
		t.Fatalf("%v %v", m, err)
	}
	return e, m.Granted
}

func finish(t *testing.T, c *client, e *exchange, _ *granted) (*outcome, error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go c.stayAlive(ctx)
	s, _, err := e.carryOut(ctx)
	if err != nil {
		t.Logf("the client: %v", err)
	}
	if err := c.sayWhatWasSent(s); err != nil {
		return nil, err
	}
	for {
		m, err := c.hear(ctx)
		if err != nil {
			return nil, err
		}
		if m.Done != nil {
			return m.Done, nil
		}
	}
}

func TestBoundOnData(t *testing.T) {
	key := NewKey()
	r := startServer(t, key, func(o *ServerOptions) { o.Limits.Data = 20e6 })
	c := startClient(t, r, key)
	var refused *RefusedError
	for _, test := range []Case{{TCP, Down, 1, 0, 0}, {TCP, Up, 1, 0, 0}} {
		if _, err := c.run(t.Context(), test.request(r.addr.Addr(), 3*time.Second)); !errors.As(err, &refused) || refused.Why != errBudget.Error() {
			t.Errorf("%s: %v, want %v", test, err, errBudget)
		}
	}
}

func TestBoundOnTime(t *testing.T) {
	key := NewKey()
	r := startServer(t, key, func(o *ServerOptions) { o.Limits.Session = 1500 * time.Millisecond })
	c := startClient(t, r, key)
	begun := time.Now()
	_, err := c.run(t.Context(), Case{UDP, Down, 1, 1e6, 512}.request(r.addr.Addr(), 20*time.Second))
	var refused *RefusedError
	if !errors.As(err, &refused) || !strings.Contains(refused.Why, "--max-session") {
		t.Errorf("after the session's time: %v", err)
	}
	if took := time.Since(begun); took > 4*time.Second {
		t.Errorf("it took %s", took)
	}
}

// TestSilentClient: a server stops sending when the client shows no life, here
// though its sockets are open, and not before.
func TestSilentClient(t *testing.T) {
	key := NewKey()
	r := startServer(t, key, nil)
	c := startClient(t, r, key)
	before := time.Now()
	e, _ := grantedRun(t, c, Case{UDP, Down, 1, 10e6, 512}.request(r.addr.Addr(), 25*time.Second))
	for end := time.Now().Add(10 * alivePatience); !r.logged(errGone.Error()); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the server does not say that the client has gone")
		}
	}
	if waited := time.Since(before); waited < alivePatience {
		t.Errorf("the server gave up after %s, want %s at least", waited, alivePatience)
	}
	// What was sent before lies in the socket's buffer, and is less than that.
	for read, buffer := 0, make([]byte, 2048); ; {
		if err := e.udp.SetReadDeadline(time.Now().Add(500 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		n, err := e.udp.Read(buffer)
		if err != nil {
			return // nothing comes any more
		}
		if read += n; read > 2*udpBuffer {
			t.Fatal("the server still sends")
		}
	}
}

// TestServerDies: the client says so, soon.
func TestServerDies(t *testing.T) {
	key := NewKey()
	r := startServer(t, key, nil)
	c := startClient(t, r, key)
	c.probes.tag = newTicket().tag() // no echo comes, so the prober waits for it
	time.AfterFunc(500*time.Millisecond, r.stop)
	begun := time.Now()
	_, err := c.run(t.Context(), Case{TCP, Both, 2, 50e6, 0}.request(r.addr.Addr(), 20*time.Second))
	if err == nil || time.Since(begun) > 15*time.Second {
		t.Errorf("error %v after %s", err, time.Since(begun))
	}
	// Nothing of the run goes on behind the caller's back.
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for _, task := range []string{"(*prober).measure", "(*client).stayAlive", "(*client).listen", "(*Sampler).Watch"} {
		if bytes.Contains(stacks, []byte(task)) {
			t.Errorf("%s still runs", task)
		}
	}
}

// TestStrangers: connections without a key are few, end soon, and do not keep
// others out for long.
func TestStrangers(t *testing.T) {
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
	more, err := net.Dial("tcp", r.addr.String()) // and accepted after those
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

// TestForeignBytes: what is neither TLS nor a ticket is closed without an
// answer, and a ticket lets in once.
func TestForeignBytes(t *testing.T) {
	key := NewKey()
	r := startServer(t, key, nil)
	for _, b := range [][]byte{
		[]byte("GET / HTTP/1.0\r\n\r\n        "), appendPreamble(newTicket()), appendPreamble(ticket{}),
	} {
		c, err := net.Dial("tcp", r.addr.String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write(b); err != nil {
			t.Fatal(err)
		}
		if n, err := readFor(c, handshakePatience-time.Second); n != 0 || !ended(err) {
			t.Errorf("%q: %d bytes, %v; want it closed", b, n, err)
		}
		c.Close()
	}
	c := startClient(t, r, key)
	run := Case{TCP, Up, 1, 1e6, 0}.request(r.addr.Addr(), time.Second)
	m, err := c.ask(t.Context(), &message{Run: &run})
	if err != nil {
		t.Fatal(err)
	}
	// Whichever is looked at first has used the ticket up.
	type reading struct {
		conn net.Conn
		err  error
	}
	closed := make(chan reading, 2)
	for range 2 {
		conn, err := c.data(t.Context(), m.Granted.Tickets[0])
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		go func() {
			_, err := readFor(conn, handshakePatience-time.Second)
			closed <- reading{conn, err}
		}()
	}
	if refused := <-closed; !ended(refused.err) {
		t.Errorf("a used ticket: %v; want its connection closed", refused.err)
	}
	if m, err := c.ask(t.Context(), &message{Go: &struct{}{}}); err != nil || m.Started == nil {
		t.Errorf("the ticket's first holder is not in the run: %v, %v", m, err)
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
