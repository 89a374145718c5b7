package web

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// stubborn is a server that answers the first few requests of each connection. For each
// further one it asks a function whether to answer or to keep silent.
func stubborn(t *testing.T, first int, further func(number int) (answer bool)) netip.AddrPort {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	var furthers atomic.Int32
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				reader := bufio.NewReader(conn)
				for i := 0; ; i++ {
					if _, err := http.ReadRequest(reader); err != nil {
						return
					}
					if i >= first && !further(int(furthers.Add(1))) {
						continue
					}
					fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx")
				}
			}()
		}
	}()
	return listener.Addr().(*net.TCPAddr).AddrPort()
}

// TestClientsTimeout: a timeout ends long after its phase and still counts as a failure
// of that phase.
func TestClientsTimeout(t *testing.T) {
	p := Plan{Clients: 2, PerConnection: 2, Sizes: []int{1}, Sustain: 100 * time.Millisecond, Patience: 300 * time.Millisecond,
		Target: stubborn(t, 1, func(int) bool { return false })}
	r, err := Run(t.Context(), Host{}, p)
	if err != nil {
		t.Fatal(err)
	}
	if r.Transactions != 2 || r.Failed != 2 || !strings.Contains(r.Invalid(), "2 of 4 transactions failed") {
		t.Errorf("%d transactions, %d failed: %s", r.Transactions, r.Failed, r.Invalid())
	}
}

// TestClientsBusy: a visitor who waits too long for a free client counts as a failure,
// and the run does not last until all are served.
func TestClientsBusy(t *testing.T) {
	p := Plan{Clients: 1, PerConnection: 1, Sizes: []int{1}, Sustain: 100 * time.Millisecond, Patience: 300 * time.Millisecond, Rate: 1000,
		Target: stubborn(t, 0, func(int) bool { return false })}
	r, err := Run(t.Context(), Host{}, p)
	if err != nil {
		t.Fatal(err)
	}
	if r.Connections != r.Failed || r.Broken < 50 || r.Connections+r.Broken > 101 {
		t.Errorf("%d connections, %d failed, %d visitors waited in vain: %v", r.Connections, r.Failed, r.Broken, r.FirstError)
	}
}

// TestHeldAtOnce: the server answers the last requests once all have arrived. That works
// only if none waits for another.
func TestHeldAtOnce(t *testing.T) {
	const connections = 40
	all := make(chan struct{})
	p := Plan{Clients: 2, PerConnection: 1, Sizes: []int{1}, Hold: true, Connections: connections}
	p.Target = stubborn(t, 1, func(number int) bool {
		if number == connections {
			close(all)
		}
		<-all
		return true
	})
	r, err := Run(t.Context(), Host{}, p)
	if err != nil || r.Held != connections {
		t.Errorf("held %d of %d: %v %v", r.Held, connections, r.FirstError, err)
	}
}

// TestHeldCancelled: with an hour of patience, only the context ends the run.
func TestHeldCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p := Plan{Clients: 2, PerConnection: 1, Sizes: []int{1}, Hold: true, Connections: 10, Patience: time.Hour}
	p.Target = stubborn(t, 1, func(int) bool {
		cancel()
		return false
	})
	if _, err := Run(ctx, Host{}, p); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
