package model

import (
	"encoding/binary"
	"net/netip"

	"weir/internal/fw/reason"
	"weir/internal/fw/state"
	"weir/pf/ast"
	"weir/pf/resolve"
)

// An ether is a frame as ether rules see it.
type ether struct {
	direction ast.Direction
	iface     *Interface
	frame     []byte
	etherType uint16
	src, dst  netip.Addr // invalid: it has no IP packet
}

func blocks(decides *resolve.ListRule) bool { return decides != nil && decides.Action == ast.Block }

func bridges(decides *resolve.ListRule) bool { return decides != nil && decides.Frame.BridgeTo != "" }

// bridgeNumber is METADATA_BRIDGE: the rest of the number is an interface's index.
const bridgeNumber = 1 << 27

// bridge sends a frame that comes in to another interface, as it is. XDP leaves that to TCX.
func (m *Model) bridge(f *Frame, at *Interface, to string) Outcome {
	o := Outcome{At: at.Index, Length: len(f.Bytes), Frame: f.Bytes, Mark: f.Mark, Done: true}
	i := m.bridgeTo(to)
	switch {
	case i == nil:
		o.Verdict, o.Reason = Drop, reason.Interface
	case f.Hook == XDP:
		o.Verdict, o.Reason, o.Back, o.Number = Up, reason.UpDevice, true, bridgeNumber|i.Index
	default:
		o.Verdict, o.Reason, o.Priority, o.Interface, o.Bridged = Redirect, reason.Rule, f.Priority, i.Index, true
	}
	return o
}

// bridgeTo returns the interface of bridge-to; nil: there is none that takes frames.
func (m *Model) bridgeTo(name string) *Interface {
	for n := range m.box.Interfaces {
		if i := &m.box.Interfaces[n]; i.Name == name && !i.L3 {
			return i
		}
	}
	return nil
}

// comesIn is step 22 for a frame that comes in; why is what the parser says of it. It returns
// the ether rule that decides about the frame; nil: none does. The packet has the rules' tag.
func (m *Model) comesIn(p *packet, why *reason.Reason) (decides *resolve.ListRule) {
	e := ether{direction: ast.In, iface: p.iface, frame: p.frame}
	switch {
	case p.iface.L3 || p.iface.Loopback || m.skips(p.iface):
		return nil
	case why == nil:
		e.src, e.dst = p.tuple.Src, p.tuple.Dst
		e.etherType = etherTypeIPv4
		if p.family == 6 {
			e.etherType = etherTypeIPv6
		}
	case *why != reason.Implicit:
		return nil
	default:
		e.etherType = binary.BigEndian.Uint16(p.frame[p.l3-2:])
		if p.hook == XDP && (e.etherType == etherType8021Q || e.etherType == etherType8021AD) {
			return nil // of no interface that XDP knows
		}
	}
	p.tag, decides = m.meetFrame(&e)
	return decides
}

// leaves is step 22 for a frame that TCX lets out.
func (m *Model) leaves(i *Interface, o *Outcome) {
	if o.Verdict != Out || i.L3 || i.Loopback || m.skips(i) || len(o.Frame) < etherHeader {
		return
	}
	e := ether{direction: ast.Out, iface: i, frame: o.Frame, etherType: binary.BigEndian.Uint16(o.Frame[12:])}
	switch ip := o.Frame[etherHeader:]; {
	case e.etherType == etherTypeIPv4 && len(ip) >= 20:
		e.src, e.dst = netip.AddrFrom4([4]byte(ip[12:])), netip.AddrFrom4([4]byte(ip[16:]))
	case e.etherType == etherTypeIPv6 && len(ip) >= 40:
		e.src, e.dst = netip.AddrFrom16([16]byte(ip[8:])), netip.AddrFrom16([16]byte(ip[24:]))
	}
	_, decides := m.meetFrame(&e)
	passed := *o
	dropped := Outcome{Verdict: Drop, Reason: reason.Block, At: i.Index, Length: len(passed.Frame), Passed: &passed, Records: passed.Records, Done: true}
	switch {
	case blocks(decides):
		*o = dropped
	case bridges(decides):
		if to := m.bridgeTo(decides.Frame.BridgeTo); to != nil {
			o.Verdict, o.Interface, o.Bridged = Redirect, to.Index, true
			o.Mark = m.marks().Set(o.Mark, MarkNone)
			break
		}
		*o = dropped
		o.Reason = reason.Interface
	}
}

