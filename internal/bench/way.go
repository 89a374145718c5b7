package bench

import (
	"net"
	"net/netip"

	"weir/internal/lab"
)

// way is how frames of one case go by one path: where they start, where they
// are seen again, and what has changed by then.
type way struct {
	net  *network
	c    Case
	path *path
}

// begin is the device that frames are sent from.
func (w *way) begin(back bool) place {
	if back {
		return farEnd
	}
	return nearEnd
}

// door is the firewall's device that frames reach first.
func (w *way) door(back bool) place {
	if back {
		return farDoor
	}
	return nearDoor
}

// end is where frames are checked, and counted unless the sink is egress.
func (w *way) end(back bool) place {
	switch {
	case w.path.toDoor:
		return w.door(back)
	case back:
		return nearEnd
	}
	return farEnd
}

// exit is the firewall's device that frames leave by.
func (w *way) exit(back bool) place { return w.door(!back) }

// egress reports whether frames are counted where the firewall sends them: a
// path that redirects in XDP has no such place.
func (w *way) egress() bool { return w.c.Sink == Egress && w.path.hasEgress }

// sources is the network of the hosts at the near end.
func (w *way) sources() netip.Addr {
	if w.path.translates {
		return lanHosts.addr(w.c.ipv6())
	}
	return routedHosts.addr(w.c.ipv6())
}

func (w *way) targets() netip.Addr { return targetNet.addr(w.c.ipv6()) }

// router is the address that the firewall translates sources to.
func (w *way) router() netip.Addr { return w.net.lab.Addr(lab.FW, "wan0", w.c.ipv6()) }

// outside is how the far end knows the sources' network.
func (w *way) outside() netip.Addr {
	if w.path.translates {
		return w.router()
	}
	return w.sources()
}

// spec describes frames as they are sent.
func (w *way) spec(back bool, seg *segment, length int) (*frameSpec, error) {
	source, target, err := w.net.macs(w.begin(back), w.door(back))
	if err != nil {
		return nil, err
	}
	if back {
		return w.newSpec(seg, length, source, target, w.targets(), w.outside()), nil
	}
	return w.newSpec(seg, length, source, target, w.sources(), w.targets()), nil
}

// arrival describes the same frames at the end of their way.
func (w *way) arrival(back bool, seg *segment, length int) (*frameSpec, error) {
	from, to := w.exit(back), w.end(back)
	if w.path.toDoor {
		from, to = w.begin(back), w.door(back)
	}
	source, target, err := w.net.macs(from, to)
	if err != nil {
		return nil, err
	}
	if back {
		return w.newSpec(seg, length, source, target, w.targets(), w.sources()), nil
	}
	return w.newSpec(seg, length, source, target, w.outside(), w.targets()), nil
}

func (w *way) newSpec(seg *segment, length int, source, target net.HardwareAddr, from, to netip.Addr) *frameSpec {
	return &frameSpec{ipv6: w.c.ipv6(), tcp: seg, length: length, source: source, target: target, from: from, to: to}
}

// arrivalTTL is the TTL or hop limit at the end of the way.
func (w *way) arrivalTTL() byte {
	if w.path.routes {
		return hops - 1
	}
	return hops
}

// length is the frames' length in memory.
func (w *way) length() int { return w.c.Frame - fcsLen }

// step is one frame of a connection's beginning.
type step struct {
	back   bool
	seg    *segment
	length int
}

// opening are the frames that a connection begins with: after them it is open
// in both directions and the windows of both sides are known.
func (w *way) opening() []step {
	if !w.c.tcp() {
		return []step{{false, nil, w.length()}, {true, nil, w.length()}}
	}
	short := trueSize(minimum, w.c.ipv6(), true) - fcsLen
	syn := short
	if least := (&frameSpec{ipv6: w.c.ipv6(), tcp: &segment{options: tcpOptions}}).headerLen(); syn < least {
		syn = least
	}
	return []step{
		{false, &segment{flags: flagSYN, sequence: nearSequence, options: tcpOptions}, syn},
		{true, &segment{flags: flagSYN | flagACK, sequence: farSequence, ack: nearSequence + 1, options: tcpOptions}, syn},
		{false, w.data(false), short},
		{true, w.data(true), short},
	}
}

// data is a segment of an open connection; nil for UDP.
func (w *way) data(back bool) *segment {
	switch {
	case !w.c.tcp():
		return nil
	case back:
		return &segment{flags: flagACK, sequence: farSequence + 1, ack: nearSequence + 1}
	}
	return &segment{flags: flagACK, sequence: nearSequence + 1, ack: farSequence + 1}
}
