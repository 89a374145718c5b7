// Package inquiry finds out why nothing goes through a tunnel: from what its engine knows of the peer,
// from the routes, and by echo requests through the tunnel, of several sizes. Judge is a pure function
// of what was found; Probe sends.
package inquiry
