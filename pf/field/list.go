package field

// Short words for the table.
const (
	yes, no = true, false
	inside  = AsClause
)

// all is the list: first the place of a rule, then its clauses in the order of the
// grammar.
var all = []Field{
	// Path, Word, Rule, Enforced, Anchor, Lint, Optimize
	{"", "number", "Nr", yes, Idle, Effect, Ignored},
	{"", "place", "Pos", yes, Idle, Effect, Ignored},
	{"", "text", "Text", yes, Idle, Effect, Ignored},
	{"", "anchor's path", "Scope", yes, Idle, Effect, Ignored},
	{"Span", "statement", "Stmt", yes, Idle, Effect, Ignored},
	{"Origin", "list element", "Origin", yes, Idle, Effect, Ignored},

	{"Action", "action", "Action", yes, Idle, Effect, Breaks},
	{"Return", "return", "Answer", yes, Apart, Effect, NoMerge},
	{"Return.Kind", "return", "", yes, Apart, Effect, Breaks},
	{"Return.TTL", "ttl", "", yes, Apart, Effect, Breaks},
	{"Direction", "direction", "Direction", yes, Folded, Compared, Asked},
	{"Log", "log", "Log LogAll LogMatches LogUser LogTo", yes, Apart, Effect, Breaks},
	{"Log.Matches", "log (matches)", "", yes, Apart, Effect, inside},
	{"Log.User", "log (user)", "", yes, Apart, Effect, inside},
	{"Log.To", "log (to)", "", yes, Apart, Effect, inside},
	{"Quick", "quick", "Quick", yes, Apart, Effect, Breaks},
	{"Anchor", "anchor", "Anchor", yes, Idle, Narrows, Barrier},
	{"On", "on", "Interface", yes, Folded, Compared, Asked},
	{"On.RDomain", "rdomain", "", yes, Folded, Compared, inside},
	{"Family", "family", "Family", yes, Folded, Compared, Asked},
	{"FamilySpan", "family", "", yes, Idle, Effect, Ignored},
	{"Protos", "proto", "Proto", yes, Folded, Compared, Asked},
	{"From", "from", "From", yes, Folded, Compared, Asked},
	{"From.OS", "os", "OS", yes, Apart, Narrows, NoMerge},
	{"To", "to", "To", yes, Folded, Compared, Asked},
	{"To.OS", "os", "", yes, Apart, Narrows, NoMerge}, // pf has no such

	{"User", "user", "User", yes, Apart, Narrows, NoMerge},
	{"Group", "group", "Group", yes, Apart, Narrows, NoMerge},
	{"Flags", "flags", "Flags", yes, Apart, Compared, Asked},
	{"ICMP", "icmp-type", "ICMP", yes, Apart, Compared, NoMerge},
	{"TOS", "tos", "TOS", yes, Apart, Narrows, NoMerge},
	{"DSCP", "dscp", "DSCP", yes, Apart, Narrows, NoMerge},
	{"State", "state", "State Limits IfBound Exported", yes, Idle, Effect, Breaks}, // the optimizer also looks at its options
	{"Fragment", "fragment", "Fragment", yes, Apart, Narrows, Breaks},
	{"AllowOpts", "allow-opts", "AllowOpts", yes, Apart, Effect, Breaks},
	{"Once", "once", "Once", yes, Apart, Narrows, Breaks},
	{"Label", "label", "Label", yes, Idle, Effect, Barrier},
	{"MoreLabels", "label", "MoreLabels", yes, Apart, Effect, Barrier},
	{"Identifier", "ridentifier", "", yes, Apart, Effect, Breaks},
	{"Tag", "tag", "Tag", yes, Idle, Effect, Breaks},
	{"Tagged", "tagged", "Tagged NotTagged", yes, Folded, Narrows, NoMerge},
	{"ReceivedOn", "received-on", "ReceivedOn", yes, Apart, Narrows, Breaks},
	{"Marked", "marked", "Marked", yes, Apart, Narrows, NoMerge},
	{"Prio", "prio", "Prio", yes, Apart, Narrows, Breaks},
	{"Probability", "probability", "Probability", yes, Apart, Narrows, Barrier},
	{"MaxPktRate", "max-pkt-rate", "MaxPktRate", yes, Apart, Narrows, Breaks},
	{"MaxPktSize", "max-pkt-size", "MaxPktSize", yes, Apart, Narrows, Breaks},
	{"StateLimiter", "state limiter", "StateLimiter", yes, Apart, Narrows, Breaks},
	{"SourceLimiter", "source limiter", "SourceLimiter", yes, Apart, Narrows, Breaks},
	{"RTable", "rtable", "RTable", yes, Apart, Narrows, Breaks},

	{"Set", "set", "", yes, Apart, Effect, Breaks},
	{"Set.Prio", "set prio", "SetPrio", yes, Idle, Effect, inside},
	{"Set.Queue", "set queue", "SetQueue", yes, Idle, Effect, inside}, // its number goes with the packet; no queue is kept yet
	{"Set.TOS", "set tos", "", yes, Apart, Effect, Marks},             // part of Scrub; pfctl takes it for a clause of scrub rules, which are gone
	{"Set.Delay", "set delay", "", no, Apart, Effect, inside},
	{"Set.Mark", "set mark", "SetMark", yes, Apart, Effect, inside},
	{"Dummynet", "dnpipe", "", yes, Idle, Effect, Breaks}, // becomes set queue
	{"Divert", "divert", "Divert", yes, Apart, Narrows, Breaks},
	{"Scrub", "scrub", "Scrub", yes, Idle, Effect, Breaks},
	{"Scrub.NoDF", "scrub (no-df)", "", yes, Idle, Effect, inside},
	{"Scrub.RandomID", "scrub (random-id)", "", yes, Idle, Effect, inside},
	{"Scrub.ReassembleTCP", "scrub (reassemble tcp)", "", yes, Idle, Effect, inside},
	{"Scrub.MinTTL", "scrub (min-ttl)", "", yes, Idle, Effect, Ignored}, // as Set.TOS
	{"Scrub.MaxMSS", "scrub (max-mss)", "", yes, Idle, Effect, Ignored}, // as Set.TOS

	{"Nat", "nat-to", "Nat", yes, Apart, Effect, Breaks},
	{"Rdr", "rdr-to", "Rdr", yes, Apart, Effect, Breaks},
	{"Binat", "binat-to", "", yes, Apart, Effect, Breaks}, // becomes nat-to and rdr-to rules
	{"AfTo", "af-to", "AfTo", yes, Apart, Effect, Breaks},
	{"AfTo.Family", "af-to", "", yes, Apart, Effect, NoMerge},
	{"Route", "route-to", "Route", yes, Apart, Effect, Breaks},

	{"", "ether", "Frame", yes, Idle, Effect, Ignored}, // of ether rules alone
}
