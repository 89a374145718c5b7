package resolve

import (
	"cmp"
	"maps"
	"slices"

	"weir/pf/ast"
	"weir/pf/diag"
	"weir/pf/fingerprint"
	"weir/pf/parser"
	"weir/pf/source"
	"weir/pf/token"
)

// MaxRules limits the rules that a configuration may expand to, before it is optimized.
const MaxRules = 1_000_000

// MaxHeld is the most rules that a packet can meet: those that are left, with the
// translation rules.
const MaxHeld = 65_536

// Load reads a configuration of one file and resolves it for host. A nil host is a
// machine without interfaces. name is used in messages. The ruleset is nil if the list
// has errors.
func Load(name string, src []byte, host *Host) (*Ruleset, diag.List) {
	return LoadWith(name, src, host, Settings{})
}

// Settings are options for reading a configuration.
type Settings struct {
	Files    source.Opener  // opens the files that the configuration names; nil: there are none
	Macros   []source.Macro // set from outside
	Without  source.Without // what the file may say although the dataplane ignores it
	Anchors  source.Anchors // loaded at run time
	Optimize bool           // like pfctl -o basic: fewer rules, in an order in which pf skips more
	AsSet    bool           // Optimize if set ruleset-optimization says so
	MaxRules int            // after expansion; 0: MaxRules
}

// LoadWith is Load with settings.
func LoadWith(name string, src []byte, host *Host, s Settings) (*Ruleset, diag.List) {
	file, list := parser.ParseInput(&source.Input{
		Name: name, Text: src, Macros: s.Macros, Files: s.Files, Anchors: s.Anchors,
		Known: func(table string) bool { return host != nil && host.Tables[table] != nil },
	})
	rules, more := resolve(file, host, s)
	list.Append(&more)
	list.Sort()
	if list.HasErrors() {
		return nil, list
	}
	return rules, list
}

// resolve expands a parsed file for host. The ruleset is nil if the list or the file has
// errors.
func resolve(file *ast.File, host *Host, settings Settings) (*Ruleset, diag.List) {
	r := newResolver(file, host, settings)
	r.altq.refused = file.Partial
	r.readFingerprints(file.Fingerprints)
	r.inScope(r.main, file.Stmts)
	r.checkTables()
	r.checkAdaptive()
	r.checkLimits()
	r.checkQueues()
	r.checkALTQ()
	r.endpoints()
	r.widePorts()
	r.pflowAlone()
	if r.faults.Errors() == 0 && !r.without.Queues {
		r.dummynetTrees()
	}
	var rules *Ruleset
	if !file.Partial {
		rules = r.ruleset()
	}
	r.faults.Sort()
	if r.faults.HasErrors() {
		return nil, *r.faults
	}
	return rules, *r.faults
}

// resolver is the state while a file is expanded.
type resolver struct {
	host     *Host
	names    database
	faults   *diag.List
	maxRules int
	order    order
	optimize bool
	asSet    bool // optimize as set ruleset-optimization says
	without  source.Without

	suggestions int // suggestions looked up so far
	total       int // rules so far, including those of anchors

	*scope  // the scope that statements are expanded into
	main    *scope
	anchors map[string]*scope      // anchors with rules in the file, by path
	places  map[string]token.Span  // places of their names
	bodies  map[*ast.Anchor]*scope // of expanded anchors with braces
	unnamed int                    // unnamed anchors so far
	loading bool                   // load anchor's file is being expanded

	atRunTime bool            // and it was loaded at run time
	replaced  map[string]bool // paths of anchors whose rules were loaded at run time, with those in them
	given     map[string]bool // paths of anchors that the configuration itself has rules for
	flushed   map[string][]source.Kind

	uses      []use                   // tables named in rules
	automatic int                     // number of the next automatic table
	listed    int                     // addresses in automatic tables and in the lists of translation rules
	poolLists map[*ast.Host][]Address // lists in translation rules, by their first element
	lowered   map[lowered][]Address   // tables that translations choose from
	unknown   map[string]bool         // interfaces with a warning
	dialled   map[string]token.Span   // PPPoE interfaces, and where they are defined
	options   Options
	policy    *ast.BlockPolicy       // block policy at this point of the file; nil: drop
	adaptive  map[string]ast.Setting // adaptive timeouts that are set
	limits    map[string]ast.Setting // limits that are set, except that of states
	defined   []*ast.Table           // resolved tables, including those of anchors

	queues   queues
	altq     altq
	dummynet dummynet
	systems  fingerprint.List // nil: there is no file of them
	limiters map[limiterKey]*ast.LimiterDef
	sessions []*ast.PPPoE     // as in options.PPPoE
	tunnels  []*ast.WireGuard // as in options.WireGuard
	peers    []*ast.Peer
	ipsec    []*ast.IKEv2 // as in options.IKEv2
	clamps   int          // rules for sessions and tunnels, in front of all others

	stateDefaults []ast.StateOption // set state-defaults, for pass rules without state options
	defaultsAt    token.Span        // place of set state-defaults
	pflowAt       token.Span        // of the first state option pflow
	failReturn    bool              // set fail-policy return
	ifBound       bool              // set state-policy if-bound
	endsIfBound   bool              // the file's last state-policy; when printed it applies to all rules
	notWhole      bool              // set reassemble no
	asPieces      bool              // a scrub rule asks for no reassembly
	whole         bool              // another one asks for it
}

