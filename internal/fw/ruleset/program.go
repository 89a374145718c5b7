package ruleset

// A Program is a compiled ruleset: the contents of the maps, by index. The types
// are those of bpf/rules/ruleset.h and bpf/rules/pool.h, where their fields are explained.
type Program struct {
	Set   Set
	Rules []Rule   // by index
	Order []uint32 // by number: the index of a rule; both are the same until Replace
	Forest
	Classes []Class
	Vectors []Bits
	Pools   []Pool
	Rows    []Row

	// Tags are the names of tags by their numbers.
	Tags map[uint16]string

	// Index is where an address leads to its set of tables, as Compile leaves it.
	// UpdateTables and ReplaceTable return what follows.
	Index *TableIndex

	// Queues are the names of queues, and of pairs of them, by their numbers. A
	// number that QueuePairs does not have is of no queue of these rules.
	Queues     map[uint16]string
	QueuePairs map[uint16]QueuePair

	layouts []poolLayout
	tables  liveTables
}

// ChunkRules is the number of rules in a chunk of a vector.
const ChunkRules = 64 * chunkWords

const (
	chunkWords = 8
	nodeKeys   = 8
)

// classBits is how many blocks of chunks a class has bits for.
const classBits = 64

// Chunks returns the number of chunks that a vector has, at least 1.
func (p *Program) Chunks() int { return Chunks(len(p.Order)) }

// Chunks is how many chunks the vectors of so many rules have: whole blocks of them.
func Chunks(rules int) int {
	n := max(1, (rules+ChunkRules-1)/ChunkRules)
	block := 1 << blockShift(rules)
	return (n + block - 1) / block * block
}

// blockShift is log2 of the chunks that a bit of a class stands for.
func blockShift(rules int) int {
	shift := 0
	for rules > classBits*ChunkRules<<shift {
		shift++
	}
	return shift
}

// A Set holds what there is once.
type Set struct {
	BlockShift           uint8  // log2 of the chunks in a block
	Stations, Plains     uint64 // blocks with such rules
	StationsAt, PlainsAt uint32 // their vectors in Vectors

	// Classes of sets of tables, by set, begin here; Asks has 1 if rules ask for
	// tables of destinations, 2 for those of sources.
	DstTablesAt, SrcTablesAt uint32
	AsksTables               uint8
	AsksMark                 bool // a rule asks for a mark
}

// Bits of Set.AsksTables.
const (
	asksDst = 1 << iota
	asksSrc
)

// Flags are bits of a Rule.
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
	Log    // log what it matches
	LogAll // and every packet of its states; Log is set too
	ReturnRST
	ReturnICMP
	NotMarked // marked asks for any mark but this
)

// A Rule is what a rule does once its conditions are met. Tags and pools are
// numbered from 1; 0 is none.
type Rule struct {
	Flags                    Flags
	Tag, Tagged              uint16
	NatLow, NatHigh          uint16 // 0: no range given
	RdrLow, RdrHigh, RdrBase uint16 // 0: the port stays
	NatPool, RdrPool         uint32
	ReturnTTL                uint8  // of a reset; 0: the usual
	ReturnCode4, ReturnCode6 uint8  // of the ICMP error "unreachable"
	Prio                     uint8  // priorities of packets; 0: none
	Queue                    uint16 // what set queue names; 0: nothing
	Mark, MarkMask           uint32 // set on the packet; mask 0: nothing
	Marked, MarkedMask       uint32 // asked of the packet; likewise
}

// A Tree is a search tree's place in Nodes; without nodes, First is the value of
// all numbers.
type Tree struct {
	First, Nodes uint32
}

// A Node is the keys of a tree's node, Spans their values.
type (
	Node  [nodeKeys]uint64
	Spans [nodeKeys]uint32
)

// Bits is one chunk of a vector.
type Bits [chunkWords]uint64

// A Class is a class of values of a field.
type Class struct {
	Filled, Full, Differs uint64 // bits of blocks
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

// Trees that have no field's number: enum tree.
const (
	treeDst6 = fieldDstTables + iota
	treeSrc6
	treeFirstLow
)

// SpanTree marks a span's value that is a tree's index.
const SpanTree = spanTree

const spanTree = 1 << 31
