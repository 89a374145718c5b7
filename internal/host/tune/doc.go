// Package tune configures a Linux host by the records of package db, and undoes it.
//
// [Host.Plan] compares the host with the records' advice; it changes nothing.
// [Host.Apply] applies a plan as a transaction: it first writes the found values to a
// journal, reads each value back after writing it, and restores them all after an error.
// [Host.Revert] restores the values in the journal.
package tune
