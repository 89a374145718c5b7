package inquiry

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"weir/internal/vpn/ipsec"
	"weir/internal/vpn/keeper"
)

// SiteFacts are what is known of a tunnel of IPsec. Its probes count the bytes of the interface: packets
// that were encrypted, and those that were decrypted and taken.
type SiteFacts struct {
	Tunnel keeper.Status
	Routes []Route
	Probes []Probe
	Now    time.Time
}

// JudgeSite answers the questions in order, from charon to the network.
func JudgeSite(f *SiteFacts) (all []Finding) {
	say := func(question string, ok bool, format string, args ...any) {
		all = append(all, Finding{question, ok, fmt.Sprintf(format, args...)})
	}
	s := f.Tunnel.Site
	switch {
	case f.Tunnel.Problem != "":
		say("tunnel", false, "%s", f.Tunnel.Problem)
	case f.Tunnel.Engine == "":
		say("tunnel", false, "charon has not been asked yet")
	case s.Note != "":
		say("tunnel", true, "%s, MTU %d; %s", f.Tunnel.Why, f.Tunnel.MTU, s.Note)
	default:
		say("tunnel", true, "%s, MTU %d", f.Tunnel.Why, f.Tunnel.MTU)
	}
	all = append(all, ike(f), keys(f), siteRoutes(f))
	for i := range f.Probes {
		all = append(all, siteProbe(f, &f.Probes[i]), f.Probes[i].mtu(&f.Tunnel))
	}
	if len(f.Probes) == 0 {
		say("probe", false, "nothing was asked: there is no interface, or no address is known (name one behind the peer with --to)")
	}
	return slices.DeleteFunc(all, func(f Finding) bool { return f.Question == "" })
}

// siteErrorAge is how old what went wrong may be to be the reason: charon tries for almost three minutes.
const siteErrorAge = 4 * time.Minute

// reason returns what went wrong of late, or "".
func reason(f *SiteFacts) string {
	s := f.Tunnel.Site
	if s.Error == "" || f.Now.Sub(s.ErrorTime) > siteErrorAge {
		return ""
	}
	return s.Error
}

// ike says whether both ends know each other, and else why not.
func ike(f *SiteFacts) Finding {
	s, why := f.Tunnel.Site, reason(f)
	i := s.Speaking()
	finding := func(ok bool, format string, args ...any) Finding {
		return Finding{"IKE", ok, fmt.Sprintf(format, args...)}
	}
	switch {
	case i != nil && i.Established():
		return finding(true, "%s [%s] knows us as %s, for %s, %s", i.Remote, i.RemoteID, i.LocalID, i.Age, i.Algorithms)
	case why != "":
		return finding(false, "%s", why)
	case i != nil:
		return finding(false, "a connection with %s is being made: it has not answered, or not yet (UDP 500 and 4500, both directions, here and on the way)", i.Remote)
	case s.Passive:
		return finding(false, "the peer %s has to begin, and has not come: nobody is there, or UDP 500 and 4500 are blocked here or on the way", s.DstID)
	}
	return finding(false, "there is no connection with %s, and nothing is known to be wrong: weir tries again within a minute", s.Peer)
}

// slack is for charon, which tells whole seconds.
const slack = 2

// keys says whether there are keys for packets to all networks, and else why not.
func keys(f *SiteFacts) Finding {
	s := f.Tunnel.Site
	up := s.Up()
	finding := func(ok bool, format string, args ...any) Finding {
		return Finding{"keys", ok, fmt.Sprintf(format, args...)}
	}
	if up == nil {
		switch i, why := s.Speaking(), reason(f); {
		case i == nil || !i.Established():
			return finding(false, "there are none: the ends do not know each other")
		case why != "" && !s.ErrorTime.Before(f.Now.Add(-time.Duration(i.Age+slack)*time.Second)): // since they know each other
			return finding(false, "there are none: %s", why)
		}
		return finding(false, "there are none, though the ends know each other: the peer has removed them, or refuses (networks, algorithms)")
	}
	var missing []string
	for _, n := range s.Networks {
		if !up.Covers(n) {
			missing = append(missing, n.String())
		}
	}
	if missing != nil {
		return finding(false, "the peer has agreed to %s only; nothing goes to %s: compare from and to with its own", agreed(up), strings.Join(missing, " "))
	}
	if s.Missing != nil {
		return finding(false, "there are none, or not all, from %s: compare from and to with the peer's own", strings.Join(s.Missing, ", "))
	}
	c, less := &up.Children[0], ""
	for _, n := range s.From {
		switch {
		case up.Takes(n):
		case n.Bits() > 0:
			missing = append(missing, n.String())
		default: // a peer that insists on its networks, and rules and routes decide here
			less = ", from " + agreedFrom(up) + " only"
		}
	}
	if missing != nil {
		return finding(false, "the peer has agreed to packets from %s only; nothing goes from %s: compare from and to with its own", agreedFrom(up), strings.Join(missing, " "))
	}
	protocol := "ESP"
	if c.Encap {
		protocol = "ESP in UDP 4500"
	}
	return finding(true, "%s, for %s, %s%s", protocol, c.Age, c.Algorithms, less)
}

