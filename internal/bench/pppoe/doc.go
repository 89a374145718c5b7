// Package pppoe measures what a PPPoE session costs a router that forwards: weir with a session of
// its own client on the wire to the internet, beside weir without one.
package pppoe
