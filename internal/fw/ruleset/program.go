package ruleset

import (
	"slices"
	"weir/internal/fw/shaper"

	"weir/pf/resolve"
)

// A Program is a compiled ruleset: the contents of the maps, by index.
// bpf/rules/ruleset.h and bpf/rules/pool.h define the types and explain their fields.
type Program struct {
	Set    Set
	Rules  []Rule   // by index
	Order  []uint32 // index of each rule, by number; both are the same until Replace
	Next   []uint32 // number of the rule that a rule which Leads leads to, or before which one that Ends ends the evaluation; by number
	Ethers int      // how many rules are FreeBSD's ether rules, which frames meet: the first
	Scrubs int      // the first rule behind FreeBSD's list of scrub rules; 0: there are none
	First  int      // how many rules stand before the filter rules: those of translation lists

	ImplicitPass bool // set implicit-pass

	Forest
	Classes []Class
	Vectors []Bits
	Pools   []Pool
	Rows    []Row

	// Tags holds the names of tags by number.
	Tags map[uint16]string

	// Index leads from an address to its set of tables, as Compile made it.
	// ChangeTable and ReplaceTable return later changes.
	Index *TableIndex

	// Queues holds the names of queues, and of pairs of queues, by number. A number
	// that is not in QueuePairs belongs to no queue of these rules.
	Queues     map[uint16]string
	QueuePairs map[uint16]QueuePair

	// Fingerprints are compared with a SYN in this order, if a rule asks for an operating
	// system. Trees know them by their position, plus 1.
	Fingerprints []Fingerprint

	// Limits holds what limits the states of rules. States hold numbers for these, which the
	// dataplane assigns by Name.
	Limits []Limit

	// Shapers are the queues of each interface and direction.
	Shapers []shaper.Shaper

	// CountsStates says that pools count the states at their addresses.
	CountsStates bool
	// Limiters are shared by rules. Rules and states know them by their ids.
	Limiters []Limiter

	layouts []poolLayout
	tables  liveTables
	places  []span // where frames meet ether rules
}

// ChunkRules is the number of rules in a chunk of a vector.
const ChunkRules = 64 * chunkWords

const (
	chunkWords = 8
)

// classBits is how many blocks of chunks a class has bits for.
const classBits = 64

// Chunks returns the number of chunks that a vector has, at least 1.
func (p *Program) Chunks() int { return Chunks(len(p.Order)) }

// Chunks returns how many chunks the vectors of this many rules have, in whole blocks.
func Chunks(rules int) int {
	n := max(1, (rules+ChunkRules-1)/ChunkRules)
	block := 1 << blockShift(rules)
	return (n + block - 1) / block * block
}

// blockShift returns log2 of the number of chunks per bit of a class.
func blockShift(rules int) int {
	shift := 0
	for rules > classBits*ChunkRules<<shift {
		shift++
	}
	return shift
}

// A Set holds the values that exist once per ruleset.
type Set struct {
	BlockShift           uint8  // log2 of the chunks in a block
	Stations, Plains     uint64 // blocks that contain such rules
	StationsAt, PlainsAt uint32 // positions of their vectors in Vectors

	// The classes of sets of tables begin here, ordered by set. AsksTables contains asksDst
	// if rules use tables of destinations, asksSrc for sources.
	DstTablesAt, SrcTablesAt uint32
	AsksTables               uint8
	AsksMark                 bool   // a rule has a condition on the mark
	All                      uint32 // a class with the bits of all rules, for what a frame does not have
	EtherTables              bool   // an ether rule has a table
	AsksMore                 uint16 // asksMore, asksPrio, and the facts and late fields that rules ask
}

// A Limiter is a limit that several rules share, as the language has it. The dataplane knows it
// by this name, because it knows no language.
type Limiter = resolve.Limiter

// Bits of Set.AsksTables.
const (
	asksDst = 1 << iota
	asksSrc
)

// Flags holds the bits of a Rule.
type Flags uint16

