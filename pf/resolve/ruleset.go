package resolve

import (
	"math"
	"net/netip"

	"weir/pf/ast"
	"weir/pf/fingerprint"
	"weir/pf/token"
)

// Ruleset is a configuration after expansion: what pfctl would pass to the kernel. The
// compiler (internal/fw/ruleset) and the model (internal/oracle/model) see only this
// form.
type Ruleset struct {
	Options  Options
	Tables   []*Table
	Limiters []Limiter // in the order of their definitions
	Queues   []*QueueTree
	Rules    []*Rule // in order, those of an anchor after it; Rules[i].Nr == i

	Translations []*TranslationRule // FreeBSD's, in order; evaluated before Rules
	First        []*ListRule        // FreeBSD's scrub rules, and what Translations become (FirstRules)

	Anchors []Anchor // all that have rules or were loaded at run time, by path

	Fingerprints fingerprint.List // of operating systems; nil: no rule asks for one, or there is no file of them

	Source *ast.File // the file after expansion, as weir check prints it; maps each Pos to its place
}

// Options are the values of the set statements, with defaults.
type Options struct {
	Timeouts        Timeouts
	MaxStates       uint32   // set limit states; default 100000
	MaxSources      uint32   // set limit src-nodes; default 10000
	Skip            []string // set skip on: interface or group names, in order
	ImplicitPass    bool     // set implicit-pass; default true
	FragmentsAlone  bool     // set reassemble no: fragments meet the rules each for itself
	FragmentsListed bool     // those whose first scrub rule is ListRule.Pieces do
	MarkMask        uint32   // set mark-mask: weir's own bits of skb->mark; default DefaultMarkMask
	MaxTables       uint32   // set limit tables; 0: no limit
	MaxTableEntries uint32   // set limit table-entries, of all tables; 0: no limit
	TableStore      string   // set table-store: the folder for tables that outlive a boot; empty: they do not
	PfctlMayOpen    bool     // set pfctl-may-open: weir pfctl -d and -F may open the box

	// Optimization is the value of set ruleset-optimization: none, basic or profile,
	// or empty if it is not set.
	Optimization string

	// Groups are the members of the groups that set interface-group makes, in
	// addition to those of the machine.
	Groups map[string][]string

	// Gateways are those of set gateway. Each address is there once.
	Gateways []Gateway

	Spreads []Spread // set spread, without off

	Collectors []Collector // those of set pflow, in order

	PPPoE []PPPoE // interfaces that PPPoE sessions make, in order

	WireGuard []WireGuard // interfaces of tunnels, in order

	IKEv2 []IKEv2 // IPsec tunnels, in order
}

// MostSpreadCore is the last core that frames may be handed to.
const MostSpreadCore = 254

// Spread says that the frames that come in by an interface are handed to other cores.
type Spread struct {
	Interface string
	Auto      bool  // while the core that receives is full and others are not
	Cores     []int // else to these
}

// Timeouts of states by phase of the connection, in seconds, as in pf.conf(5).
type Timeouts struct {
	TCPFirst, TCPOpening, TCPEstablished, TCPClosing, TCPFinWait, TCPClosed uint32
	UDPFirst, UDPSingle, UDPMultiple                                        uint32
	ICMPFirst, ICMPError                                                    uint32
	OtherFirst, OtherSingle, OtherMultiple                                  uint32
	Frag                                                                    uint32
	Interval, SrcTrack                                                      uint32 // parsed and printed; weir's garbage collection has its own pace
	TCPTSDiff                                                               uint32 // of scrub (reassemble tcp)
	AdaptiveStart, AdaptiveEnd                                              uint32 // numbers of states; both 0: no adaptive timeouts
}

// Table is a named set of addresses. An element with Not excludes part of a shorter
// prefix, because the longest prefix wins.
type Table struct {
	Name    string
	Entries []TableEntry
	Pos     token.Pos
	Given   bool   // the definition gives the contents, even if they are none ("{ }")
	Used    bool   // a rule names the table
	Anchor  string // path of the anchor that defines it, if that is not part of Name
	ast.TableFlags
}

// TableEntry is one element of a table.
type TableEntry = ast.TableEntry

// Rule is one line of the configuration after expansion: every field holds a single
// value. The zero value of a field means no condition.
type Rule struct {
	Nr         int
	Pos        token.Pos  // place in the file: of the list element that made it
	Origin     token.Span // that element, or the statement
	Stmt       token.Span
	Text       string // canonical form, as weir rules and pfctl -nv print it
	Scope      string // path of the anchor that contains it; empty: the main ruleset
	Action     ast.Action
	Direction  ast.Direction
	Quick      bool
	Log        bool  // log the packets that it decides without a state, and those that create one
	LogAll     bool  // log (all): every packet of its states too; Log is also set
	LogMatches bool  // log (matches): of a match rule, later rules that match are logged too; Log is also set
	LogUser    bool  // log (user): with the user of the packet's socket; Log is also set
	LogTo      uint8 // log (to pflogN): N
	Family     ast.Family
	Proto      uint8 // 0: any (rules cannot match protocol 0 itself)
	State      StatePolicy
	Limits     Limits
	IfBound    bool // its states are bound to the interface
	Exported   bool // pflow: collectors hear of its states
	AllowOpts  bool
	NotTagged  bool   // ! tagged
	Answer     Answer // to what is blocked, or cannot be passed
	Flags      TCPFlags
	ICMP       ICMPType
	Anchor     *Call // the rule is an anchor; its Action is Match
	Interface  Interface
	From, To   Endpoint
	OS         string // the sender's operating system
	User       Owner
	Group      Owner
	Label      string       // macros ($if, $srcaddr, …) are already replaced
	MoreLabels []string     // labels after the first, which FreeBSD allows
	Tag        string       // set on the packet when the rule matches; sticky
	Tagged     string       // condition on the packet's tag
	SetMark    Mark         // set on packets by pass and match rules
	Marked     Marked       // condition on the packet's mark
	Nat        *Translation // nat-to
	Rdr        *Translation // rdr-to
	AfTo       *AfTo        // af-to of a pass rule
	SetPrio    SetPrio      // set prio
	SetQueue   SetQueue     // set queue
	Scrub      Scrub        // how its packets are normalised
	Route      *Route       // route of a pass rule
	Frame      Frame        // what an ether rule asks of a frame
	Filter
}

