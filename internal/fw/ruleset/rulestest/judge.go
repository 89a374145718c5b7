package rulestest

import (
	"math/big"
	"net/netip"
	"slices"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"weir/internal/fw/ruleset"
	"weir/pf/ast"
	"weir/pf/resolve"
)

// MaxMatches is MAX_MATCHES of bpf/config.h.
const MaxMatches = 8

// A Packet is what the rules see of a packet at a crossing.
type Packet struct {
	Direction          ast.Direction // In or Out
	Ifindex            uint32
	Src, Dst           netip.Addr
	Proto              uint8
	SPort, DPort       uint16 // valid for TCP and UDP
	TCPFlags           uint8
	ICMPType, ICMPCode uint8
	Tag                string
	Mark, Keep         uint32 // without weir's own bits; bits that the other crossing has set
}

// A Verdict is the result of a crossing.
type Verdict int

// Verdicts.
const (
	NoRule Verdict = iota
	Passed
	Blocked
	NoAddress
)

// An Answer is the result of the rules. Rules are numbers; None means no rule.
type Answer struct {
	Verdict      Verdict
	Rule         int   // the deciding rule
	Matched      []int // rules that count the packet
	Stop         int   // the quick rule that ended the evaluation
	Tag          string
	Mark         uint32 // mark after the crossing
	SetMark      uint32 // bits of it that the rules set
	KeepState    bool
	AllowOptions bool
	Nat          *Target
	Rdr          *Target
}

// None means no rule.
const None = -1

// A Target is what a translation changes an address and a port to. For nat-to the ports
// are the range to choose from. For rdr-to they are the new port, or 0 if it does not
// change.
type Target struct {
	Addr       netip.Addr
	Low, High  uint16
	StaticPort bool
}

// A Judge evaluates rules one after the other.
type Judge struct {
	Rules    *resolve.Ruleset
	Snapshot ruleset.Snapshot
	turns    map[turnKey]uint64
	port     uint16 // set by an rdr-to of this crossing; 0: none
}

// A turnKey is a rule's pool of one family and direction.
type turnKey struct {
	rule *resolve.Rule
	is4  bool
	nat  bool
}

// NewJudge returns a Judge whose pools have handed out no address yet.
func NewJudge(rs *resolve.Ruleset, s ruleset.Snapshot) *Judge {
	return &Judge{Rules: rs, Snapshot: s, turns: map[turnKey]uint64{}}
}

// Judge evaluates the rules for a packet (docs/packet-path.md, 5).
func (j *Judge) Judge(p Packet) Answer {
	a := Answer{Rule: None, Stop: None, Tag: p.Tag, Mark: p.Mark}
	failed := false
	j.port = 0
	for i, r := range j.Rules.Rules {
		if !j.matches(r, &p, &a) {
			continue
		}
		if r.Tag != "" {
			a.Tag = r.Tag
		}
		if r.Action == ast.Match {
			if len(a.Matched) < MaxMatches-1 {
				a.Matched = append(a.Matched, i)
			}
			j.translate(&a, r, &p, &failed)
			a.setMark(r, &p)
		} else {
			a.Rule = i
		}
		if r.Quick {
			a.Stop = i
			break
		}
	}
	j.decide(&a, &p, failed)
	return a
}

func (j *Judge) decide(a *Answer, p *Packet, failed bool) {
	if a.Rule != None {
		r := j.Rules.Rules[a.Rule]
		a.Matched = append(a.Matched, a.Rule)
		if r.Action == ast.Block {
			a.Verdict, a.Nat, a.Rdr = Blocked, nil, nil
			return
		}
		a.Verdict = Passed
		j.translate(a, r, p, &failed)
		a.setMark(r, p)
		a.KeepState, a.AllowOptions = r.State == resolve.KeepState, r.AllowOpts
	}
	if failed {
		a.Verdict = NoAddress
	}
}

func (a *Answer) setMark(r *resolve.Rule, p *Packet) {
	mask := r.SetMark.Mask &^ p.Keep
	a.Mark = a.Mark&^mask | r.SetMark.N&mask
	a.SetMark |= mask
}

