// Package rundir is weir's run folder of one network namespace: its paths, its lock and
// the records that the daemon leaves there. Records are replaced in one step, so they can
// be read at any time, with or without a daemon.
package rundir
