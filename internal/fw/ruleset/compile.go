package ruleset

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"

	"weir/internal/fw/limits"
	"weir/pf/ast"
	"weir/pf/fingerprint"
	"weir/pf/resolve"
)

// MaxRules is the most rules that a ruleset may have after expansion.
const MaxRules = limits.MaxRules

const maxTags = 1<<16 - 1

// Compile compiles the rules for the present host. A condition on an interface that does
// not exist matches no packet. If a rule causes the error, it is an *Error.
func Compile(rs *resolve.Ruleset, s Snapshot) (*Program, error) { return compile(rs, s, nil) }

// compile gives tags and queues the same numbers as in other. If other is nil, there is
// no such program.
func compile(rs *resolve.Ruleset, s Snapshot, other *Program) (*Program, error) {
	rules := rs.Sequence()
	c := &compiler{
		rules: rules, filter: rs.Rules, lists: rs.First, keep: rs.Options.Timeouts.SrcTrack, snapshot: s, systems: rs.Fingerprints,
		fragments: fragmentsOf(&rs.Options) != FragmentsFollow, translates: map[*resolve.Rule]bool{}, ethers: map[*resolve.Rule]bool{},
		tables: map[string]addresses{},
		tags:   map[string]uint16{},
		queues: map[string]uint16{},
		program: &Program{
			Rules: make([]Rule, min(len(rules), MaxRules)), First: len(rs.First),
			Limiters: rs.Limiters, Tags: map[uint16]string{}, Queues: map[uint16]string{}, QueuePairs: map[uint16]QueuePair{},
		},
	}
	for _, l := range rs.First {
		c.ethers[&l.Rule] = l.IsEther
		c.translates[&l.Rule] = !l.IsScrub && !l.IsEther
	}
	c.program.ImplicitPass = rs.Options.ImplicitPass
	c.program.Ethers = len(rs.Ethers())
	for i := range c.program.Rules {
		c.program.Order = append(c.program.Order, uint32(i))
	}
	if other != nil {
		maps.Copy(c.program.Tags, other.Tags)
		maps.Copy(c.program.Queues, other.Queues)
		maps.Copy(c.program.QueuePairs, other.QueuePairs)
		for number, name := range other.Tags {
			c.tags[name] = number
		}
		for number, name := range other.Queues {
			c.queues[name] = number
		}
	}
	c.sortTables(rs.Tables)
	if err := c.program.tables.tellTablesApart(); err != nil {
		return nil, err
	}
	c.program.tables.hash = hashOf(rs.Tables)
	c.shapers(rs.Queues)
	if err := c.compile(); err != nil {
		return nil, c.locate(err)
	}
	return c.program, nil
}

type compiler struct {
	rules     []*resolve.Rule     // those of translation lists, and then filter
	filter    []*resolve.Rule     // Nr and Anchor.End count these
	lists     []*resolve.ListRule // the first of rules
	keep      uint32              // set timeout src.track
	snapshot  Snapshot
	tables    map[string]addresses // automatic tables
	tags      map[string]uint16
	queues    map[string]uint16
	systems   fingerprint.List
	fragments bool // they may meet the rules each for itself
	// translates has the rules and anchors of FreeBSD's translation lists: no fragment meets
	// them, as it is not translated.
	translates map[*resolve.Rule]bool
	ethers     map[*resolve.Rule]bool
	program    *Program
}

// locate adds the rule's place to an Error.
func (c *compiler) locate(err error) error {
	if e, ok := errors.AsType[*Error](err); ok {
		e.Pos, e.Text = c.rules[e.Rule].Pos, c.rules[e.Rule].Text
	}
	return err
}