// translate applies a rule's translation to the answer and to the packet.
func (j *Judge) translate(a *Answer, r *resolve.Rule, p *Packet, failed *bool) {
	switch {
	case p.Direction == ast.Out && r.Nat != nil:
		a.Nat = j.take(r, r.Nat, p.Src.Is4())
		*failed = a.Nat == nil
		if a.Nat != nil {
			p.Src = a.Nat.Addr
			a.Nat.Low, a.Nat.High = r.Nat.PortLow, max(r.Nat.PortLow, r.Nat.PortHigh)
			a.Nat.StaticPort = r.Nat.StaticPort
		}
	case p.Direction == ast.In && r.Rdr != nil:
		a.Rdr = j.take(r, r.Rdr, p.Dst.Is4())
		*failed = a.Rdr == nil
		if a.Rdr != nil {
			p.Dst = a.Rdr.Addr
			if r.Rdr.PortLow != 0 && p.hasPorts() {
				p.DPort = rdrPort(r, p.DPort)
				j.port = p.DPort
			}
			a.Rdr.Low = j.port // a later rdr-to without a port keeps it, as in pf
		}
	}
}

func rdrPort(r *resolve.Rule, port uint16) uint16 {
	span := int(max(r.Rdr.PortLow, r.Rdr.PortHigh)-r.Rdr.PortLow) + 1
	return r.Rdr.PortLow + uint16(int(port-r.To.Port.Low)%span)
}

// take returns the next address of a translation's pool, or nil if it has none.
func (j *Judge) take(r *resolve.Rule, t *resolve.Translation, is4 bool) *Target {
	key := turnKey{r, is4, t == r.Nat}
	var pool []netip.Prefix
	total := new(big.Int)
	for _, a := range t.Addrs {
		for _, p := range j.targets(a) {
			if p.Addr().Is4() == is4 {
				pool = append(pool, p)
				total.Add(total, sizeOf(p))
			}
		}
	}
	if len(pool) == 0 {
		return nil
	}
	turn := new(big.Int).SetUint64(j.turns[key])
	j.turns[key]++
	turn.Mod(turn, total)
	for _, p := range pool {
		if turn.Cmp(sizeOf(p)) < 0 {
			return &Target{Addr: nth(p, turn)}
		}
		turn.Sub(turn, sizeOf(p))
	}
	return nil
}

func sizeOf(p netip.Prefix) *big.Int {
	return new(big.Int).Lsh(big.NewInt(1), uint(p.Addr().BitLen()-p.Bits()))
}

func nth(p netip.Prefix, n *big.Int) netip.Addr {
	sum := new(big.Int).SetBytes(p.Masked().Addr().AsSlice())
	bytes := sum.Add(sum, n).FillBytes(make([]byte, p.Addr().BitLen()/8))
	addr, _ := netip.AddrFromSlice(bytes)
	return addr
}

func (j *Judge) targets(a resolve.Address) []netip.Prefix {
	if a.Kind != resolve.InterfaceAddress {
		return []netip.Prefix{a.Prefix}
	}
	return j.dynamic(a, true)
}

func (p *Packet) hasPorts() bool { return p.Proto == 6 || p.Proto == 17 }

func (j *Judge) matches(r *resolve.Rule, p *Packet, a *Answer) bool {
	is4 := p.Src.Is4()
	return (r.Direction == ast.AnyDirection || r.Direction == p.Direction) &&
		!r.Fragment && (r.Interface.Any || j.isOn(r.Interface.Name, p.Ifindex) != r.Interface.Not) &&
		(r.Family == ast.AnyFamily || (r.Family == ast.Inet) == is4) &&
		j.translates(r.Nat, is4) && j.translates(r.Rdr, is4) &&
		(r.Proto == 0 || r.Proto == p.Proto) &&
		j.holds(r.From.Addr, p.Src) && j.holds(r.To.Addr, p.Dst) &&
		matchesPort(r.From.Port, p.SPort, p) && matchesPort(r.To.Port, p.DPort, p) &&
		(p.Proto != 6 || p.TCPFlags&r.Flags.Mask == r.Flags.Set) &&
		matchesICMP(r.ICMP, p) &&
		(r.Tagged == "" || (r.Tagged == a.Tag) != r.NotTagged) && r.Marked.Match(a.Mark)
}

func (j *Judge) isOn(name string, ifindex uint32) bool {
	return slices.ContainsFunc(j.Snapshot.Interfaces, func(i ruleset.Interface) bool {
		return i.Index == ifindex && (i.Name == name || slices.Contains(i.Groups, name))
	})
}

