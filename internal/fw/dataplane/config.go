package dataplane

import (
	"weir/internal/fw/bpfload"
	"weir/internal/fw/ruleset"
)

// A Config says what Build makes.
type Config struct {
	// Netns is the file of the network namespace of the interfaces
	// ("/run/netns/NAME", "/proc/PID/ns/net"). "" is the namespace of the process.
	Netns string
	// Dir is the namespace's folder in the bpffs (see Folder). If it does not exist,
	// Commit makes it.
	Dir string
	// Program is the compiled ruleset.
	Program *ruleset.Program
	// Options holds the set statements: timeouts, limits, implicit passes.
	Options ruleset.Options
	// RuleBase is the global id of rule 0. NextRuleBase returned it before the texts
	// of these rules were stored under it.
	RuleBase uint32
	// XDP says that an interface will use the XDP hook. Otherwise the hook's programs
	// are loaded when the first such interface comes.
	XDP bool
	// Unloaded says that Program is the built-in ruleset. Its blocks count as
	// "unloaded".
	Unloaded bool
	// Spread says that frames of some interface may be handed to other cores.
	Spread bool
	// Flows says that collectors hear of states that rules with pflow made.
	Flows bool
	// RandomSeed makes the choice of NAT ports repeatable, for tests. 0 takes a seed
	// from the kernel.
	RandomSeed uint32
	// HashSeed keys a new tuple table, for tests. 0 takes a random seed.
	HashSeed uint64
	// MarkBlind looks up routes without marks, as before Linux 6.10, for tests.
	MarkBlind bool
	// Room is how many rules fit beyond Program's. It is for tests that load several
	// rulesets into the same generation.
	Room int
	// Frozen leaves the garbage collection off. The clock stands still until a test
	// sets it, and no state expires.
	Frozen bool

	specs func() ([]*bpfload.Spec, error) // nil: loadSpecs; tests may have smaller ones
	later bool                            // the hooks' programs are loaded when a test runs them
}
