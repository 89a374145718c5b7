package daemon

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/fw/dataplane"
	"weir/internal/fw/pflow"
	"weir/internal/fw/state"
	"weir/pf/resolve"
)

const (
	flowPause   = 200 * time.Millisecond // between two looks into the ring
	flowWait    = time.Second            // a flow waits for others at most so long
	flowRefresh = 30 * time.Second       // a collector that starts anew understands so much later
)

// exporter tells collectors of states that have ended, if rules with pflow made them.
type exporter struct {
	readiness
	box *box

	rules      *compiled            // whose collectors are told
	dp         *dataplane.Dataplane // whose ring is read
	ring       *dataplane.Flows     // nil: there are no collectors
	lost       uint64               // records that the ring had no room for, as of the last look
	collectors []*collector
}

// collector is a collector and what waits for it.
type collector struct {
	resolve.Collector
	socket    *net.UDPConn // nil: it could not be opened
	encoder   pflow.Encoder
	waiting   bool // since the time since
	since     time.Time
	refreshed time.Time
	failing   bool // the last datagram could not be sent
}

func (*exporter) String() string { return "flow records" }

// Run reads the ring as long as the daemon lives. What waits there from before an earlier
// daemon's end is told, too.
func (e *exporter) Run(ctx context.Context) error {
	e.set()
	defer e.close()
	for ctx.Err() == nil {
		if err := e.follow(); err != nil {
			return err
		}
		if e.ring == nil {
			select {
			case <-ctx.Done():
			case <-time.After(flowPause):
			}
			continue
		}
		if err := e.read(flowPause); err != nil {
			return err
		}
		e.send(time.Now())
	}
	return nil
}

// follow takes over the collectors and the ring of the rules in force.
func (e *exporter) follow() error {
	b := e.box
	if !b.mu.TryLock() { // a load is under way
		return nil
	}
	defer b.mu.Unlock()
	if b.rules == nil || b.dp == nil || b.rules == e.rules && b.dp == e.dp {
		return nil
	}
	if e.dp != b.dp {
		if err := e.change(b.dp, len(b.rules.options.Collectors) > 0); err != nil {
			return err
		}
	}
	e.rules = b.rules
	e.tell(b.rules.options.Collectors)
	return nil
}

// change reads another generation's ring from now on. It may be the same one.
func (e *exporter) change(dp *dataplane.Dataplane, wanted bool) error {
	if e.ring != nil {
		if err := e.read(0); err != nil {
			return err
		}
		if err := e.ring.Close(); err != nil {
			return err
		}
	}
	e.ring, e.dp = nil, dp
	if !wanted {
		return nil
	}
	var err error
	e.ring, err = dp.OpenFlows()
	return err
}

// tell opens the sockets of new collectors, and closes those of others.
func (e *exporter) tell(wanted []resolve.Collector) {
	e.collectors = slices.DeleteFunc(e.collectors, func(c *collector) bool {
		gone := !slices.Contains(wanted, c.Collector)
		if gone {
			c.flush(e)
			c.close()
		}
		return gone
	})
	for _, w := range wanted {
		if !slices.ContainsFunc(e.collectors, func(c *collector) bool { return c.Collector == w }) {
			e.collectors = append(e.collectors, &collector{Collector: w, encoder: pflow.NewEncoder(w.Version, clock), refreshed: time.Now()})
		}
	}
}

// read reads what is in the ring.
func (e *exporter) read(patience time.Duration) error {
	foreign, err := e.ring.Read(patience, func(f *dataplane.FlowRecord) {
		for _, flow := range flowsOf(f) {
			for _, c := range e.collectors {
				c.add(e, &flow)
			}
		}
	})
	if err != nil {
		return err
	}
	lost, err := e.ring.Lost()
	if err != nil {
		return err
	}
	if lost < e.lost { // a load has made a new ring
		e.lost = 0
	}
	if lost != e.lost || foreign > 0 {
		e.box.cfg.Log.Warn("flow records are lost", "ring full", lost-e.lost, "of another version", foreign)
	}
	e.lost = lost
	return nil
}

