// Package lab builds small networks from network namespaces: hosts joined by veth pairs,
// with addresses, routes and offloads as in a real network. The demo, the benchmarks and
// the tests run real programs in it; "weir lab" offers it to the user.
//
// Nothing outside the namespaces of a lab is changed: pairs are made and sysctls are set
// inside them. A lab is known only by its name, so a later process can open or remove
// what an earlier one left.
package lab
