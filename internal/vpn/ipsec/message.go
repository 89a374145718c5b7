package ipsec

import "strings"

// explanations tell what lines of charon's log mean for who asks why nothing goes. The first that is
// part of a line counts. Lines that explain nothing are left out.
var explanations = []struct{ part, means string }{
	{"received AUTHENTICATION_FAILED notify", "the peer refuses us: its preshared key or what it thinks of our certificate differs, or it knows no connection for our identity (srcid) with its own (dstid)"},
	{"received NO_PROPOSAL_CHOSEN notify, no CHILD_SA built", "the peer accepts none of our algorithms for packets: compare proposals, and whether it exchanges keys when it renews them (PFS)"},
	{"received NO_PROPOSAL_CHOSEN notify", "the peer accepts none of our algorithms, or expects nobody at our address: compare proposals"},
	{"received TS_UNACCEPTABLE notify", "the peer has no connection for these networks: compare from and to with its own"},
	{"received INVALID_SYNTAX notify", "the peer cannot read what we send: with preshared keys, they may differ"},
	{"MAC mismatched", "the peer has another preshared key"},
	{"no shared key found for", "charon has no preshared key for these identities: the peer says that it is somebody else than dstid"},
	{"no private key found for", "charon has no private key for our identity"},
	{"no issuer certificate found for", "nobody whom we trust has signed the peer's certificate, or an intermediate certificate is missing there: see ca file"},
	{"is not trusted", "the peer's certificate is signed by somebody whom we do not trust: see ca file"},
	{"no trusted", "the peer has no certificate that we trust for its identity: see ca file and dstid"},
	{"certificate invalid (valid from", "the peer's certificate is not good today"},
	{"certificate was revoked", "the peer's certificate was revoked"},
	{"peer not authenticated by CA", "the peer's certificate is not signed by our ca file"},
	{"constraint check failed: identity", "the peer is somebody else than dstid"},
	{"received IDr", "the peer wants to speak with somebody else than srcid"},
	{"no matching peer config found", "the peer gives, or asks for, another identity than the rules have: compare dstid and srcid"},
	{"no alternative config found", "the peer is not who dstid says, or shows it in another way"},
	{"no IKE config found for", "somebody came from an address that no tunnel expects"},
	{"received proposals unacceptable", "the peer offers no algorithms that we accept: compare proposals"},
	{"no acceptable proposal found", "the peer offers no algorithms that we accept for packets: compare proposals, and whether it exchanges keys when it renews them (PFS)"},
	{"no acceptable traffic selectors found", "what the peer offers has nothing in common with from and to"},
	{"traffic selectors", "what the peer offers has nothing in common with from and to"},
	{"unable to install", "the kernel takes no keys: it lacks ESP, the algorithm or the xfrm interface"},
	{"unable to allocate SPIs from kernel", "the kernel takes no keys: it lacks IPsec"},
	{"unable to resolve", "the name of the peer has no address"},
	{"peer not responding", "the peer does not answer: nobody is there, or UDP 500 and 4500 are blocked on the way"},
	{"retransmit 2 of request", "the peer does not answer: nobody is there, or UDP 500 and 4500 are blocked on the way"},
	{"giving up after", "the peer does not answer any more"},
	{"no socket implementation registered", "charon cannot open its UDP ports"},
	{"error writing to socket", "packets do not leave: no route, or the rules block them"},
}

// explain returns what a line of charon's log means, or "".
func explain(line string) string {
	for _, e := range explanations {
		if strings.Contains(line, e.part) {
			return e.means
		}
	}
	return ""
}
