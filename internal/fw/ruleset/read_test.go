package ruleset_test

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
	"slices"

	"weir/internal/fw/reason"
	"weir/internal/fw/ruleset"
	"weir/internal/fw/ruleset/rulestest"
	"weir/pf/ast"
	"weir/pf/resolve"
)

// A reader reads a program as bpf/rules/match.h does, but without its shortcuts. It takes
// the vectors of all fields and goes through the rules that are left.
type reader struct {
	*ruleset.Program
	turns map[uint32]uint64
	kept  map[keeper]netip.Addr
	port  uint16 // the destination port
}

// Fields and trees, as in bpf/rules/ruleset.h.
const (
	dst = iota
	dport
	src
	proto
	iface
	sport
	dstTables
	srcTables
	fields
	dst6 = iota - 3
	src6
)

func (r *reader) evaluate(p rulestest.Packet) rulestest.Result {
	a := rulestest.Result{Verdict: reason.NoRule, Rule: rulestest.None, Stop: rulestest.None, Tag: p.Tag, Mark: p.Mark}
	var failed [2]bool
	r.port = p.DPort
	next := 0
	for n := range r.Rules {
		rule := &r.Rules[n]
		if n < next || !r.has(r.classes(p), n) {
			continue
		}
		if rule.Tagged != 0 && (a.Tag == r.Tags[rule.Tagged]) == (rule.Flags&ruleset.NotTagged != 0) {
			continue
		}
		if rule.MarkedMask != 0 && (a.Mark&rule.MarkedMask == rule.Marked) == (rule.Flags&ruleset.NotMarked != 0) {
			continue
		}
		if rule.Tag != 0 {
			a.Tag = r.Tags[rule.Tag]
		}
		if rule.Flags&ruleset.Match != 0 {
			if len(a.Matched) < rulestest.MaxMatches-1 && rule.Flags&ruleset.Silent == 0 {
				a.Matched = append(a.Matched, n)
			}
			if rule.Flags&ruleset.Leads != 0 {
				next = int(r.Next[n])
			}
			r.translate(&a, rule, &p, &failed)
			setMark(&a, rule, p.Keep)
			if n < r.Scrubs {
				scrub(&a.Listed, rule)
			} else {
				scrub(&a.Scrub, rule)
			}
		} else {
			a.Rule = n
		}
		if rule.Flags&ruleset.Quick != 0 {
			a.Stop = n
			break
		}
	}
	r.decide(&a, &p, failed)
	return a
}

func setMark(a *rulestest.Result, rule *ruleset.Rule, keep uint32) {
	mask := rule.MarkMask &^ keep
	a.Mark = a.Mark&^mask | rule.Mark&mask
	a.SetMark |= mask
}

func scrub(s *resolve.Scrub, rule *ruleset.Rule) {
	s.NoDF = s.NoDF || rule.Scrub&ruleset.NoDF != 0
	s.RandomID = s.RandomID || rule.Scrub&ruleset.RandomID != 0
	if rule.MinTTL != 0 {
		s.MinTTL = rule.MinTTL
	}
	if rule.MaxMSS != 0 {
		s.MaxMSS = rule.MaxMSS
	}
	if rule.Scrub&ruleset.TOS != 0 {
		s.SetTOS = resolve.SetTOS{Given: true, N: rule.SetTOS}
	}
}

func (r *reader) decide(a *rulestest.Result, p *rulestest.Packet, failed [2]bool) {
	if a.Rule != rulestest.None {
		rule := &r.Rules[a.Rule]
		a.Matched = append(a.Matched, a.Rule)
		if rule.Flags&ruleset.Block != 0 {
			a.Verdict, a.Nat, a.Rdr, a.Scrub, a.Listed = reason.Block, nil, nil, resolve.Scrub{}, resolve.Scrub{}
			return
		}
		setMark(a, rule, p.Keep)
		scrub(&a.Scrub, rule)
		a.Verdict = reason.Rule
		a.KeepState = rule.Flags&ruleset.KeepState != 0
		a.AllowOptions = rule.Flags&ruleset.AllowOptions != 0
		r.translate(a, rule, p, &failed)
	}
	if failed[0] || failed[1] {
		a.Verdict = reason.NATAddress
	}
}

