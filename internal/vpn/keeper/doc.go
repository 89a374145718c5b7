// Package keeper keeps the tunnels up that the rules in force have: it is weir vpn run. The daemon
// writes which these are into a file of its run folder; this process reads the file whenever it
// changes. So neither needs the other to live, and a restart of one does not touch the other.
//
// For each tunnel, in this order: the blackholes of its networks (which the daemon has added before),
// the interface with its engine, its addresses, the peers, and last the routes. When the process ends
// all of these stay, so nothing leaves in clear.
package keeper