func agreed(i *ipsec.IKE) string {
	return selectors(i, func(c *ipsec.Child) []netip.Prefix { return c.To })
}

func agreedFrom(i *ipsec.IKE) string {
	return selectors(i, func(c *ipsec.Child) []netip.Prefix { return c.From })
}

func selectors(i *ipsec.IKE, of func(c *ipsec.Child) []netip.Prefix) string {
	var all []string
	for j := range i.Children {
		for _, p := range of(&i.Children[j]) {
			if text := p.String(); !slices.Contains(all, text) {
				all = append(all, text)
			}
		}
	}
	if all == nil {
		return "parts of networks"
	}
	return strings.Join(all, " ")
}

func siteRoutes(f *SiteFacts) Finding {
	for _, r := range f.Routes {
		if r.Through == "" {
			return Finding{"routes", false, fmt.Sprintf("no route leads to %s", r.Network)}
		}
		if r.Through != f.Tunnel.Interface {
			return Finding{"routes", false, fmt.Sprintf("the route to %s leads through %s, not through %s", r.Network, r.Through, f.Tunnel.Interface)}
		}
	}
	return Finding{"routes", true, fmt.Sprintf("%d of %d networks are reached through %s; the others have no route of weir's", len(f.Routes), len(f.Tunnel.Site.Networks), f.Tunnel.Interface)}
}

// leastEcho is how many bytes an echo request has at least.
const leastEcho = 28

func siteProbe(f *SiteFacts, p *Probe) Finding {
	finding := func(ok bool, format string, args ...any) Finding {
		return Finding{"probe", ok, fmt.Sprintf(format, args...)}
	}
	up := f.Tunnel.Site.Up()
	switch {
	case p.Answered > 0:
		return finding(true, "%s answers %d of %d, in %s", p.To, p.Answered, p.Sent, p.RTT.Round(10*time.Microsecond))
	case up == nil:
		return finding(false, "nothing left for %s: there are no keys", p.To)
	case !up.Covers(netip.PrefixFrom(p.To, p.To.BitLen())):
		return finding(false, "nothing left for %s: the tunnel is for %s", p.To, agreed(up))
	case p.From.IsValid() && !up.Takes(netip.PrefixFrom(p.From, p.From.BitLen())):
		return finding(false, "nothing left for %s: the peer has agreed to packets from %s only, and ours come from %s", p.To, agreedFrom(up), p.From)
	case p.Out < leastEcho:
		return finding(false, "nothing left for %s: the rules here block it at %s", p.To, f.Tunnel.Interface)
	case p.In >= leastEcho:
		return finding(false, "%s does not answer, though %d bytes came from the peer: the host is down or drops echo requests, or the rules here block the answers at %s", p.To, p.In, f.Tunnel.Interface)
	case received(up) == 0 && !encapsulated(up):
		return finding(false, "one way: %d bytes left for %s, and the peer has never sent any packet with these keys. ESP (IP protocol 50) may be blocked on the way while UDP passes: let it pass at both ends, or say encap udp. Else the other end drops them, or has no way back into the tunnel", p.Out, p.To)
	}
	return finding(false, "one way: %d bytes left for %s, and nothing came back. The other end drops them (its rules, its selectors), or has no way back into the tunnel", p.Out, p.To)
}

func received(i *ipsec.IKE) (bytes uint64) {
	for _, c := range i.Children {
		bytes += c.Received
	}
	return bytes
}

func encapsulated(i *ipsec.IKE) bool {
	return slices.ContainsFunc(i.Children, func(c ipsec.Child) bool { return c.Encap })
}

// mtu says how long packets may be. Without an answer it is not known.
func (p *Probe) mtu(t *keeper.Status) Finding {
	switch {
	case p.Largest == 0:
		return Finding{}
	case p.Largest < int(t.MTU):
		advice := "weir measures that again within a minute"
		if t.Fixed {
			advice = fmt.Sprintf("set mtu %d at both ends, or none", max(p.Largest, 1280))
		}
		if t.Site != nil {
			advice = fmt.Sprintf("set mtu %d at both ends", max(p.Largest, 1280))
		}
		return Finding{"MTU", false, fmt.Sprintf("packets of more than %d bytes vanish, in one direction or both, and the interface has %d: %s", p.Largest, t.MTU, advice)}
	}
	return Finding{"MTU", true, fmt.Sprintf("packets of %d bytes, the MTU, go through both ways", p.Largest)}
}
