// Package advertise announces prefixes, a router and name servers to the hosts of a link, by router
// advertisements (RFC 4861, RFC 8106), as a home's router has to (RFC 9096).
//
// An [Advertiser] has no socket and no clock; [Run] drives one on an interface.
package advertise