// send sends what has waited long enough.
func (e *exporter) send(now time.Time) {
	for _, c := range e.collectors {
		if now.Sub(c.refreshed) >= flowRefresh {
			c.encoder.Refresh()
			c.refreshed = now
		}
		if c.waiting && now.Sub(c.since) >= flowWait {
			c.flush(e)
		}
	}
}

func (e *exporter) close() {
	for _, c := range e.collectors {
		c.flush(e)
		c.close()
	}
	if e.ring != nil {
		e.ring.Close() //nolint:errcheck // the daemon ends
	}
}

func (c *collector) add(e *exporter, f *pflow.Flow) {
	if !c.waiting {
		c.waiting, c.since = true, time.Now()
	}
	for _, datagram := range c.encoder.Add(f) {
		c.write(e, datagram)
		c.since = time.Now()
	}
}

func (c *collector) flush(e *exporter) {
	c.waiting = false
	if datagram := c.encoder.Flush(); datagram != nil {
		c.write(e, datagram)
	}
}

// write sends a datagram. If nobody is there, the next one has the templates again.
func (c *collector) write(e *exporter, datagram []byte) {
	var err error
	if c.socket == nil {
		var from *net.UDPAddr
		if c.Source.IsValid() {
			from = net.UDPAddrFromAddrPort(netip.AddrPortFrom(c.Source, 0))
		}
		c.socket, err = net.DialUDP("udp", from, net.UDPAddrFromAddrPort(c.To))
	}
	if err == nil {
		_, err = c.socket.Write(datagram)
	}
	if err != nil {
		c.encoder.Refresh()
	}
	if err != nil && !c.failing {
		e.box.cfg.Log.Warn("send flow records", "collector", c.To, "error", err)
	}
	c.failing = err != nil
}

func (c *collector) close() {
	if c.socket != nil {
		c.socket.Close() //nolint:errcheck // what was to be sent has been
	}
}

// clock returns the time, and the kernel's monotonic clock.
func clock() (now time.Time, up time.Duration) {
	var t unix.Timespec
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) //nolint:errcheck // it does not fail
	return time.Now(), time.Duration(t.Nano())
}

// flowsOf returns what is told of a state: a flow for each direction that had packets.
func flowsOf(f *dataplane.FlowRecord) []pflow.Flow {
	const tick = time.Second / state.TicksPerSecond
	now, up := clock()
	ago := state.Tick(up / tick).Since(f.Written) // both wrap
	written := now.Add(-time.Duration(max(0, ago)) * tick)
	var all []pflow.Flow
	for d := range 2 {
		if f.Packets[d] == 0 {
			continue
		}
		in, left := f.Tuple[d], f.Tuple[1-d].Reverse()
		flow := pflow.Flow{
			Src: in.Src, Dst: in.Dst, SrcPort: in.SPort, DstPort: in.DPort, Proto: in.Proto,
			In: uint32(f.Ifindex[1-d]), Out: uint32(f.Ifindex[d]),
			Packets: f.Packets[d], Bytes: f.Bytes[d], First: written.Add(-f.Age), Last: written.Add(-f.Quiet[d]),
		}
		if left != in {
			flow.NewSrc, flow.NewDst, flow.NewSrcPort, flow.NewDstPort = left.Src, left.Dst, left.SPort, left.DPort
		}
		if isICMP(in.Proto) {
			flow.ICMPType = icmpType(in, d)
			flow.SrcPort, flow.DstPort, flow.NewSrcPort, flow.NewDstPort = 0, 0, 0, 0
		}
		all = append(all, flow)
	}
	return all
}

// isICMP reports whether a protocol's tuples have an id and a type for ports.
func isICMP(proto uint8) bool { return proto == unix.IPPROTO_ICMP || proto == unix.IPPROTO_ICMPV6 }

// icmpType returns the type of a direction's messages: that of queries is a port of both.
func icmpType(t state.Tuple, d int) uint8 {
	if d == 0 {
		return uint8(t.DPort)
	}
	switch query := uint8(t.SPort); {
	case t.Proto == unix.IPPROTO_ICMP && query == 8:
		return 0
	default:
		return query + 1
	}
}
