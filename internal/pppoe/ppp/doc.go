// Package ppp speaks the control protocols of PPP as PPPoE carries them: LCP (RFC 1661),
// PAP (RFC 1334), CHAP with MD5 (RFC 1994), IPCP with name servers (RFC 1332, RFC 1877) and
// IPV6CP (RFC 5072).
//
// It has no sockets and no clock. A [Link] is one end of one session. Its caller gives it
// the PPP frames that arrive and the time, sends what [Link.Take] returns, and calls
// [Link.Tick] at [Link.Next]. A frame is the PPP protocol field, two bytes, and what
// follows it (RFC 1661 2), without the bytes that serial lines put around.
//
// Both ends are the same code: the client proves who it is and is given an address, the
// concentrator asks for the proof and gives the address.
package ppp