// Flags of a rule.
const (
	Block Flags = 1 << iota
	Match
	Quick
	KeepState
	AllowOptions
	NotTagged
	StaticPort
	Log    // log the packets that it matches
	LogAll // and log every packet of its states; Log is set too
	ReturnRST
	ReturnICMP
	NotMarked // the condition on the mark is negated
	Counts    // From or To is a table with counters
	Leads     // the rule that is evaluated next is in Next
	Silent    // the rule counts no packets: it is not a user's
	AsksMore  // it has one of the conditions from Facts to Late, Once, a max-pkt-rate, Enters or Inside
)

// MoreFlags holds further bits of a Rule.
type MoreFlags uint8

// More flags of a rule.
const (
	IfBound    MoreFlags = 1 << iota // its states are bound to the interface
	Once                             // after its first packet it matches no more
	LogMatches                       // match: later rules that match are logged too
	Rated                            // it has a max-pkt-rate, which is with its limits
	Ends                             // pass, block: the evaluation ends before the rule in Next
	Endpoint                         // nat-to: a UDP source has one address and port for all destinations
	Limited                          // it has a limiter
	asksMACs                         // an ether rule: it has conditions in MACs
)

// BindsStates reports whether a rule binds its states to interfaces.
func (p *Program) BindsStates() bool {
	return slices.ContainsFunc(p.Rules, func(r Rule) bool { return r.More&IfBound != 0 })
}

// Copies reports whether a rule has copies sent, or packets to a program.
func (p *Program) Copies() bool {
	return slices.ContainsFunc(p.Rules, func(r Rule) bool { return r.Route == DupTo || r.Route == DivertPacket })
}

// ReassemblesTCP reports whether a rule has scrub (reassemble tcp).
func (p *Program) ReassemblesTCP() bool {
	return slices.ContainsFunc(p.Rules, func(r Rule) bool { return r.Scrub&TCP != 0 })
}

// ChangesFamily reports whether a rule translates to the other address family.
func (p *Program) ChangesFamily() bool {
	return slices.ContainsFunc(p.Rules, func(r Rule) bool { return r.Family != 0 })
}

// LimiterEntries returns how many sources the limiters may have together.
func (p *Program) LimiterEntries() (n uint32) {
	for i := range p.Limiters {
		n += p.Limiters[i].Entries
	}
	return n
}

// ScrubFlags holds the options of scrub without a value: SCRUB_* of bpf/packet/packet.h.
type ScrubFlags uint8

// Options of scrub.
const (
	NoDF ScrubFlags = 1 << iota
	RandomID
	TOS    // packets get Rule.SetTOS
	Pieces // of scrub rules: fragments meet the rules each for itself
	TCP    // reassemble tcp
)

