// Package ruleset compiles rules into the contents of the dataplane's maps, so that the
// cost of a new connection does not grow with their number.
//
// It reads the rules of pf/resolve. internal/fw/dataplane writes its Program into the
// maps of bpf/rules/ruleset.h and bpf/rules/pool.h. It is pure: all it knows of the host
// is a Snapshot, which internal/host/netif fills.
//
// Each condition of each rule becomes the spans of numbers that meet it (span.go,
// address.go, protocol.go). In the order of a field's numbers, each stretch that meets
// the same conditions becomes a class (class.go). A class is a vector with one bit for
// each rule. A tree (tree.go) leads from a number to its class. docs/rules.md explains
// and measures this.
//
// Tables (tables.go) hold the entries of tables. An index (tableindex.go) leads from an
// address to the set of tables that contain it. A change of entries is a TableUpdate
// (tableupdate.go). It holds prefixes that override the index, or a new index, and the
// classes of new sets (tableclass.go).
package ruleset
