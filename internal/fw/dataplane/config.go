package dataplane

import (
	"weir/internal/fw/bpfload"
	"weir/internal/fw/ruleset"
)

// A Config says what Build makes.
type Config struct {
	// Netns is the file of the network namespace whose interfaces are meant
	// ("/run/netns/NAME", "/proc/PID/ns/net"); "": that of the process.
	Netns string
	// Dir is the namespace's folder in the bpffs (see Folder). It need not
	// exist; Commit makes it.
	Dir string
	// Program is the compiled ruleset.
	Program *ruleset.Program
	// Options are the set statements: timeouts, limits, implicit passes.
	Options ruleset.Options
	// RuleBase is the global id of rule 0: what NextRuleBase returned before
	// the texts of these rules were stored under it.
	RuleBase uint32
	// XDP says that an interface is going to have the XDP hook. Where it is not
	// said the hook's programs are loaded when the first such comes.
	XDP bool
	// Unloaded says that Program is the built-in set: blocks count as "unloaded".
	Unloaded bool
	// RandomSeed makes the choice of NAT ports repeatable, for tests. 0: from
	// the kernel.
	RandomSeed uint32
	// HashSeed keys the tuple table where there is none to be kept, for tests.
	// 0: random.
	HashSeed uint64
	// MarkBlind has routes looked up without marks, as before Linux 6.10, for tests.
	MarkBlind bool
	// Room is how many rules there is room for beyond Program's, for tests that
	// put one ruleset after another into the same generation.
	Room int
	// Frozen leaves the garbage collection unarmed: the clock stands still until a
	// test sets it, and no state is swept.
	Frozen bool

	specs func() ([]*bpfload.Spec, error) // nil: loadSpecs; tests may have smaller ones
}
