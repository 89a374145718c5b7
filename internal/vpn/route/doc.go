// Package route has the routes of tunnels. Behind each stands a blackhole of a higher metric. It
// belongs to no interface, so it stays when the tunnel's interface is down or gone: what is meant for
// the tunnel is then dropped, and does not leave by another route in clear.
//
// weir's routes are known by their protocol. Whoever adds the blackholes does so before the rules
// that need them are in force, and removes them after.
package route
