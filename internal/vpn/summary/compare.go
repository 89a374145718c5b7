package summary

import (
	"crypto/hmac"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"weir/internal/vpn/inquiry"
	"weir/internal/vpn/key"
)

// Compare compares what an end has with the summary of the other end. Nothing is said of a summary that is not the
// other end's.
func (e *End) Compare(s *Signed, now time.Time) (all []inquiry.Finding) {
	say := func(question string, ok bool, format string, args ...any) bool {
		all = append(all, inquiry.Finding{Question: question, OK: ok, Answer: fmt.Sprintf(format, args...)})
		return ok
	}
	ours, theirs := e.Private.Public(), e.Peer.Key
	switch {
	case s.From == ours:
		return append(all, Own())
	case s.From.String() != theirs:
		say("keys", false, "the other end has the public key %s, and the rules have %s for peer %s", s.From, theirs, e.Peer.Name)
		return all
	case s.To != ours:
		say("keys", false, "the other end has the public key %s for this one, and that is %s", s.To, ours)
		return all
	case !s.genuine(e.Private):
		say("signature", false, "the summary was changed, or somebody else has written it")
		return all
	}
	when := fmt.Sprintf("%s ago", now.Sub(s.Time).Round(time.Second))
	if ahead := s.Time.Sub(now).Round(time.Second); ahead > 0 {
		when = fmt.Sprintf("by a clock that is %s ahead", ahead)
	}
	say("signature", true, "peer %s has signed the summary, %s", e.Peer.Name, when)
	all = append(all, e.preshared(s), e.networks(s), e.ports(s), e.mtu(s), e.reach(s))
	if e.Peer.Wide > 0 || s.Wide > 0 {
		all = append(all, e.wide(s))
	}
	return all
}

// Own is what there is to say of a summary that is this end's own.
func Own() inquiry.Finding {
	return finding("keys", false, "the summary is that of this end: take the other end's")
}

func finding(question string, ok bool, format string, args ...any) inquiry.Finding {
	return inquiry.Finding{Question: question, OK: ok, Answer: fmt.Sprintf(format, args...)}
}

func (e *End) preshared(s *Signed) inquiry.Finding {
	const question = "preshared key"
	is := func(k key.Secret) bool {
		p, err := proof(e.Private, s.From, s.From, k)
		return err == nil && hmac.Equal(p, s.Preshared)
	}
	switch none := e.Preshared.IsZero(); {
	case is(e.Preshared) && none:
		return finding(question, true, "neither end has one")
	case is(e.Preshared):
		return finding(question, true, "both ends have the same")
	case none:
		return finding(question, false, "the other end has one for this, and this end has none for peer %s", e.Peer.Name)
	case is(key.Secret{}):
		return finding(question, false, "this end has one for peer %s, and the other end has none", e.Peer.Name)
	}
	return finding(question, false, "both ends have one, and they differ")
}

func (e *End) networks(s *Signed) inquiry.Finding {
	var wrong []string
	lack := func(addresses, allowed []netip.Prefix, format string) {
		for _, a := range addresses {
			if !slices.ContainsFunc(allowed, func(n netip.Prefix) bool { return n.Contains(a.Addr()) }) {
				wrong = append(wrong, fmt.Sprintf(format, a.Addr()))
			}
		}
	}
	lack(e.Tunnel.Addresses, s.Allowed, "the other end does not allow this end's address %s")
	lack(s.Addresses, e.Peer.Allowed, "this end does not allow the other end's address %s")
	for _, n := range e.Peer.Allowed {
		if n.Bits() > 0 && slices.Contains(s.Allowed, n) {
			wrong = append(wrong, fmt.Sprintf("both ends say that %s is behind the other one", n))
		}
	}
	if len(wrong) > 0 {
		return finding("networks", false, "%s", strings.Join(wrong, "; "))
	}
	return finding("networks", true, "this end sends %s there, the other end sends %s here", text(e.Peer.Allowed), text(s.Allowed))
}

func text(networks []netip.Prefix) string {
	var all []string
	for _, n := range networks {
		all = append(all, n.String())
	}
	if all == nil {
		return "nothing"
	}
	return strings.Join(all, " ")
}

func (e *End) ports(s *Signed) inquiry.Finding {
	switch {
	case e.Peer.Endpoint != "" && e.Peer.Port != s.Port:
		return finding("ports", false, "this end sends to port %d of %s, and the other end listens on port %d: right only if NAT on the way changes it", e.Peer.Port, e.Peer.Endpoint, s.Port)
	case s.Endpoint != "" && s.PortThere != e.Tunnel.Port:
		return finding("ports", false, "the other end sends to port %d of %s, and this end listens on port %d: right only if NAT on the way changes it", s.PortThere, s.Endpoint, e.Tunnel.Port)
	}
	return finding("ports", true, "this end listens on %d, the other end on %d", e.Tunnel.Port, s.Port)
}

func (e *End) wide(s *Signed) inquiry.Finding {
	const question = "wide"
	switch {
	case s.Wide == 0:
		return finding(question, false, "this end has the link be wide, and the other end does not: it has one port")
	case e.Peer.Wide == 0:
		return finding(question, false, "the other end has the link be wide, and this end does not: it has one port")
	}
	return finding(question, true, "up to %d ports", min(e.Peer.Wide, s.Wide))
}

func (e *End) mtu(s *Signed) inquiry.Finding {
	says := func(mtu uint16) string {
		if mtu == 0 {
			return "measured"
		}
		return fmt.Sprint(mtu)
	}
	var ours uint16
	if e.Tunnel.MTUFixed {
		ours = e.Tunnel.MTU
	}
	ok := ours == 0 || s.MTU == 0 || ours == s.MTU
	return finding("MTU", ok, "here %s, there %s", says(ours), says(s.MTU))
}

// reach says which end can begin.
func (e *End) reach(s *Signed) inquiry.Finding {
	silent := func(who string, keepalive uint16) inquiry.Finding {
		if keepalive > 0 {
			return finding("endpoints", true, "%s begins, and sends keepalives every %d s", who, keepalive)
		}
		return finding("endpoints", true, "%s begins. It sends no keepalives: until it has sent something, it cannot be reached", who)
	}
	switch {
	case e.Peer.Endpoint == "" && s.Endpoint == "":
		return finding("endpoints", false, "neither end has an endpoint of the other: nobody can begin")
	case e.Peer.Endpoint == "":
		return silent("only the other end", s.Keepalive)
	case s.Endpoint == "":
		return silent("only this end", e.Peer.Keepalive)
	}
	return finding("endpoints", true, "either end begins: this one at %s, the other one at %s", e.Peer.Endpoint, s.Endpoint)
}
