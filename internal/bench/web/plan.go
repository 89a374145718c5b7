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
	// Target is the first of some Targets: addresses one after the other, each
	// connection's another, so that translated ones find a port.
	Target  netip.AddrPort
	Targets int        // 0: one
	Source  netip.Addr // of the clients; invalid: as the host chooses
	TLS     bool
	Clients int // at once; each is a thread
	// PerConnection is how many objects are fetched by a connection, one after
	// the other, before the client closes it.
	PerConnection int
	Sizes         []int // of objects, in bytes; each is as likely
	// Rate is how many connections are begun in a second, all clients together;
	// 0: as fast as earlier ones end. With a rate, times count from when a
	// connection was due: a client that is late has made somebody wait.
	Rate float64
	// Hold keeps connections open instead of closing them, up to Connections in
	// all, and fetches one more object by each of them at the end.
	Hold        bool
	Connections int

	RampUp, Sustain, RampDown time.Duration
	// Patience is how long a connection or an object may take before it counts as
	// failed; 0: 10 s.
	Patience time.Duration
}

// Result is what became of the connections and requests that began while the
// load was sustained, whenever they ended.
type Result struct {
	Seconds      float64
	Connections  int // that were made
	Transactions int // objects that arrived whole
	Failed       int // objects that did not
	Broken       int // connections that the other side, or somebody between, ended or refused
	Held         int // connections by which a last object arrived
	Bytes        int
	FirstError   error
	Late         float64 // the share of connections that were begun over 10 ms late

	// In milliseconds, each.
	Connect   stats.Sample // until TCP is connected
	Handshake stats.Sample // and TLS agreed upon
	FirstByte stats.Sample // of an object, since it was asked for
	LastByte  stats.Sample
	// Whole is from the moment at which a connection was due to the last byte of
	// its first object, as somebody sees it who waits.
	Whole stats.Sample
}

// maxFailed is the share of transactions, and of connections, that may fail in a
// valid run (RFC 9411, section 7.2.3).
const maxFailed = 0.00001

// Invalid says why the result does not count by RFC 9411; "" if it does.
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

// check tells the first thing that is wrong with a plan.
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

// tlsConfig checks nothing: the certificate is one minute old and our own.
func (p *Plan) tlsConfig() *tls.Config {
	return &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12, ServerName: p.Target.Addr().String()}
}
