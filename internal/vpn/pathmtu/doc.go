// Package pathmtu finds the largest packet that goes through a tunnel to a peer, by packets of that size which no
// router cuts (RFC 4821 and RFC 8899). No message of ICMP from the path is needed. A host behind the peer, or the peer
// itself, answers echo requests; where nobody does, a peer of any kind still answers data with a keepalive.
package pathmtu
