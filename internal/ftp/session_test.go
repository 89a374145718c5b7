package ftp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// recorder records what is loaded.
type recorder struct {
	mu     sync.Mutex
	loaded []string
	failed error
}

func (*recorder) Check(context.Context, string) error { return nil }

func (r *recorder) Load(_ context.Context, _, text string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.loaded = append(r.loaded, text)
	return r.failed
}

func (r *recorder) Flush(_ context.Context, path string, below bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.loaded = append(r.loaded, fmt.Sprintf("flush %s %v", path, below))
	return nil
}

// end is one end of a talk.
type end struct {
	net.Conn
	lines *bufio.Reader
}

// talk is a session between a client and a server that the test plays.
type talk struct {
	*testing.T
	client, server *end
	rules          *recorder
	done           chan error
	closed         func()
	sending        sync.WaitGroup
}

func newTalk(t *testing.T) *talk {
	t.Helper()
	client, clientSide := net.Pipe()
	server, serverSide := net.Pipe()
	x := &talk{T: t, rules: &recorder{}, done: make(chan error, 1)}
	s := &session{
		Proxy: &Proxy{Idle: time.Minute, Rules: x.rules}, log: slog.New(slog.DiscardHandler), path: "ftp-proxy/1.1",
		client: clientSide, server: serverSide,
		from: netip.MustParseAddrPort("192.168.1.10:4000"), called: netip.MustParseAddrPort("203.0.113.1:21"),
		real: netip.MustParseAddrPort("203.0.113.1:21"), own: netip.MustParseAddrPort("203.0.113.2:5000"),
	}
	for _, c := range []net.Conn{client, server} {
		c.SetDeadline(time.Now().Add(10 * time.Second)) //nolint:errcheck // a pipe can
	}
	x.client, x.server = &end{client, bufio.NewReader(client)}, &end{server, bufio.NewReader(server)}
	x.closed = func() { client.Close(); server.Close() }
	go func() { x.done <- s.run(t.Context()) }()
	t.Cleanup(func() { x.closed(); <-x.done; x.sending.Wait() })
	return x
}

func (x *talk) send(to *end, line string) {
	if _, err := io.WriteString(to, line); err != nil {
		x.Error(err)
	}
}

func (x *talk) sendLater(to *end, line string) { x.sending.Go(func() { x.send(to, line) }) }

func (x *talk) expect(from *end, want string) string {
	x.Helper()
	line, err := from.lines.ReadString('\n')
	if err != nil || !strings.HasPrefix(line, want) {
		x.Fatalf("read %q, %v; want %q", line, err, want)
	}
	return line
}

// fromServer sends a line to the client, which gets another one.
func (x *talk) fromServer(line, want string) string {
	x.Helper()
	x.sendLater(x.server, line)
	return x.expect(x.client, want)
}

func (x *talk) fromClient(line, want string) string {
	x.Helper()
	x.sendLater(x.client, line)
	return x.expect(x.server, want)
}

func TestPassive(t *testing.T) {
	x := newTalk(t)
	x.fromServer("220 hello\r\n", "220 hello\r\n")
	x.fromServer("227 (203,0,113,1,7,208)\r\n", "227 (203,0,113,1,7,208)\r\n") // nobody has asked
	x.fromClient("pasv\r\n", "pasv\r\n")
	x.fromServer("227 Entering Passive Mode (10,0,0,1,7,208)\r\n", "227 Entering Passive Mode (203,0,113,1,7,208)\r\n")
	x.fromClient("EPSV\r\n", "EPSV\r\n")
	x.fromServer("229 Entering (|||2001|)\r\n", "229 Entering Extended Passive Mode (|||2001|)\r\n")
	x.fromClient("EPSV\r\n", "EPSV\r\n")
	x.fromServer("229 Entering (|||22|)\r\n", "425 ")
	x.rules.failed = io.ErrUnexpectedEOF
	x.fromClient("EPSV\r\n", "EPSV\r\n")
	x.fromServer("229 Entering (|||2002|)\r\n", "425 ")
	x.closed()
	<-x.done
	x.done <- nil
	var want []string
	for _, port := range []int{2000, 2001, 2002} {
		want = append(want, fmt.Sprintf("pass in quick inet proto tcp from 192.168.1.10 to 203.0.113.1 port %d flags S/SA tag ftp-proxy-data\n"+
			"pass out quick inet proto tcp to 203.0.113.1 port %d flags S/SA tagged ftp-proxy-data nat-to 203.0.113.2\n", port, port))
	}
	want = append(want, "flush ftp-proxy/1.1 false")
	if !slices.Equal(x.rules.loaded, want) {
		t.Errorf("loaded %q, want %q", x.rules.loaded, want)
	}
}