func (j *Judge) translates(t *resolve.Translation, is4 bool) bool {
	return t == nil || slices.ContainsFunc(t.Addrs, func(a resolve.Address) bool {
		return a.Kind == resolve.InterfaceAddress || a.Prefix.Addr().Is4() == is4
	})
}

func matchesPort(r resolve.PortRange, port uint16, p *Packet) bool {
	return r.Op == ast.AnyPort || p.hasPorts() && r.Match(port)
}

func matchesICMP(t resolve.ICMPType, p *Packet) bool {
	isICMP := p.Proto == 1 && p.Src.Is4() || p.Proto == 58 && p.Src.Is6()
	return !t.Asked || isICMP && p.ICMPType == t.Type && (!t.HasCode || p.ICMPCode == t.Code)
}

func (j *Judge) holds(a resolve.Address, addr netip.Addr) bool {
	switch a.Kind {
	case resolve.AnyAddress:
		return true
	case resolve.TableAddress:
		return j.inTable(a.Table, addr) != a.Not
	case resolve.InterfaceAddress:
		in := slices.ContainsFunc(j.dynamic(a, false), func(p netip.Prefix) bool { return p.Contains(addr) })
		return in != a.Not
	case resolve.RangeAddress:
		first := a.Prefix.Addr()
		return (addr.Is4() == first.Is4() && first.Compare(addr) <= 0 && addr.Compare(a.Last) <= 0) != a.Not
	}
	return a.Prefix.Contains(addr) != a.Not
}

func (j *Judge) inTable(name string, addr netip.Addr) bool {
	longest, in := -1, false
	for _, t := range j.Rules.Tables {
		if t.Name != name {
			continue
		}
		for _, e := range t.Entries {
			if e.Prefix.Contains(addr) && e.Prefix.Bits() > longest {
				longest, in = e.Prefix.Bits(), !e.Not
			}
		}
	}
	return in
}

// dynamic returns what (if) means. With translating it leaves out addresses that no
// translation uses.
func (j *Judge) dynamic(a resolve.Address, translating bool) []netip.Prefix {
	var found []netip.Prefix
	for _, i := range j.Snapshot.Interfaces {
		if i.Name != a.Interface && !slices.Contains(i.Groups, a.Interface) {
			continue
		}
		seen4, seen6 := false, false
		for _, has := range i.Addresses {
			addr := has.Prefix.Addr()
			seen := &seen6
			if addr.Is4() {
				seen = &seen4
			}
			switch {
			case translating && (has.Deprecated || addr.IsLinkLocalUnicast()):
			case a.Modifier == resolve.PeerModifier:
				if seen = &seen6; has.Peer.Is4() {
					seen = &seen4
				}
				if has.Peer.IsValid() && !(a.NoAlias && *seen) {
					*seen = true
					found = append(found, netip.PrefixFrom(has.Peer, has.Peer.BitLen()))
				}
			case a.Modifier == resolve.BroadcastModifier && (addr.Is6() || has.Prefix.Bits() > 30 || i.Name == "lo"):
			case a.Modifier == resolve.BroadcastModifier && !(a.NoAlias && *seen):
				*seen = true
				size := new(big.Int).Sub(sizeOf(has.Prefix), big.NewInt(1))
				last := nth(has.Prefix, size)
				found = append(found, netip.PrefixFrom(last, 32))
			case a.Modifier == resolve.NetworkModifier && addr.Is6() && addr.IsLinkLocalUnicast():
			case a.NoAlias && *seen:
			case a.Modifier == resolve.NetworkModifier:
				*seen = true
				found = append(found, has.Prefix.Masked())
			case a.Bits > 0:
				*seen = true
				found = append(found, netip.PrefixFrom(addr, min(a.Bits, addr.BitLen())).Masked())
			default:
				*seen = true
				found = append(found, netip.PrefixFrom(addr, addr.BitLen()))
			}
		}
	}
	return found
}

// Diff returns how two answers differ, or "" if they are equal.
func Diff(want, got Answer) string {
	return cmp.Diff(want, got, cmpopts.EquateComparable(netip.Addr{}), cmpopts.EquateEmpty())
}
