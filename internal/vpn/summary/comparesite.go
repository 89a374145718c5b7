package summary

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"weir/internal/vpn/inquiry"
	"weir/internal/vpn/ipsec"
	"weir/pf/identity"
	"weir/pf/resolve"
)

// CompareSite compares what this end of a tunnel has with the summary of the other end. Nothing is said of a
// summary that is not the other end's.
func CompareSite(t *resolve.IKEv2, s *SealedSite, now time.Time) []inquiry.Finding {
	if s.Own(t) {
		return []inquiry.Finding{finding("identities", false, "the summary is that of this end: take the other end's")}
	}
	proof := "preshared key"
	if t.PSKFile == "" {
		proof = "certificates"
	}
	switch err := s.seal.Check(t, s.body, now); {
	case errors.Is(err, ipsec.ErrChanged):
		return []inquiry.Finding{finding("signature", false, "%v", err)}
	case err != nil:
		return []inquiry.Finding{finding(proof, false, "%v", err)}
	}
	leaf, err := ipsec.Leaf(t)
	if err != nil {
		return []inquiry.Finding{finding(proof, false, "%v", err)}
	}
	signed := finding(proof, true, "%s has signed the summary, %s ago", t.DstID, now.Sub(s.Time).Round(time.Second))
	return append([]inquiry.Finding{signed}, s.compare(t, leaf, s.seal.Leaf())...)
}

// compare compares what an end has with what the other one says. Both have certificates, or neither.
func (s *Site) compare(t *resolve.IKEv2, ours, theirs []byte) []inquiry.Finding {
	return []inquiry.Finding{
		identities(t, s, ours, theirs), proposals(t, s), selectors(t, s), siteNetworks(t, s), endpoints(t, s), lifetimes(t, s),
		finding("MTU", t.MTU == s.MTU, "here %d, there %d", t.MTU, s.MTU),
	}
}

// identities compares who each end says that it is with whom the other one expects. charon does so, too.
func identities(t *resolve.IKEv2, s *Site, ours, theirs []byte) inquiry.Finding {
	var wrong []string
	one := func(who, srcID, local string, leaf []byte, other, expects string) string {
		is, known, err := ipsec.Calls(srcID, local, leaf)
		_, address := identity.Parse(expects).Address()
		switch {
		case err != nil:
			wrong = append(wrong, fmt.Sprintf("%s has no srcid, and %v", who, err))
		case !known && address:
			return "unknown (it is the address that packets leave from; " + other + " expects " + expects + ")"
		case srcID == "" && leaf == nil && !address:
			wrong = append(wrong, fmt.Sprintf("%s has no srcid, so it gives its address, and %s expects %s", who, other, expects))
		case !is.Same(identity.Parse(expects)) && srcID == "":
			wrong = append(wrong, fmt.Sprintf("%s has no srcid, so it says that it is %s, and %s expects %s", who, is, other, expects))
		case !is.Same(identity.Parse(expects)):
			wrong = append(wrong, fmt.Sprintf("%s says that it is %s, and %s expects %s", who, is, other, expects))
		}
		return is.String()
	}
	here := one("this end", t.SrcID, t.Local, ours, "the other end", s.DstID)
	there := one("the other end", s.SrcID, s.Local, theirs, "this end", t.DstID)
	if wrong != nil {
		return finding("identities", false, "%s", strings.Join(wrong, "; "))
	}
	return finding("identities", true, "here %s, there %s", here, there)
}

func proposals(t *resolve.IKEv2, s *Site) inquiry.Finding {
	ike, esp := ipsec.Algorithms(t.Proposals)
	forIKE, forPackets := ipsec.Common(ike, s.IKE), ipsec.Common(esp, s.ESP)
	switch {
	case forIKE == "":
		return finding("proposals", false, "no algorithms for IKE in common: here %s, there %s", strings.Join(ike, ", "), strings.Join(s.IKE, ", "))
	case forPackets == "":
		return finding("proposals", false, "no algorithms for packets in common: here %s, there %s", strings.Join(esp, ", "), strings.Join(s.ESP, ", "))
	}
	return finding("proposals", true, "IKE %s, packets %s", forIKE, forPackets)
}

