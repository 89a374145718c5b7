// Package failover decides by which of several ways a peer is reached. It is a pure function of what was found out
// and of the time: whoever uses it sends what it asks for.
//
// Whether a way works is found out by the first message of a handshake, which every WireGuard answers.
package failover
