// Package testbed is the machine and the lab on it that benchmarks measure in:
//
//	lan: near end ──veth── near door :fw: far door ──veth── far end: wan
//
// Only one benchmark has it at a time. A benchmark that was killed leaves
// namespaces, processes and raised limits behind; the next one finds and removes
// them. The package knows no path and sends no frame.
package testbed