// Interface is the "on" clause. Name is looked up when the rule is compiled: it is an
// interface or a group, which may not exist yet. Any is true if the rule has no "on".
type Interface struct {
	Any   bool
	Not   bool
	Group bool   // Name is a group
	Name  string // as written

	RDomain *uint32 // interfaces of a routing domain instead of a name
}

// Endpoint is one side of from/to.
type Endpoint struct {
	Addr Address
	Port PortRange
}

// AddressKind says which field of an Address is valid.
type AddressKind uint8

// Kinds of addresses in rules.
const (
	AnyAddress        AddressKind = iota
	PrefixAddress                 // Prefix
	TableAddress                  // Table
	InterfaceAddress              // (if): Interface, Modifier, Bits; follows the interface's addresses at run time
	RangeAddress                  // from the address of Prefix to Last
	NoRouteAddress                // any address without a route
	URPFFailedAddress             // in From: any whose return route uses another interface
	RouteAddress                  // any whose route has the label Route
)

// Modifier is the word after an interface name in (if:network).
type Modifier uint8

// Modifiers of dynamic interface addresses.
const (
	NoModifier Modifier = iota
	NetworkModifier
	BroadcastModifier // IPv4, not of loopbacks
	PeerModifier      // other ends of point-to-point links
)

// Address is an address in a rule. Interface names without parentheses, "self" and host
// names have already been resolved to prefixes. (self) is an InterfaceAddress whose
// Interface is Self.
type Address struct {
	Kind      AddressKind
	Not       bool
	Modifier  Modifier
	NoAlias   bool         // :0, only the first address
	Prefix    netip.Prefix // IPv4 is stored as IPv4
	Table     string
	Interface string
	Bits      int // (if)/Bits, 0: none
	Last      netip.Addr
	Route     string
	Weight    uint16 // of an address in a pool with least-states; 0 is 1
}

// Self names all interfaces in an InterfaceAddress.
const Self = "self"

// PortRange is a condition on a port.
type PortRange struct {
	Op        ast.PortOp
	Low, High uint16
}

// Match reports whether port p satisfies the condition.
func (r PortRange) Match(p uint16) bool { return compare(r.Op, r.Low, r.High, p) }

// Span returns the ports that satisfy the condition, if it is one on neighbouring ports.
func (r PortRange) Span() (low, high uint16, ok bool) {
	low, high = r.Low, r.High
	switch r.Op {
	case ast.PortEqual:
		high = low
	case ast.PortLess:
		low, high = 0, low-1
	case ast.PortLessEqual:
		low, high = 0, low
	case ast.PortGreater:
		low, high = low+1, 1<<16-1
	case ast.PortGreaterEqual:
		high = 1<<16 - 1
	case ast.PortInside:
		low, high = low+1, high-1
	case ast.PortRange:
	default:
		return 0, 0, false
	}
	return low, high, r.Match(low) && r.Match(high)
}

// compare reports whether n satisfies a condition.
func compare[T uint16 | uint32](op ast.PortOp, low, high, n T) bool {
	switch op {
	case ast.PortEqual:
		return n == low
	case ast.PortNotEqual:
		return n != low
	case ast.PortLess:
		return n < low
	case ast.PortLessEqual:
		return n <= low
	case ast.PortGreater:
		return n > low
	case ast.PortGreaterEqual:
		return n >= low
	case ast.PortRange:
		return n >= low && n <= high
	case ast.PortInside:
		return n > low && n < high
	case ast.PortOutside:
		return n < low || n > high
	}
	return true
}

// Nobody owns packets without a socket on this machine, such as forwarded ones.
const Nobody = math.MaxUint32

// Owner is a condition on the owner of a packet's socket. Op is AnyPort if there is no
// condition.
type Owner struct {
	Op        ast.PortOp
	Low, High uint32
}

// Match reports whether the owner id meets the condition. Nobody can only be compared by
// name: "= unknown", "!= root".
func (o Owner) Match(id uint32) bool {
	if id == Nobody && o.Op != ast.AnyPort && o.Op != ast.PortEqual && o.Op != ast.PortNotEqual {
		return false
	}
	return compare(o.Op, o.Low, o.High, id)
}

// TCPFlags is "flags Set/Mask". Mask 0 means no condition ("flags any"). Bits are those
// of the TCP header: FIN 1, SYN 2, RST 4, PSH 8, ACK 16, URG 32, ECE 64, CWR 128.
type TCPFlags struct {
	Set, Mask uint8
}

// ICMPType is icmp-type or icmp6-type, by the rule's Family.
type ICMPType struct {
	Asked   bool
	Type    uint8
	HasCode bool
	Code    uint8
}

// StatePolicy says whether a pass rule keeps state.
type StatePolicy uint8

// Policies. Block rules have NoState, and so have match rules, except those of translation
// lists.
const (
	KeepState StatePolicy = iota
	NoState
)
