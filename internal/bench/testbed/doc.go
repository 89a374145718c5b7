// Package testbed is the machine, and the lab on it, that benchmarks measure in:
//
//	lan: near end ──veth── near door :fw: far door ──veth── far end: wan
//
// Only one benchmark uses it at a time. A killed benchmark leaves namespaces, processes
// and raised limits behind, which the next one finds and removes. The package knows no
// paths and sends no frames.
package testbed
