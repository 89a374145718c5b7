package web

import (
	"crypto/tls"
	"fmt"
	"net/netip"
	"time"

	"weir/internal/stats"
)

// Plan is what clients do. The phases are those of RFC 9411, section 4.3.4.
type Plan struct {
	// Target is the first of Targets addresses. Connections rotate over them, so that
	// translated ones find a free port.
	Target  netip.AddrPort
	Targets int        // 0: one
	Source  netip.Addr // the clients' address; invalid: the host chooses
	TLS     bool
	Clients int // clients at once; each is a thread
	// PerConnection is how many objects a client fetches over a connection, one after
	// the other, before it closes it.
	PerConnection int
	Sizes         []int // sizes of objects in bytes, all equally likely
	// Rate is the number of connections that all clients together begin in a second.
	// 0 means as fast as earlier ones end. With a rate, times count from when a
	// connection was due, because a late client makes a visitor wait.
	Rate float64
	// Hold keeps connections open instead of closing them, up to Connections in all.
	// At the end it fetches one more object over each.
	Hold        bool
	Connections int

	RampUp, Sustain, RampDown time.Duration
	// Patience is how long a connection or an object may take before it counts as
	// failed. 0 means 10 s.
	Patience time.Duration
}

// Result has the connections and requests that began in the sustained phase, whenever
// they ended.
type Result struct {
	Seconds      float64
	Connections  int // established connections
	Transactions int // objects that arrived whole
	Failed       int // objects that did not arrive whole
	Broken       int // connections that the other side, or something between, ended or refused
	Held         int // connections over which a last object arrived
	Bytes        int
	FirstError   error
	Late         float64 // share of connections that began over 10 ms late

	// In milliseconds, each.
	Connect   stats.Sample // until TCP is connected
	Handshake stats.Sample // until TLS is ready
	FirstByte stats.Sample // from request to first byte of an object
	LastByte  stats.Sample
	// Whole is the time that a visitor waits: from when a connection was due to the
	// last byte of its first object.
	Whole stats.Sample
}

// maxFailed is the share of transactions, and of connections, that may fail in a
// valid run (RFC 9411, section 7.2.3).
const maxFailed = 0.00001

// Invalid returns why the result does not count by RFC 9411, or "" if it does.
func (r *Result) Invalid() string {
	attempts := r.Transactions + r.Failed
	switch {
	case r.Transactions == 0:
		return fmt.Sprintf("no object arrived: %v", r.FirstError)
	case float64(r.Failed) > maxFailed*float64(attempts):
		return fmt.Sprintf("%d of %d transactions failed, more than 0.001 %%: %v", r.Failed, attempts, r.FirstError)
	case float64(r.Broken) > maxFailed*float64(r.Connections+r.Broken):
		return fmt.Sprintf("%d of %d connections were refused or reset, more than 0.001 %%: %v", r.Broken,
			r.Connections+r.Broken, r.FirstError)
	}
	return ""
}

func (r *Result) add(o *Result) {
	r.Connections += o.Connections
	r.Transactions += o.Transactions
	r.Failed += o.Failed
	r.Broken += o.Broken
	r.Held += o.Held
	r.Bytes += o.Bytes
	r.Late += o.Late
	if r.FirstError == nil {
		r.FirstError = o.FirstError
	}
	r.Connect = append(r.Connect, o.Connect...)
	r.Handshake = append(r.Handshake, o.Handshake...)
	r.FirstByte = append(r.FirstByte, o.FirstByte...)
	r.LastByte = append(r.LastByte, o.LastByte...)
	r.Whole = append(r.Whole, o.Whole...)
}

// check returns the first error in a plan.
func (p *Plan) check() error {
	switch {
	case !p.Target.IsValid():
		return fmt.Errorf("plan clients: no server")
	case p.Clients < 1 || p.PerConnection < 1 || len(p.Sizes) == 0:
		return fmt.Errorf("plan clients: %d clients, %d objects by a connection, %d sizes: want 1 of each at least",
			p.Clients, p.PerConnection, len(p.Sizes))
	case p.Sustain <= 0 && !p.Hold:
		return fmt.Errorf("plan clients: the load is not sustained")
	case p.Hold && p.Connections < 1:
		return fmt.Errorf("plan clients: no connections to hold")
	}
	return nil
}

// tlsConfig verifies nothing: the certificate is our own and one minute old.
func (p *Plan) tlsConfig() *tls.Config {
	return &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12, ServerName: p.Target.Addr().String()}
}
