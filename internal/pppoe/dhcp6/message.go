package dhcp6

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/insomniacslk/dhcp/iana"

	"weir/internal/pppoe/ppp"
)

// longestPrefix is the longest prefix that a link's hosts can make addresses from (RFC 4862).
const longestPrefix = 64

// optionSolMaxRT lets a server slow its clients down (RFC 8415 21.24).
const optionSolMaxRT dhcpv6.OptionCode = 82

// forever is a lifetime without end (RFC 8415 7.7).
const forever = time.Duration(0xffffffff) * time.Second

// answer is what a message of a server says about our prefixes.
type answer struct {
	server     []byte
	preference uint8
	granted    []granted
	dns        []netip.Addr
	t1, t2     time.Duration
	solMaxRT   time.Duration // 0: not given
	refusal    error         // of the server, for all; nil: none
	noBinding  bool          // refusal says that the server does not know what we have
	has        bool          // the message says something about our prefixes
}

// granted is a prefix in an answer. Valid is 0 if it is taken away.
type granted struct {
	prefix           netip.Prefix
	preferred, valid time.Duration
}

// write makes a message. A prefix that is not valid asks for any.
func (c *Client) write(kind dhcpv6.MessageType, server []byte, prefixes []netip.Prefix, now time.Time) []byte {
	id := [3]byte{byte(c.id >> 16), byte(c.id >> 8), byte(c.id)}
	m := &dhcpv6.Message{MessageType: kind, TransactionID: id}
	m.AddOption(raw(dhcpv6.OptionClientID, c.config.DUID))
	if server != nil {
		m.AddOption(raw(dhcpv6.OptionServerID, server))
	}
	elapsed := min(max(now.Sub(c.since), 0), 0xffff*10*time.Millisecond)
	m.AddOption(dhcpv6.OptElapsedTime(elapsed))
	m.AddOption(dhcpv6.OptRequestedOption(dhcpv6.OptionDNSRecursiveNameServer, optionSolMaxRT))
	pd := &dhcpv6.OptIAPD{IaId: c.config.IAID}
	for _, p := range prefixes {
		pd.Options.Add(&dhcpv6.OptIAPrefix{Prefix: &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), 128)}})
	}
	m.AddOption(pd)
	return m.ToBytes()
}

func raw(code dhcpv6.OptionCode, data []byte) dhcpv6.Option {
	return &dhcpv6.OptionGeneric{OptionCode: code, OptionData: data}
}

// errNotOurs says that a message is not for this client.
var errNotOurs = errors.New("the message is for another client, or without a server")

// read reads a message of a server.
func (c *Client) read(m *dhcpv6.Message) (a answer, err error) {
	client, server := m.GetOneOption(dhcpv6.OptionClientID), m.GetOneOption(dhcpv6.OptionServerID)
	if client == nil || server == nil || string(client.ToBytes()) != string(c.config.DUID) || len(server.ToBytes()) == 0 {
		return a, errNotOurs
	}
	a.server = server.ToBytes()
	a.preference = m.Options.Preference()
	for _, ip := range m.Options.DNS() {
		if dns, ok := netip.AddrFromSlice(ip); ok && dns.Is6() && !dns.IsUnspecified() && !dns.IsMulticast() && len(a.dns) < mostServers {
			a.dns = append(a.dns, dns)
		}
	}
	if o := m.GetOneOption(optionSolMaxRT); o != nil && len(o.ToBytes()) == 4 {
		if s := binary.BigEndian.Uint32(o.ToBytes()); s >= 60 && s <= 86400 {
			a.solMaxRT = time.Duration(s) * time.Second
		}
	}
	a.refuse(m.Options.Status())
	for _, pd := range m.Options.IAPD() {
		if pd.IaId == c.config.IAID {
			a.readPD(pd)
		}
	}
	return a, nil
}

// mostServers is how many name servers are taken, mostPrefixes how many prefixes.
const (
	mostServers  = 4
	mostPrefixes = 8
)

// readPD reads what an answer says about our prefixes. Servers say at one of three places why they
// refuse: some only within the prefix itself.
func (a *answer) readPD(pd *dhcpv6.OptIAPD) {
	if pd.T1 > pd.T2 && pd.T2 > 0 {
		return // RFC 8415 21.21
	}
	a.has = true
	a.refuse(pd.Options.Status())
	a.t1, a.t2 = pd.T1, pd.T2
	for _, o := range pd.Options.Prefixes() {
		p, ok := prefixOf(o)
		if !ok || o.PreferredLifetime > o.ValidLifetime || len(a.granted) == mostPrefixes {
			continue // RFC 8415 21.22
		}
		g := granted{p, o.PreferredLifetime, o.ValidLifetime}
		if s := o.Options.Status(); s != nil && s.StatusCode != iana.StatusSuccess {
			g.preferred, g.valid = 0, 0
			if len(pd.Options.Prefixes()) == 1 {
				a.refuse(s)
			}
		}
		a.granted = append(a.granted, g)
	}
}

func prefixOf(o *dhcpv6.OptIAPrefix) (netip.Prefix, bool) {
	if o.Prefix == nil {
		return netip.Prefix{}, false
	}
	bits, _ := o.Prefix.Mask.Size()
	addr, ok := netip.AddrFromSlice(o.Prefix.IP)
	p := netip.PrefixFrom(addr, bits).Masked()
	return p, ok && p.IsValid() && addr.Is6() && !addr.Is4In6() && bits > 0 && !addr.IsLinkLocalUnicast() && !addr.IsMulticast() && !addr.IsLoopback()
}

func (a *answer) refuse(s *dhcpv6.OptStatusCode) {
	if s == nil || s.StatusCode == iana.StatusSuccess || a.refusal != nil {
		return
	}
	a.noBinding = s.StatusCode == iana.StatusNoBinding
	text := ""
	if s.StatusMessage != "" {
		text = ": " + ppp.Printable([]byte(s.StatusMessage))
	}
	a.refusal = fmt.Errorf("%s%s", s.StatusCode, text)
}

// usable says whether the answer gives a prefix that a link can use.
func (a *answer) usable() bool {
	return a.refusal == nil && slices.ContainsFunc(a.granted, func(g granted) bool { return g.valid > 0 && g.prefix.Bits() <= longestPrefix })
}

// why says why the answer gives none.
func (a *answer) why() string {
	switch {
	case a.refusal != nil:
		return a.refusal.Error()
	case !a.has:
		return "no prefix"
	}
	for _, g := range a.granted {
		if g.prefix.Bits() > longestPrefix {
			return fmt.Sprintf("%s is too small: a link needs a /%d", g.prefix, longestPrefix)
		}
	}
	return "no prefix in it"
}

// until is the end of a lifetime; zero: there is none.
func until(now time.Time, d time.Duration) time.Time {
	if d >= forever {
		return time.Time{}
	}
	return now.Add(d)
}
