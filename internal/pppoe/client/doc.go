// Package client keeps a PPPoE session up: it finds a concentrator, negotiates, watches the
// session and makes a new one when it ends.
//
// A [Machine] is the whole of it without sockets and without a clock: frames and times go in,
// frames and [Event]s come out. [Run] drives one with sockets of a network interface. The
// packets of the session, IPv4 and IPv6, are not its business: it says between which
// addresses and with which number the session is, and the data path does the rest.
package client