// meetFrame evaluates the ether rules in order, and counts the frame. The last match of pass or
// block decides, or the first with quick.
func (m *Model) meetFrame(e *ether) (tag string, decides *resolve.ListRule) {
	rules := m.rules.Ethers()
	var path Path
	matched := 0
	count := func(l *resolve.ListRule) {
		path[0][matched] = m.ruleBase + uint32(m.numbers[&l.Rule]) + 1
		matched++
	}
	end := len(rules)
	for n := 0; n < end; {
		l := rules[n]
		next := n + 1
		if m.matchesFrame(l, e, tag) {
			if l.Tag != "" {
				tag = l.Tag
			}
			if l.Action != ast.Match {
				decides = l
				end = min(end, endOfQuick(rules, n))
			} else if l.Anchor == nil && !l.IsPast && matched < pathMatches {
				count(l)
			}
			if l.Next != 0 {
				next = l.Next
			}
			if l.Quick {
				break
			}
		}
		n = next
	}
	if decides != nil {
		count(decides)
	}
	if matched > 0 {
		c := m.paths[path]
		c[0].Packets++
		c[0].Bytes += uint64(len(e.frame))
		m.paths[path] = c
	}
	return tag, decides
}

// endOfQuick returns where the innermost quick anchor with a rule in it ends.
func endOfQuick(rules []*resolve.ListRule, rule int) int {
	end := len(rules)
	for n, l := range rules[:rule] {
		if a := l.Anchor; a != nil && a.Quick && n < rule && rule < a.End {
			end = a.End
		}
	}
	return end
}

func (m *Model) matchesFrame(l *resolve.ListRule, e *ether, tag string) bool {
	f := &l.Frame
	if l.Direction != ast.AnyDirection && l.Direction != e.direction || !matchesInterface(&l.Interface, e.iface) ||
		f.Type != 0 && f.Type != e.etherType || !f.To.Match([6]byte(e.frame)) || !f.From.Match([6]byte(e.frame[6:])) ||
		l.Tagged != "" && (l.Tagged == tag) == l.NotTagged {
		return false
	}
	if !e.src.IsValid() {
		return true // addresses are not asked for
	}
	a := &ruleInput{direction: e.direction, iface: e.iface, family: familyOf(e.src), tuple: state.Tuple{Src: e.src, Dst: e.dst}}
	return m.matchesEndpoint(&l.From, e.src, e.src, 0, a) && m.matchesEndpoint(&l.To, e.dst, e.dst, 0, a)
}

// reachedByXDP reports whether XDP redirects to an interface. Frames that meet ether rules where
// they leave go through TCX.
func (m *Model) reachedByXDP(i *Interface) bool {
	return (i.XDPTarget || m.box.tagged(i)) && !meetsOut(m.rules.First, 0, len(m.rules.Ethers()), i)
}

// meetsOut reports whether one of a range of ether rules can match a frame that leaves by an
// interface.
func meetsOut(rules []*resolve.ListRule, first, end int, i *Interface) bool {
	for n := first; n < end; n++ {
		l, inside := rules[n], n
		if l.Anchor != nil {
			n = l.Anchor.End - 1
		}
		if l.IsPast || l.Direction == ast.In || !matchesInterface(&l.Interface, i) {
			continue
		}
		if l.Anchor == nil || meetsOut(rules, inside+1, l.Anchor.End, i) {
			return true
		}
	}
	return false
}
