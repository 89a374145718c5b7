package resolve

import (
	"cmp"
	"encoding/json"
	"hash/fnv"
	"net/netip"
	"slices"

	"weir/pf/ast"
	"weir/pf/identity"
	"weir/pf/token"
)

// IKEv2 is an IPsec tunnel.
type IKEv2 struct {
	Name        string
	ID          uint32 // of the xfrm interface
	Addresses   []netip.Prefix
	MTU         uint16
	Local       string // address; empty: any
	Peer        string // address or name; empty: the peer comes from anywhere
	Passive     bool   // the peer begins
	SrcID       string // empty: the subject of the certificate, or the address that is used
	DstID       string
	PSKFile     string   // of the preshared key; empty: there are certificates
	Certificate string   // the file with that of this end
	KeyFile     string   // of its private key
	CAFiles     []string // who has signed the peer's
	From, To    []netip.Prefix
	Networks    []netip.Prefix // behind the peer
	Routes      []netip.Prefix // those of Networks that routes lead to
	Proposals   string         // modern, suite-b or compatible
	Lifetime    uint32         // seconds, of the keys for packets
	IKELifetime uint32
	DPD         uint16 // seconds; 0: none
	Encap       bool   // ESP in UDP always
	PerCPU      bool   // keys for each core
	PerPair     bool   // keys for each pair of a network of From and one of To
}

// What IPsec tunnels have unless their statement says so.
const (
	ipsecMTU         = 1400 // 1,500 less the headers of IPv6, UDP and ESP with AES-CBC and SHA-256
	ipsecProposals   = "modern"
	ipsecLifetime    = 3600
	ipsecIKELifetime = 4 * 3600
	ipsecDPD         = 30
)

// Tunnels are all tunnels between sites.
type Tunnels struct {
	WireGuard []WireGuard `json:"wireguard,omitempty"`
	IKEv2     []IKEv2     `json:"ikev2,omitempty"`
}

// UnmarshalJSON reads tunnels. Earlier versions have written those of WireGuard alone.
func (t *Tunnels) UnmarshalJSON(text []byte) error {
	*t = Tunnels{}
	if len(text) > 0 && text[0] == '[' {
		return json.Unmarshal(text, &t.WireGuard)
	}
	type plain Tunnels
	return json.Unmarshal(text, (*plain)(t))
}

// Tunnels returns all tunnels between sites.
func (o *Options) Tunnels() Tunnels { return Tunnels{WireGuard: o.WireGuard, IKEv2: o.IKEv2} }

// mostPairs is how many pairs of networks may have keys of their own.
const mostPairs = 64

// everything is what a tunnel without networks is for.
var everything = []netip.Prefix{netip.PrefixFrom(netip.IPv4Unspecified(), 0), netip.PrefixFrom(netip.IPv6Unspecified(), 0)}

// ikev2 checks an IPsec tunnel and stores it.
func (r *resolver) ikev2(s *ast.IKEv2) {
	if r.scope != r.main {
		r.faults.Errorf(s.Span, "ikev2 tunnels are not defined in an anchor")
		return
	}
	if first, ok := r.tunnelNamed(s.Name.Text); ok {
		r.twice(s.Name.Span, "another tunnel has the name "+s.Name.Text, first)
		return
	}
	o := IKEv2{
		Name: s.Name.Text, ID: InterfaceID(s.Name.Text), MTU: ipsecMTU, Local: textOf(s.Local), Peer: textOf(s.Peer), Passive: s.Passive || s.Peer == nil,
		SrcID: textOf(s.SrcID), DstID: cmp.Or(textOf(s.DstID), textOf(s.Peer)), PSKFile: textOf(s.PSK), Certificate: textOf(s.Certificate), KeyFile: textOf(s.Key),
		Proposals: cmp.Or(textOf(s.Proposals), ipsecProposals), Lifetime: countOr(s.Lifetime, ipsecLifetime), IKELifetime: countOr(s.IKELifetime, ipsecIKELifetime),
		DPD: uint16(countOr(s.DPD, ipsecDPD)), Encap: s.Encap, PerCPU: s.PerCPU, PerPair: s.PerPair,
	}
	r.peerHost(s.Peer, false)
	if s.MTU != nil {
		o.MTU = uint16(s.MTU.N)
	}
	if s.NoDPD {
		o.DPD = 0
	}
	for i := range s.CAs {
		o.CAFiles = append(o.CAFiles, s.CAs[i].Text)
	}
	for i := range s.Addresses {
		r.hostAddress(&s.Addresses[i])
		o.Addresses = append(o.Addresses, s.Addresses[i].Prefix)
	}
	switch {
	case s.PerPair && s.PerCPU:
		r.faults.Errorf(s.Span, "per-pair and per-cpu are not for the same tunnel")
	case s.PerPair && (s.From == nil || s.To == nil):
		r.faults.Errorf(s.Span, "per-pair needs from and to: there are keys for each network of one with each of the other")
	case s.PerPair && len(s.From)*len(s.To) > mostPairs:
		r.faults.Errorf(s.Span, "with per-pair a tunnel has at most %d pairs of networks", mostPairs)
	}
	r.alike(s, &o)
	r.traffic(s, &o)
	r.options.IKEv2 = append(r.options.IKEv2, o)
	r.ipsec = append(r.ipsec, s)
	if !s.NoMSS {
		r.clamp(s.Span, s.Name, uint32(o.MTU))
	}
	printed := *s
	printed.NoMSS = true // the rules are printed
	r.out.Stmts = append(r.out.Stmts, &printed)
}

