// Package optimize makes rulesets shorter and orders rules so that pf skips more of them,
// as OpenBSD's pfctl -o basic does. It removes rules that other rules cover, turns the
// addresses of rules that are otherwise the same into a table, and groups rules that ask
// for the same.
//
// Only rules of one superblock are compared. A superblock is a run of neighbours that do
// the same with a packet, so it does not matter which of them a packet matches. In weir,
// the cost of a packet does not depend on the number of rules. So weir never optimizes
// rules that it loads; weir check -o basic prints what pfctl would load.
//
// The package works on expanded rules, whose lists have one element each. Its cost is
// linear in the number of rules.
package optimize