func (c *compiler) compile() error {
	if len(c.rules) > MaxRules {
		return &Error{Rule: MaxRules, What: fmt.Sprintf("there are %d rules, more than %d", len(c.rules), MaxRules)}
	}
	names := c.limitNames()
	for i, r := range c.rules {
		if err := c.check(r); err != nil {
			return &Error{Rule: i, What: err.Error()}
		}
		c.program.Rules[i] = c.action(r)
		if err := c.route(r, &c.program.Rules[i]); err != nil {
			return &Error{Rule: i, What: err.Error()}
		}
		if err := c.translations(r, &c.program.Rules[i]); err != nil {
			return &Error{Rule: i, What: err.Error()}
		}
		if isLimited(r) {
			if c.program.Rules[i].Limit = c.limit(r, names[i]); c.program.Rules[i].Limit == 0 {
				return &Error{Rule: i, What: fmt.Sprintf("there are more than %d rules that limit states or packets", MaxLimits)}
			}
		}
	}
	c.leads()
	if err := c.enters(); err != nil {
		return err
	}
	if len(c.tags) > maxTags {
		return &Error{Rule: len(c.rules) - 1, What: fmt.Sprintf("there are more than %d tags", maxTags)}
	}
	c.program.Set.BlockShift = uint8(blockShift(len(c.rules)))
	if err := c.tooManyQueues(); err != nil {
		return err
	}
	c.program.Trees = make([]Tree, treeFirstLow)
	if err := c.fields(); err != nil {
		return err
	}
	c.kinds()
	if err := c.frames(); err != nil {
		return err
	}
	return c.tableFields()
}

// check refuses what no rule of a resolved file can contain.
func (c *compiler) check(r *resolve.Rule) error {
	for _, e := range []*resolve.Endpoint{&r.From, &r.To} {
		switch e.Addr.Kind {
		case resolve.RouteAddress:
			return errors.New("addresses selected by the label of their route are not supported")
		case resolve.PrefixAddress, resolve.RangeAddress:
			if !e.Addr.Prefix.IsValid() {
				return errors.New("an address is missing")
			}
		}
	}
	if r.OS != "" && c.systems == nil {
		return errors.New("there are no fingerprints of operating systems")
	}
	for _, t := range []*resolve.Translation{r.Nat, r.Rdr} {
		if t == nil {
			continue
		}
		for _, a := range t.Addrs {
			if a.Kind != resolve.InterfaceAddress && (a.Kind != resolve.PrefixAddress || !a.Prefix.IsValid()) {
				return errors.New("the target of a translation is neither an address nor an interface")
			}
		}
	}
	return known(r)
}

// action returns what the rule does if its conditions are met.
func (c *compiler) action(r *resolve.Rule) Rule {
	a := Rule{
		Tag: c.tag(r.Tag), Tagged: c.tag(r.Tagged),
		Prio: prio(r.SetPrio), Queue: c.queue(r.SetQueue),
		Scrub: scrubFlags(&r.Scrub), MinTTL: r.Scrub.MinTTL, MaxMSS: r.Scrub.MaxMSS, SetTOS: r.Scrub.SetTOS.N,
		ReturnTTL: r.Answer.TTL, ReturnCode4: r.Answer.Code, ReturnCode6: r.Answer.Code6,
		Mark: r.SetMark.N, MarkMask: r.SetMark.Mask, Marked: r.Marked.N, MarkedMask: r.Marked.Mask,
	}
	if r.Action != ast.Match {
		a.From, a.To = c.counts(&r.From.Addr), c.counts(&r.To.Addr)
	}
	set := func(flag Flags, when bool) {
		if when {
			a.Flags |= flag
		}
	}
	set(Block, r.Action == ast.Block)
	set(Match, r.Action == ast.Match)
	set(Quick, r.Quick)
	set(KeepState, r.Action == ast.Pass && r.State == resolve.KeepState)
	set(AllowOptions, r.AllowOpts)
	set(NotTagged, r.NotTagged)
	set(NotMarked, r.Marked.Not)
	set(Log, r.Log)
	set(LogAll, r.LogAll)
	set(ReturnRST, r.Answer.RST)
	set(ReturnICMP, r.Answer.ICMP)
	set(Counts, a.From != 0 || a.To != 0)
	set(StaticPort, r.Nat != nil && r.Nat.StaticPort)
	if r.Once {
		a.More |= Once
	}
	if r.MaxPktRate.N != 0 {
		a.More |= Rated
	}
	a.limiters(r)
	if r.LogMatches && r.Action == ast.Match {
		a.More |= LogMatches
	}
	if r.Nat != nil && r.Nat.EndpointIndependent || r.AfTo != nil && r.AfTo.From.EndpointIndependent {
		a.More |= Endpoint
	}
	if r.IfBound && a.Flags&KeepState != 0 {
		a.More |= IfBound
	}
	a.Exported = r.Exported && a.Flags&KeepState != 0
	if r.RTable != nil && r.Action != ast.Block {
		a.RTable = *r.RTable + 1
	}
	a.askMore(r)
	a.askFrame(&r.Frame)
	a.Bridge = c.bridge(&r.Frame)
	return a
}