func countOr(n *ast.Count, other uint32) uint32 {
	if n == nil {
		return other
	}
	return n.N
}

// InterfaceID makes the number by which the kernel knows what belongs to an xfrm interface. People
// give theirs small numbers, so these are large.
func InterfaceID(name string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(name))
	return h.Sum32() | 1<<31
}

// tunnelNamed returns where a tunnel of that name is defined.
func (r *resolver) tunnelNamed(name string) (token.Span, bool) {
	for _, s := range r.tunnels {
		if s.Name.Text == name {
			return s.Name.Span, true
		}
	}
	for _, s := range r.ipsec {
		if s.Name.Text == name {
			return s.Name.Span, true
		}
	}
	return token.Span{}, false
}

// hostAddress refuses what is no address of a host.
func (r *resolver) hostAddress(a *ast.Network) {
	if !a.Addr().IsGlobalUnicast() && !a.Addr().IsLinkLocalUnicast() {
		r.faults.Errorf(a.Span, "%s is no address of a host", a.Addr())
	}
}

// alike refuses a tunnel that the daemon for IKE could not tell from another one.
func (r *resolver) alike(s *ast.IKEv2, o *IKEv2) {
	for i := range r.options.IKEv2 {
		other := &r.options.IKEv2[i]
		samePeer := identity.Parse(other.DstID).Same(identity.Parse(o.DstID))
		switch {
		case other.ID == o.ID:
			r.twice(s.Name.Span, "the names "+other.Name+" and "+o.Name+" give the same number to the xfrm interface: take another name", r.ipsec[i].Name.Span)
		case samePeer && other.Local == o.Local && (other.Peer == o.Peer || other.Peer == "" || o.Peer == ""):
			r.twice(s.Span, "two tunnels lead to the same peer "+o.DstID+": give each another dstid or another local address", r.ipsec[i].Span)
		case samePeer && other.PSKFile != o.PSKFile && other.PSKFile != "" && o.PSKFile != "":
			r.twice(s.Span, "a preshared key belongs to who the peer is: two tunnels to "+o.DstID+" need the same psk file, or another dstid each", r.ipsec[i].Span)
		}
	}
}

// traffic finds what a tunnel is for, and where its routes lead.
func (r *resolver) traffic(s *ast.IKEv2, o *IKEv2) {
	networks := s.Networks
	if networks == nil {
		networks = s.To
	}
	for i := range networks {
		n := &networks[i]
		switch {
		case slices.Contains(o.Networks, n.Prefix):
			r.faults.Errorf(n.Span, "%s is given twice", n)
			continue
		case s.To != nil && !slices.ContainsFunc(s.To, func(t ast.Network) bool { return t.Bits() <= n.Bits() && t.Contains(n.Addr()) }):
			r.faults.Errorf(n.Span, "%s lies in no network of to: the tunnel is not for it", n)
		}
		o.Networks = append(o.Networks, n.Prefix)
		if s.NoRoute || n.Bits() == 0 {
			continue
		}
		r.reached(o.Name, n)
		o.Routes = append(o.Routes, n.Prefix)
		if a, err := netip.ParseAddr(o.Peer); err == nil && n.Contains(a) {
			r.faults.Errorf(s.Peer.Span, "the peer %s lies in %s, which is reached through this tunnel; no route leaves the routes to you", a, n)
		}
	}
	r.selectors(s, o)
	for i := range networks {
		if n := &networks[i]; s.To == nil && !hasFamily(o.To, n.Addr().Is6()) {
			r.faults.Errorf(n.Span, "from has no network of the address family of %s: the tunnel is not for it", n)
		}
	}
}

// selectors finds what both ends have to agree upon. Without from or to, it is everything of the
// address families that the statement has networks of.
func (r *resolver) selectors(s *ast.IKEv2, o *IKEv2) {
	o.From, o.To = r.distinct(s.From), r.distinct(s.To)
	families := slices.Concat(o.From, o.To)
	if families == nil {
		families = slices.Concat(o.Networks, o.Addresses)
	}
	all := everything
	if len(families) > 0 {
		all = slices.DeleteFunc(slices.Clone(everything), func(e netip.Prefix) bool { return !hasFamily(families, e.Addr().Is6()) })
	}
	if o.From == nil {
		o.From = all
	}
	if o.To == nil {
		o.To = all
	}
	if hasFamily(o.From, true) != hasFamily(o.To, true) || hasFamily(o.From, false) != hasFamily(o.To, false) {
		r.faults.Errorf(s.Span, "from and to have networks of different address families, so the tunnel is for nothing of one of them")
	}
}

// distinct returns networks, none of which may be there twice.
func (r *resolver) distinct(networks []ast.Network) (all []netip.Prefix) {
	for i := range networks {
		n := &networks[i]
		if slices.Contains(all, n.Prefix) {
			r.faults.Errorf(n.Span, "%s is given twice", n)
			continue
		}
		all = append(all, n.Prefix)
	}
	return all
}

func hasFamily(all []netip.Prefix, six bool) bool {
	return slices.ContainsFunc(all, func(p netip.Prefix) bool { return p.Addr().Is6() == six })
}
