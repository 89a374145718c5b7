package daemon

import (
	"log/slog"

	"weir/internal/fw/rundir"
	"weir/pf/source"
)

// DefaultFile is the rule file of weir run without -f.
const DefaultFile = "/etc/weir/weir.conf"

// DefaultManagement is the TCP port that stays open to the box while nothing is
// loaded.
const DefaultManagement = 22

// Config is what weir run was asked for.
type Config struct {
	Folder     rundir.Folder  // run folder of this network namespace
	File       string         // rule file
	Macros     []source.Macro // set from outside
	Optional   bool           // a missing File means the rules in force, or the built-in ones
	OrBlock    bool           // so does one that does not load
	NoDNS      bool           // hosts in File are looked up on this machine only
	Mode       Mode
	Prefetch   Prefetch
	Management uint16 // port of the built-in ruleset
	LoseStates bool   // connections may be lost if the states of another version do not convert
	// Ask asks the administrator whether to go on although what it is told happens; nil:
	// nobody can be asked.
	Ask     func(what string) bool
	Version string
	// Log hears what the daemon has to say. What is wrong or doubtful in a rule file
	// is an attribute: "error" is a *diag.Failure, "warnings" a *diag.List.
	Log *slog.Logger
}
