// Package ipsec has the tunnels of weir's ikev2 statements be up, by strongSwan's charon: the one that
// the machine runs, over its control socket (vici). charon does IKE, and the kernel encrypts. Each
// tunnel is a connection of charon with one child, whose packets belong to an xfrm interface; the
// interface, its addresses and its routes are the keeper's.
//
// charon forgets what it was told when it ends, and swanctl unloads what is not in its own files. So
// each second this package compares what charon has with what there is to be, and loads what is
// missing. It begins connections itself, and again after they have ended: charon's own actions for that
// act on some ends only. It touches nothing whose name does not begin with "weir-", and no private key
// but those that it has loaded.
package ipsec