func scrubFlags(s *resolve.Scrub) (flags ScrubFlags) {
	if s.NoDF {
		flags |= NoDF
	}
	if s.RandomID {
		flags |= RandomID
	}
	if s.SetTOS.Given {
		flags |= TOS
	}
	if s.ReassembleTCP {
		flags |= TCP
	}
	return flags
}

// translations adds the rule's translations to its action.
func (c *compiler) translations(r *resolve.Rule, a *Rule) (err error) {
	if r.AfTo != nil {
		return c.afTo(r, a)
	}
	if a.NatPool, err = c.pool(targetsOf(r.Nat)); err != nil {
		return err
	}
	if a.RdrPool, err = c.pool(targetsOf(r.Rdr)); err != nil {
		return err
	}
	if t := r.Nat; t != nil {
		a.NatLow, a.NatHigh = t.PortLow, max(t.PortLow, t.PortHigh)
		a.NatStride, a.NatBlock = t.Stride, t.Block
	}
	if t := r.Rdr; t != nil {
		a.RdrLow, a.RdrHigh = t.PortLow, max(t.PortLow, t.PortHigh)
		a.RdrBase = r.To.Port.Low
	}
	return nil
}

// route adds the rule's next hops to its action.
func (c *compiler) route(r *resolve.Rule, a *Rule) error {
	if r.Divert.Kind == resolve.DivertTo {
		a.RoutePool, a.Route = c.socket(r.Divert), DivertTo
		return nil
	}
	if r.Divert.Kind == resolve.DivertReply {
		a.Route = DivertReply
		a.RoutePool = c.socket(resolve.Divert{})
		return nil
	}
	if r.Divert.Kind == resolve.DivertPacket {
		number, err := c.pool(hopsOf(&resolve.Route{Hops: []resolve.NextHop{{Interface: r.Divert.Device()}}}))
		a.RoutePool, a.Route = number-1, DivertPacket
		return err
	}
	if r.Route == nil {
		return nil
	}
	number, err := c.pool(hopsOf(r.Route))
	if err != nil {
		return err
	}
	a.RoutePool, a.Route = number-1, RouteTo
	switch r.Route.Kind {
	case resolve.ReplyTo:
		a.Route = ReplyTo
	case resolve.DupTo:
		a.Route = DupTo
	}
	return nil
}

// socket appends a pool with the one socket that a rule diverts to, and returns its
// position. Without an address it is any socket that takes the packet's destination.
func (c *compiler) socket(d resolve.Divert) uint32 {
	p := c.program
	var pool Pool
	var l poolLayout
	for family, run := range []*Run{&pool.Rows4, &pool.Rows6} {
		to := d.Addr
		if !to.IsValid() {
			to = [...]netip.Addr{netip.IPv4Unspecified(), netip.IPv6Unspecified()}[family]
		}
		if to.Is4() != (family == 0) {
			continue
		}
		*run = Run{uint32(len(p.Rows)), 1}
		l.places[family] = *run
		p.Rows = append(p.Rows, Row{First: to, Count: 1, Interface: uint32(d.Port)})
	}
	p.Pools, p.layouts = append(p.Pools, pool), append(p.layouts, l)
	return uint32(len(p.Pools)) - 1
}