// overlap returns what two lists of networks have in common.
func overlap(a, b []netip.Prefix) (all []netip.Prefix) {
	for _, x := range a {
		for _, y := range b {
			if !x.Overlaps(y) {
				continue
			}
			narrow := x
			if y.Bits() > x.Bits() {
				narrow = y
			}
			if !slices.Contains(all, narrow) {
				all = append(all, narrow)
			}
		}
	}
	return all
}

// selectors says what both ends will agree upon: the peer takes away what it does not have.
func selectors(t *resolve.IKEv2, s *Site) inquiry.Finding {
	from, to := overlap(t.From, s.To), overlap(t.To, s.From)
	var wrong []string
	lacks := func(networks, agreed []netip.Prefix, format string) {
		for _, n := range networks {
			if !slices.ContainsFunc(agreed, func(a netip.Prefix) bool { return a.Bits() <= n.Bits() && a.Contains(n.Addr()) }) {
				wrong = append(wrong, fmt.Sprintf(format, n))
			}
		}
	}
	switch {
	case from == nil || to == nil:
		return finding("selectors", false, "nothing in common: here from %s to %s; there to %s from %s", text(t.From), text(t.To), text(s.To), text(s.From))
	default:
		lacks(t.Networks, to, "%s is behind the other end here, and its from leaves it out")
		lacks(s.Networks, from, "%s is behind this end there, and our from leaves it out")
	}
	if wrong != nil {
		return finding("selectors", false, "%s", strings.Join(wrong, "; "))
	}
	return finding("selectors", true, "from %s to %s", text(from), text(to))
}

func siteNetworks(t *resolve.IKEv2, s *Site) inquiry.Finding {
	var wrong []string
	for _, n := range t.Networks {
		if n.Bits() > 0 && slices.Contains(s.Networks, n) {
			wrong = append(wrong, fmt.Sprintf("both ends say that %s is behind the other one", n))
		}
	}
	for _, a := range t.Addresses {
		if slices.ContainsFunc(s.Addresses, func(b netip.Prefix) bool { return b.Addr() == a.Addr() }) {
			wrong = append(wrong, fmt.Sprintf("both ends have the address %s", a.Addr()))
		}
	}
	if wrong != nil {
		return finding("networks", false, "%s", strings.Join(wrong, "; "))
	}
	return finding("networks", true, "this end sends %s there, the other end sends %s here", text(t.Networks), text(s.Networks))
}

// endpoints says who can begin.
func endpoints(t *resolve.IKEv2, s *Site) inquiry.Finding {
	elsewhere := func(peer, local string) bool {
		a, err := netip.ParseAddr(peer)
		b, err2 := netip.ParseAddr(local)
		return err == nil && err2 == nil && a != b
	}
	switch {
	case t.Passive && s.Passive:
		return finding("endpoints", false, "neither end begins: both are passive, or do not know where the other one is")
	case elsewhere(t.Peer, s.Local):
		return finding("endpoints", false, "this end looks for the other one at %s, and that is at %s: right only if NAT on the way changes it", t.Peer, s.Local)
	case elsewhere(s.Peer, t.Local):
		return finding("endpoints", false, "the other end looks for this one at %s, and this is at %s: right only if NAT on the way changes it", s.Peer, t.Local)
	case s.Passive:
		return finding("endpoints", true, "this end begins, at %s", t.Peer)
	case t.Passive:
		return finding("endpoints", true, "the other end begins, at %s", s.Peer)
	}
	return finding("endpoints", true, "either end begins: this one at %s, the other one at %s", t.Peer, s.Peer)
}

// lifetimes need not be the same: each end renews the keys when its own time has come.
func lifetimes(t *resolve.IKEv2, s *Site) inquiry.Finding {
	took := func(seconds uint32) time.Duration { return time.Duration(seconds) * time.Second }
	return finding("lifetimes", true, "packets %s here, %s there; IKE %s here, %s there: the shorter one counts", took(t.Lifetime), took(s.Lifetime), took(t.IKELifetime), took(s.IKELifetime))
}
