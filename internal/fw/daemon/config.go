package daemon

import (
	"log/slog"

	"weir/internal/fw/rundir"
	"weir/pf/source"
)

// DefaultFile is the rule file of `weir run` without -f.
const DefaultFile = "/etc/weir/weir.conf"

// DefaultManagement is the TCP port of the box that stays open while nothing is loaded.
const DefaultManagement = 22

// Config holds the options of `weir run`.
type Config struct {
	Folder     rundir.Folder  // run folder of this network namespace
	File       string         // rule file
	Macros     []source.Macro // set on the command line
	Without    source.Without // what the file may say although weir ignores it
	Optional   bool           // if File is missing, keep the rules in force; with OrBlock, use the built-in ones if there are none
	OrBlock    bool           // do the same if File does not load
	NoDNS      bool           // look up hosts in File on this machine only
	Mode       Mode
	Prefetch   Prefetch
	Steer      bool   // one core goes on with all packets of a tree that the kernel holds
	Management uint16 // port of the built-in ruleset
	LoseStates bool   // allow losing connections if the states of another version do not convert
	// Ask tells the administrator what would happen and asks whether to go on. If it
	// is nil, nobody can be asked.
	Ask     func(what string) bool
	Version string
	// Log receives the daemon's messages. Faults in a rule file are attributes:
	// "error" is a *diag.Failure, "warnings" is a *diag.List.
	Log *slog.Logger
}