func newResolver(file *ast.File, host *Host, settings Settings) *resolver {
	if host == nil {
		host = &Host{}
	}
	r := &resolver{
		host:     host.withLoopback(),
		names:    newDatabase(host),
		faults:   &diag.List{Files: file.Files},
		maxRules: cmp.Or(settings.MaxRules, MaxRules),
		optimize: settings.Optimize,
		asSet:    settings.AsSet,
		without:  settings.Without,
		main:     newScope("", &ast.File{Files: file.Files, Comments: file.Comments}),
		anchors:  make(map[string]*scope),
		places:   make(map[string]token.Span),
		bodies:   make(map[*ast.Anchor]*scope),
		unknown:  make(map[string]bool),
		dialled:  make(map[string]token.Span),
		lowered:  make(map[lowered][]Address),

		replaced: make(map[string]bool),
		given:    make(map[string]bool),
		flushed:  make(map[string][]source.Kind),

		poolLists: make(map[*ast.Host][]Address),
		options:   defaults(),
		adaptive:  make(map[string]ast.Setting),
		limits:    make(map[string]ast.Setting),
	}
	r.scope = r.main
	r.declareGroups(file.Stmts)
	r.declareSessions(file.Stmts)
	r.declareTunnels(file.Stmts)
	r.queues.refused = file.Partial
	for _, s := range file.Stmts {
		switch s := s.(type) {
		case *ast.Queue:
			r.queues.define(s.Name.Text)
		case *ast.Discipline:
			r.queues.altq = true
		case *ast.MarkMask: // it also applies to rules before it
			r.options.MarkMask = s.Mask
		case *ast.Reassemble: // likewise
			r.options.FragmentsAlone, r.notWhole = !s.Yes, !s.Yes
		case *ast.ScrubRule:
			r.options.FragmentsAlone = r.options.FragmentsAlone || s.Fragment == "no reassemble" && !s.No
		case *ast.Option:
			if s.Name.Text == "state-policy" {
				r.endsIfBound = s.Value.Text == "if-bound"
			}
		}
	}
	return r
}

func (r *resolver) statement(s ast.Stmt) {
	r.checkOrder(s)
	switch s := s.(type) {
	case *ast.Macro:
		r.out.Stmts = append(r.out.Stmts, s)
	case *ast.Table:
		r.table(s)
	case *ast.Rule:
		r.rule(s)
	case *ast.LoadAnchor:
		r.loadAnchor(s)
	case *ast.Antispoof:
		r.antispoof(s)
	case *ast.Ether:
		r.scope.ethers = append(r.scope.ethers, r.ether(s))
	case *ast.ScrubRule:
		r.scrubRule(s)
	case *ast.Translation:
		r.translationRule(s)
	case *ast.Queue:
		r.queue(s)
	case *ast.PPPoE:
		r.pppoe(s)
	case *ast.WireGuard:
		r.wireguard(s)
	case *ast.Peer:
		r.peer(s)
	case *ast.IKEv2:
		r.ikev2(s)
	case *ast.LimiterDef:
		r.limiterDef(s)
	case *ast.PacketPipe:
		r.dummynetRule(s)
	case *ast.DummynetDef:
		r.dummynetDef(s)
	case *ast.Discipline:
		r.discipline(s)
	default:
		r.option(s)
	}
}

// ruleset lowers the expanded file, or returns nil if there were errors. In the source,
// rules come after everything else, because pfctl prints them after it has read the whole
// file.
func (r *resolver) ruleset() *Ruleset {
	if r.faults.HasErrors() {
		return nil
	}
	r.flush()
	r.hoist()
	r.fragmentsListed()
	rs := &Ruleset{Options: r.options, Source: r.out, Rules: make([]*Rule, 0, r.total)}
	f := &flattener{resolver: r, rules: rs.Rules, open: make(map[string]bool), listed: make(map[listOf]bool)}
	rs.Limiters = r.allLimiters()
	rs.Queues = r.queues.trees
	rs.Tables = r.allTables()
	rs.fillTables(r.host)
	rs.Translations = f.translationLists(r.main, func(ast.TranslationKind) bool { return true })
	f.warnOfIdleLists()
	rs.First = FirstRules(f.allEthers(), f.allScrubs(), rs.Translations)
	f.scope(r.main)
	rs.Rules = f.rules
	if all := rs.Sequence(); len(all) > MaxHeld {
		r.faults.Errorf(all[MaxHeld].Origin, "these are %d rules; weir has room for %d", len(all), MaxHeld)
	}
	rs.Anchors = r.allAnchors()
	rs.Fingerprints = r.systems
	r.out.Stmts = r.stmts()
	return rs
}

// suggest reports an error about a word that may be misspelt.
func (r *resolver) suggest(w ast.Word, message string, candidates func() []string) {
	r.faults.Add(diag.Diagnostic{Span: w.Span, Message: message, Suggest: r.nearest(w.Text, candidates)})
}

// maxSuggestions limits how often a misspelt word is compared with known ones. Doing it
// for thousands of words takes seconds.
const maxSuggestions = 100

// nearest returns the word that was probably meant, or "".
func (r *resolver) nearest(word string, candidates func() []string) string {
	if r.suggestions++; r.suggestions > maxSuggestions {
		return ""
	}
	return diag.Nearest(word, candidates())
}

// keysOf returns a function that returns the keys of a map.
func keysOf[V any](m map[string]V) func() []string {
	return func() []string { return sortedKeys(m) }
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
