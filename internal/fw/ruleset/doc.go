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
// Tables (tables.go, tablechange.go) keep what tables hold. Compile takes the
// trees of all their entries. Entries can be changed one by one: what changed
// overrides the trees until they are made anew. The dataplane does not take
// overrides yet: there a changed table is a load.
package ruleset