// translate notes the translations of a rule, and whether the last of each kind had no
// address.
func (r *reader) translate(a *rulestest.Result, rule *ruleset.Rule, p *rulestest.Packet, failed *[2]bool) {
	source := p.Src
	if rule.NatPool != 0 {
		a.Nat = r.take(rule.NatPool-1, p.Src, p.Src)
		if failed[0] = a.Nat == nil; a.Nat != nil {
			p.Src = a.Nat.Addr
			a.Nat.Low, a.Nat.High, a.Nat.StaticPort = rule.NatLow, rule.NatHigh, rule.Flags&ruleset.StaticPort != 0
			a.Nat.Endpoint = rule.More&ruleset.Endpoint != 0
		}
	}
	if rule.RdrPool == 0 {
		return
	}
	a.Rdr = r.take(rule.RdrPool-1, source, p.Dst)
	if failed[1] = a.Rdr == nil; failed[1] {
		return
	}
	p.Dst = a.Rdr.Addr
	if rule.RdrLow != 0 && hasPorts(p) {
		span := uint32(rule.RdrHigh-rule.RdrLow) + 1
		p.DPort = rule.RdrLow + uint16(uint32(p.DPort-rule.RdrBase)%span)
		r.port = p.DPort
	}
	a.Rdr.Low = r.port // a later rdr-to without a port keeps it, as in pf
}

func hasPorts(p *rulestest.Packet) bool { return p.Proto == 6 || p.Proto == 17 }

// A keeper is a source that keeps the address of a pool.
type keeper struct {
	pool   uint32
	source netip.Addr
}

func (r *reader) take(number uint32, source, replaced netip.Addr) *rulestest.Target {
	pool := &r.Pools[number]
	run, key := pool.Rows6, 2*number+1
	if replaced.Is4() {
		run, key = pool.Rows4, 2*number
	}
	rows := r.Rows[run.First:][:run.Count]
	switch {
	case len(rows) == 0:
		return nil
	case pool.Kind == ruleset.Bitmask:
		return &rulestest.Target{Addr: masked(rows[0], replaced)}
	}
	addr, ok := r.kept[keeper{number, source}]
	if !ok {
		addr = r.next(pool, rows, key, source)
	}
	if pool.Sticky {
		r.kept[keeper{number, source}] = addr
	}
	return &rulestest.Target{Addr: addr}
}

// next returns the address of rows that is next for a source.
func (r *reader) next(pool *ruleset.Pool, rows []ruleset.Row, key uint32, source netip.Addr) netip.Addr {
	total := rows[len(rows)-1].Turn + rows[len(rows)-1].Count
	if total == 1 {
		return rows[0].First
	}
	turn := r.turns[key]
	switch a := source.As16(); pool.Kind {
	case ruleset.Hash:
		turn = mixed(mixed(pool.Key[0]^binary.BigEndian.Uint64(a[:])) ^ pool.Key[1] ^ binary.BigEndian.Uint64(a[8:]))
	case ruleset.Random:
		turn = mixed(turn * 0x9e3779b97f4a7c15)
	}
	if pool.Kind != ruleset.Hash {
		r.turns[key]++
	}
	turn %= total
	i := slices.IndexFunc(rows, func(row ruleset.Row) bool { return turn-row.Turn < row.Count })
	return add(rows[i].First, turn-rows[i].Turn)
}

// mixed is pool_mix of bpf/rules/pool.h.
func mixed(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// masked returns a network's address with the bits of another under its mask.
func masked(row ruleset.Row, replaced netip.Addr) netip.Addr {
	mask := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, row.Turn), row.Count)
	first, old := row.First.AsSlice(), replaced.AsSlice()
	mask = mask[16-len(first):]
	for i := range first {
		first[i] |= old[i] & mask[i]
	}
	a, _ := netip.AddrFromSlice(first)
	return a
}

func add(a netip.Addr, n uint64) netip.Addr {
	if a.Is4() {
		b := a.As4()
		binary.BigEndian.PutUint32(b[:], binary.BigEndian.Uint32(b[:])+uint32(n))
		return netip.AddrFrom4(b)
	}
	b := a.As16()
	lo, carry := bits.Add64(binary.BigEndian.Uint64(b[8:]), n, 0)
	binary.BigEndian.PutUint64(b[8:], lo)
	binary.BigEndian.PutUint64(b[:], binary.BigEndian.Uint64(b[:])+carry)
	return netip.AddrFrom16(b)
}

