// Package ruleset compiles rules into what the dataplane's maps hold, so that
// the cost of a new connection does not grow with their number.
//
// It stands between pf/resolve, whose rules it reads, and internal/fw/dataplane,
// which writes a Program into the maps of bpf/rules/ruleset.h and bpf/rules/pool.h. It is
// pure: what it knows of the host is a Snapshot that internal/host/netif fills.
//
// Every condition of every rule becomes the spans of numbers that meet it (span.go,
// address.go, protocol.go). Going over a field's numbers in order, each stretch
// that meets the same conditions becomes a class (class.go); a class is a vector
// with one bit for each rule, and a tree (tree.go) leads from a number to its
// class. docs/rules.md explains and measures it.
//
// Tables (tables.go) keep what tables hold. An index (tableindex.go) leads from an
// address to the set of tables that it is in. A change of entries is a TableUpdate
// (tableupdate.go): prefixes that override the index, or a new index, and the
// classes of sets that there were not (tableclass.go).
package ruleset