// A Rule is what a rule does if its conditions are met. Tags and pools are numbered from
// 1; 0 is none.
type Rule struct {
	Flags                       Flags
	More                        MoreFlags
	Tag, Tagged                 uint16
	NatLow, NatHigh             uint16 // 0: no range
	NatStride, NatBlock         uint8  // as in resolve.Translation
	RdrLow, RdrHigh, RdrBase    uint16 // 0: the port does not change
	NatPool, RdrPool            uint32
	ReturnTTL                   uint8  // TTL of a reset; 0: the default
	ReturnCode4, ReturnCode6    uint8  // codes of the ICMP error "unreachable"
	Prio                        uint8  // priorities for packets; 0: none
	Queue                       uint16 // number from set queue; 0: none
	Scrub                       ScrubFlags
	MinTTL                      uint8  // 0: none
	MaxMSS                      uint16 // 0: none
	SetTOS                      uint8  // with Scrub&TOS
	Limit                       uint16 // position in Program.Limits, plus 1; 0: nothing limits its states
	Mark, MarkMask              uint32 // set on the packet; mask 0: none
	Marked, MarkedMask          uint32 // required of the packet; mask 0: none
	Facts, FactsMask            Facts  // required of the routes of its addresses; mask 0: none
	Chance                      uint32 // of 2^32 packets, as many match; 0: all
	MaxSize                     uint16 // of the IP packet, bytes; 0: any
	TOS                         uint8  // required of the packet; 0: any
	AsksDSCP                    uint8  // code point required of the packet, plus 1; 0: any
	RTable                      uint32 // number of the routing table for the packet, plus 1; 0: as it is
	AsksPrio                    uint8  // priority required of the packet, plus 1; 0: any
	Late                        Late   // it has conditions on these fields
	Route                       Routes // what its next hops are for
	RoutePool                   uint32 // position of their pool
	From, To                    TableCount
	Family                      uint8  // af-to: the new family, 4 or 6; 0: none. NatPool is from, RdrPool is to
	SrcBits, DstBits            uint8  // af-to: behind how many bits of an IPv6 address the IPv4 address is; 0: nowhere
	StateBlocks, SourceBlocks   bool   // what the limiter refuses is dropped
	StateLimiter, SourceLimiter uint8  // ids; 0: none
	MACs                        MACs   // with asksMACs
	Exported                    bool   // pflow: collectors hear of its states
	Bridge                      uint16 // ether rules: the interface that frames go to; BridgeLost: there is none; 0: they stay
	Enters, Inside              uint8  // anchors with conditions, from 1: it is this one; it is in this one; 0: none
}

// Routes is what a rule's next hops are for: enum routes.
type Routes uint8

// Kinds of next hops.
const (
	NoRoutes     Routes = iota
	RouteTo             // the packets
	ReplyTo             // their replies
	DivertTo            // none: a socket of the box, whose port is its row's interface
	DivertReply         // none: replies go to the socket that sends the packets
	DupTo               // copies of the packets
	DivertPacket        // the packets, before they go on: the device of a program
)

// A TableCount says under which table's entries packets of a rule count: its TableNumber
// * 2, plus 1 if the rule negates the table. 0 is none.
type TableCount uint32

// Facts are what rules ask about the routes of a packet's addresses.
type Facts uint8

// Bits of Facts.
const (
	NoRouteBack Facts = 1 << iota // there is no route to the source
	NoRoute                       // there is no route to the destination
	URPFFailed                    // the route to the source leads to another interface

	asksMore = 0x100 // Set.AsksMore: a rule has AsksMore
	asksPrio = 0x200 // likewise: a rule has AsksPrio
)

// Late is a set of the late fields: user, group, received-on, os.
type Late uint16

// Bits of Late.
const (
	lateFirst   Late = 1 << 3 // of user; the others follow
	lateLogUser Late = 1 << 7 // no condition: it logs the packet's user
	lateOwners       = lateFirst<<lateUser | lateFirst<<lateGroup | lateLogUser
)

// AsksOwners reports whether a rule asks for the user or the group of a packet.
func (p *Program) AsksOwners() bool { return Late(p.Set.AsksMore)&lateOwners != 0 }

// Bits is one chunk of a vector.
type Bits [chunkWords]uint64

// A Class is a class of values of a field.
type Class struct {
	Filled, Full, Differs uint64 // one bit for each block
	Common, Own           uint32 // indices into Vectors
}

// Fields of a packet, in the order of enum field.
const (
	fieldDst = iota
	fieldDport
	fieldSrc
	fieldProtocol
	fieldInterface
	fieldSport
	fieldDstTables
	fieldSrcTables
	fieldCount
)

// Fields that few rules ask for, in the order of enum late.
const (
	lateUser = iota
	lateGroup
	lateReceived
	lateSystem
	lateCount
)

// Trees without a field's number: enum tree.
const (
	treeDst6 = fieldDstTables + iota
	treeSrc6
	treeLate
	treeFirstLow = treeLate + lateCount
)

// SpanTree marks a span's value as a tree's index.
const SpanTree = spanTree

const spanTree = 1 << 31
