// Package tune sets a Linux host up by the records of package db, and undoes it.
//
// [Host.Plan] compares what is with what the records advise; it changes nothing.
// [Host.Apply] makes a plan true as a transaction: what was found is journaled
// first, each value is read back after it is written, and a failure puts back what
// the transaction had changed. [Host.Revert] restores what the journal holds.
// Keys that the administrator sets, in a file of sysctl.d or by hand since, are
// left to him.
//
// The journal lies in /var/lib/weir, as it has to outlive a restart: the file in
// /etc/sysctl.d that keeps the values does, too. A network namespace does not
// outlive one; its journal lies in /run/weir-tune and nothing is written for the boot.
//
// [OpenVolatile] and [Host.PlanOf] are for weir affinity: the same transactions with a
// journal of their own, of changes that somebody else has planned.
package tune
