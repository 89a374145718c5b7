// Package wide has two weirs agree on a link of several ports: on how many there are, and on a key pair for each at each
// end. Offers (offer.go) go inside the first tunnel, whose keys the administrator configured; they have public keys only.
// A Link (link.go) says what to offer, and which lanes there are to be. It knows no sockets and no clock. Probes
// (probe.go) tell whether a lane carries anything.
package wide