// leads notes which rules of translation lists lead elsewhere than to the rule behind
// them, and which are not a user's.
func (c *compiler) leads() {
	p := c.program
	p.Next = make([]uint32, len(p.Rules))
	for i, l := range c.lists {
		if l.Next != 0 {
			p.Next[i] = uint32(l.Next)
			p.Rules[i].Flags |= Leads
		}
		if l.IsScrub {
			p.Scrubs = i + 1
		}
		if l.Pieces {
			p.Rules[i].Scrub |= Pieces
		}
		if l.Of == nil && !l.IsScrub && (!l.IsEther || l.Anchor != nil || l.IsPast) {
			p.Rules[i].Flags |= Silent
		}
		if l.IsEther && l.Anchor != nil && l.Anchor.Quick {
			c.endsEther(i+1, l.Anchor.End)
		}
	}
	for nr, r := range c.filter {
		if r.Anchor != nil && r.Anchor.Quick {
			c.ends(nr+1, min(r.Anchor.End, len(c.filter)))
		}
	}
}

// maxEntered is the bits of walk.entered.
const maxEntered = 64

// enters numbers the anchors whose conditions are not merged into their rules. These match
// only if the anchor has matched in the same crossing. Anchors in an anchor come later.
func (c *compiler) enters() error {
	entered := uint8(0)
	for nr, r := range c.filter {
		if r.Anchor == nil || r.Anchor.Flat {
			continue
		}
		at := len(c.lists) + nr
		if entered == maxEntered {
			return &Error{Rule: at, What: fmt.Sprintf("there are more than %d anchors with conditions that their rules cannot take over", maxEntered)}
		}
		entered++
		c.program.Rules[at].Enters = entered
		c.program.Rules[at].Flags |= AsksMore
		for in := at + 1; in < min(len(c.lists)+r.Anchor.End, len(c.rules)); in++ {
			c.program.Rules[in].Inside = entered
			c.program.Rules[in].Flags |= AsksMore
		}
	}
	return nil
}

// ends notes that the evaluation ends behind a quick anchor if one of its rules decides.
// Anchors in it come later, and end earlier.
func (c *compiler) ends(first, end int) {
	for nr := first; nr < end; nr++ {
		if at := len(c.lists) + nr; c.filter[nr].Action != ast.Match && !c.filter[nr].Quick {
			c.program.Rules[at].More |= Ends
			c.program.Next[at] = uint32(len(c.lists) + end)
		}
	}
}

// tag returns a tag's number. States keep the numbers of their tags over reloads.
func (c *compiler) tag(name string) uint16 {
	if name == "" {
		return 0
	}
	number, ok := c.tags[name]
	if !ok {
		if len(c.tags) < maxTags {
			number = numberByName(name, maxTags, c.program.Tags)
			c.program.Tags[number] = name
		}
		c.tags[name] = number
	}
	return number
}

// kinds makes the vectors of stations and of plain rules.
func (c *compiler) kinds() {
	p := c.program
	stations, plains := newVector(len(p.Rules)), newVector(len(p.Rules))
	follows := false // all that match are logged, and so visited
	for i, r := range p.Rules {
		kind, blocks := plains, &p.Set.Plains
		p.Set.AsksMark = p.Set.AsksMark || r.MarkedMask != 0
		if r.Flags&AsksMore != 0 {
			p.Set.AsksMore |= asksMore | uint16(r.FactsMask)
		}
		if r.AsksPrio != 0 {
			p.Set.AsksMore |= asksPrio
		}
		p.Set.AsksMore |= uint16(r.Late)
		if i < p.Ethers || follows || r.Flags&(Match|Quick) != 0 || r.Tag != 0 || r.Tagged != 0 || r.MarkedMask != 0 || r.Flags&AsksMore != 0 || r.More&Ends != 0 {
			kind, blocks = stations, &p.Set.Stations
		}
		follows = follows || r.More&LogMatches != 0
		kind[i/64] |= 1 << (i % 64)
		*blocks |= 1 << (i / ChunkRules >> p.Set.BlockShift)
	}
	p.Set.StationsAt = uint32(len(p.Vectors))
	p.Vectors = appendVector(p.Vectors, stations)
	p.Set.PlainsAt = uint32(len(p.Vectors))
	p.Vectors = appendVector(p.Vectors, plains)
}