// has reports whether a rule's bit is set in all vectors.
func (r *reader) has(classes [fields]uint32, rule int) bool {
	chunk, word, bit := rule/512, rule%512/64, uint64(1)<<(rule%64)
	block, within := chunk>>r.Set.BlockShift, chunk&(1<<r.Set.BlockShift-1)
	for _, index := range classes {
		c := &r.Classes[index]
		vector := r.Vectors[int(c.Common)+chunk][word]
		if c.Differs>>block&1 != 0 {
			vector ^= r.Vectors[int(c.Own)+bits.OnesCount64(c.Differs&(1<<block-1))<<r.Set.BlockShift+within][word]
		}
		has := vector&bit != 0
		if has && c.Filled>>block&1 == 0 || !has && c.Full>>block&1 != 0 {
			panic("filled and full disagree with the vector")
		}
		if !has {
			return false
		}
	}
	return true
}

func (r *reader) classes(p rulestest.Packet) [fields]uint32 {
	direction, is6, detail := uint64(0), uint64(0), uint64(0)
	if p.Direction == ast.Out {
		direction = 1
	}
	if p.Src.Is6() {
		is6 = 1
	}
	switch {
	case p.Proto == 6:
		detail = flagsKey(p.TCPFlags)
	case p.Proto == 1 && is6 == 0, p.Proto == 58 && is6 == 1:
		detail = uint64(p.ICMPType)<<8 | uint64(p.ICMPCode)
	}
	c := [fields]uint32{
		iface: r.find(iface, direction<<31|uint64(p.Ifindex)),
		proto: r.find(proto, is6<<24|uint64(p.Proto)<<16|detail),
		src:   r.findAddr(src, src6, p.Src),
		dst:   r.findAddr(dst, dst6, p.Dst),

		dstTables: r.Set.DstTablesAt,
		srcTables: r.Set.SrcTablesAt,
		sport:     r.find(sport, 65536),
		dport:     r.find(dport, 65536),
	}
	if r.Set.AsksTables&1 != 0 {
		c[dstTables] += findSet(r.Index, p.Dst)
	}
	if r.Set.AsksTables&2 != 0 {
		c[srcTables] += findSet(r.Index, p.Src)
	}
	if hasPorts(&p) {
		c[sport], c[dport] = r.find(sport, uint64(p.SPort)), r.find(dport, uint64(p.DPort))
	}
	return c
}

// flagsKey puts SYN ACK RST FIN first.
func flagsKey(flags uint8) uint64 {
	key := uint64(0)
	for i, flag := range []uint8{0x20, 0x40, 0x80, 0x08, 0x01, 0x04, 0x10, 0x02} {
		if flags&flag != 0 {
			key |= 1 << i
		}
	}
	return key
}

func (r *reader) findAddr(tree4, tree6 uint32, a netip.Addr) uint32 {
	if a.Is4() {
		b := a.As4()
		return r.find(tree4, uint64(binary.BigEndian.Uint32(b[:])))
	}
	b := a.As16()
	value := r.find(tree6, binary.BigEndian.Uint64(b[:8]))
	if value>>31 != 0 {
		value = r.find(value&^(1<<31), binary.BigEndian.Uint64(b[8:]))
	}
	return value
}

// find searches all keys of a tree for the largest that is not above x.
func (r *reader) find(tree uint32, x uint64) uint32 {
	large := tree == dst6 || tree == src6 || tree > src6
	return findLine(r.Lines, r.Trees[tree], large, x)
}

// findSet searches all keys of the trees of an index.
func findSet(x *ruleset.TableIndex, a netip.Addr) uint32 {
	if a.Is4() {
		b := a.As4()
		return findLine(x.Lines, x.Tree4, false, uint64(binary.BigEndian.Uint32(b[:])))
	}
	b := a.As16()
	value := findLine(x.Lines, x.Tree6, true, binary.BigEndian.Uint64(b[:8]))
	if value>>31 != 0 {
		value &^= 1 << 31
		low := x.Lines[value/8][value%8]
		value = findLine(x.Lines, ruleset.Tree{First: uint32(low), Nodes: uint32(low >> 32)}, true, binary.BigEndian.Uint64(b[8:]))
	}
	return value
}

func findLine(lines []ruleset.Line, t ruleset.Tree, large bool, x uint64) uint32 {
	if t.Nodes == 0 {
		return t.First
	}
	half := func(line, i uint32) uint32 { return uint32(lines[t.First+line][i/2] >> (i % 2 * 32)) }
	var most uint64
	var value uint32
	for node := range t.Nodes {
		for i := range uint32(8) {
			key, v := uint64(half(node, i)), half(node, 8+i)
			if large {
				key, v = lines[t.First+node][i], half(t.Nodes+node/2, node%2*8+i)
			}
			if key <= x && key >= most {
				most, value = key, v
			}
		}
	}
	return value
}
