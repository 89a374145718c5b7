// Package lab builds small networks out of network namespaces: hosts joined by
// veth pairs, with addresses, routes and offloads as a real network would have
// them. The demo, the benchmark and the tests run their real programs in it;
// "weir lab" gives it to the user.
//
// Nothing outside the namespaces of a lab is touched: pairs are made inside
// them, and sysctls are set in them. A lab is known by its name only, so a
// later process can open or remove what an earlier one left.
package lab
