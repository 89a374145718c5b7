// Package discovery speaks the discovery stage of PPPoE (RFC 2516) with the tag for larger
// packets (RFC 4638): the codec of its packets, and what a client does to find a
// concentrator and get a session.
//
// It has no sockets and no clock. A [Client] is given the frames that arrive and the time,
// and its caller sends what [Client.Take] returns.
package discovery
