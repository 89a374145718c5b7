// Package optimize makes the rules of a configuration fewer and puts them into
// an order in which pf skips more of them, as OpenBSD's pfctl -o basic does:
// rules that others cover are removed, addresses of rules that are else the
// same become a table, and rules that ask for the same stand together.
//
// Only rules of one superblock are compared: neighbours that do the same with a
// packet, so that it does not matter which of them it meets. What weir does with
// a packet costs the same for any number of rules, so it never optimizes rules
// that it loads; weir check -o basic prints what pfctl would load.
//
// It works on expanded rules, in which each list has one element. Its cost is
// linear in their number.
package optimize