func TestActive(t *testing.T) {
	x := newTalk(t)
	first := x.fromClient("PORT 192,168,1,10,7,208\r\n", "PORT 203,0,113,2,")
	second := x.fromClient("EPRT |1|192.168.1.10|2001|\r\n", "EPRT |1|203.0.113.2|")
	for i, line := range []string{first, second} {
		word, rest := command(line)
		at, err := parseEPRT(rest)
		if word == "PORT" {
			at, err = parsePort(rest)
		}
		if err != nil || at.Port() < firstPort {
			t.Errorf("the server is told %q", line)
		}
		want := fmt.Sprintf("pass in quick inet proto tcp from 203.0.113.1 to 203.0.113.2 port %d flags S/SA tag ftp-proxy-data rdr-to 192.168.1.10 port %d\n"+
			"pass out quick inet proto tcp to 192.168.1.10 port %d flags S/SA tagged ftp-proxy-data\n", at.Port(), 2000+i, 2000+i)
		if x.rules.loaded[i] != want {
			t.Errorf("loaded %q, want %q", x.rules.loaded[i], want)
		}
	}
	// No bounce: another host, or one of the client's own services.
	for _, line := range []string{"PORT 192,168,1,11,7,208\r\n", "PORT 192,168,1,10,0,22\r\n", "EPRT |2|fd00::1|2000|\r\n", "EPRT |1|192.168.1.10\r\n"} {
		x.sendLater(x.client, line)
		x.expect(x.client, "501 ")
	}
	if len(x.rules.loaded) != 2 {
		t.Errorf("loaded %q", x.rules.loaded[2:])
	}
}

// After AUTH bytes go through as they are, without an end of line.
func TestSecret(t *testing.T) {
	x := newTalk(t)
	x.fromClient("AUTH TLS\r\n", "AUTH TLS\r\n")
	x.fromServer("234 go on\r\n", "234 go on\r\n")
	for _, way := range [][2]*end{{x.client, x.server}, {x.server, x.client}} {
		x.sendLater(way[0], "\x16\x03\x01 PASV 227")
		got := make([]byte, 12)
		if _, err := io.ReadFull(way[1].lines, got); err != nil || string(got) != "\x16\x03\x01 PASV 227" {
			t.Errorf("%q, %v", got, err)
		}
	}
}

func TestLongLine(t *testing.T) {
	x := newTalk(t)
	x.fromClient("CWD "+strings.Repeat("x", 4096)+"\r\n", "CWD xxx")
	go io.WriteString(x.client, strings.Repeat("x", maxLine+1)) //nolint:errcheck // the session ends before it has read all
	if err := <-x.done; err == nil || !strings.Contains(err.Error(), "more than 8192 bytes") {
		t.Errorf("a line without an end: %v", err)
	}
	x.done <- nil
}

// A client that asks without waiting, and a server that reads and does not answer, take no
// memory of the proxy's.
func TestUnanswered(t *testing.T) {
	x := newTalk(t)
	x.sending.Go(func() {
		for range 2 * maxAsked {
			if _, err := io.WriteString(x.client, "STAT "+strings.Repeat("x", 4000)+"\r\n"); err != nil {
				return
			}
		}
	})
	x.sending.Go(func() { io.Copy(io.Discard, x.server.lines) }) //nolint:errcheck // until the session ends
	select {
	case err := <-x.done:
		if !errors.Is(err, errUnanswered) {
			t.Errorf("the session has ended with %v", err)
		}
		x.done <- nil
	case <-time.After(10 * time.Second):
		t.Error("the session goes on")
	}
}
