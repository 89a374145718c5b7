package ppp

import (
	"encoding/binary"
	"net/netip"
)

// Options of IPCP (RFC 1332 3, RFC 1877 1) and of IPV6CP (RFC 5072 4).
const (
	optionAddress = 3
	optionDNS1    = 129
	optionDNS2    = 131

	optionInterfaceID = 1
)

// V4 is what an end wants of IPv4.
type V4 struct {
	Own  netip.Addr // invalid: be given one
	Peer netip.Addr // what the peer is given; invalid: whatever it has
	// AskDNS asks for name servers. DNS are those that the peer is given if it asks, at most
	// two.
	AskDNS bool
	DNS    []netip.Addr
}

// ipcpTerms are what both ends agree on for IPv4.
type ipcpTerms struct {
	want V4
	own  netip.Addr // as asked for at the moment
	say  bool       // the option is not rejected
	dns  [2]netip.Addr
	ask  [2]bool
	peer netip.Addr
}

var dnsOptions = [2]uint8{optionDNS1, optionDNS2}

func newIPCPTerms(want V4) *ipcpTerms {
	t := &ipcpTerms{want: want, own: want.Own, say: true, ask: [2]bool{want.AskDNS, want.AskDNS}}
	if !t.own.Is4() {
		t.own = netip.IPv4Unspecified()
	}
	t.dns = [2]netip.Addr{netip.IPv4Unspecified(), netip.IPv4Unspecified()}
	return t
}

func (t *ipcpTerms) request() []Option {
	var options []Option
	if t.say {
		options = append(options, Option{optionAddress, t.own.AsSlice()})
	}
	for i, o := range dnsOptions {
		if t.ask[i] {
			options = append(options, Option{o, t.dns[i].AsSlice()})
		}
	}
	return options
}

func (t *ipcpTerms) refused(code Code, options []Option) {
	for _, o := range options {
		given, ok := netip.AddrFromSlice(o.Data)
		ok = ok && given.Is4()
		switch {
		case o.Type == optionAddress && code == ConfigureReject:
			t.say = false
		case o.Type == optionAddress && ok && !t.want.Own.IsValid():
			t.own = given
		case o.Type == optionDNS1 || o.Type == optionDNS2:
			if i := (o.Type - optionDNS1) / 2; t.ask[i] { // a server named in a Nak without a question is not asked for
				// Nor is one any more if the peer names none, or once more the one that it was asked for, which
				// it then means: some do so for ever.
				t.ask[i] = code == ConfigureNak && ok && !given.IsUnspecified() && given != t.dns[i]
				if code == ConfigureReject || !ok {
					given = netip.IPv4Unspecified()
				}
				t.dns[i] = given
			}
		}
	}
}

func (t *ipcpTerms) judge(options []Option, last bool) (Code, []Option) {
	var rejects, naks []Option
	peer := t.want.Peer
	said := false
	for _, o := range options {
		answer, asked := ConfigureReject, o
		given, ok := netip.AddrFromSlice(o.Data)
		switch {
		case !ok || !given.Is4():
		case o.Type == optionAddress:
			said = true
			answer = judgeAddress(&o, given, t.want.Peer)
			peer = given
		case o.Type == optionDNS1 || o.Type == optionDNS2:
			answer = ConfigureReject
			if i := int(o.Type-optionDNS1) / 2; i < len(t.want.DNS) {
				answer = judgeAddress(&o, given, t.want.DNS[i])
			}
		}
		switch {
		case answer == ConfigureReject || answer == ConfigureNak && last:
			rejects = append(rejects, asked) // as it came (RFC 1661 5.4)
		case answer == ConfigureNak:
			naks = append(naks, o)
		}
	}
	if !said && t.want.Peer.IsValid() && !last {
		// Who is to have an address and asks for none is told it (RFC 1332 3.3).
		naks = append(naks, Option{optionAddress, t.want.Peer.AsSlice()})
	}
	switch {
	case len(rejects) > 0:
		return ConfigureReject, rejects
	case len(naks) > 0:
		return ConfigureNak, naks
	}
	t.peer = peer
	return ConfigureAck, nil
}

// judgeAddress agrees to the address that is to be, or to any if none is. Who asks for one
// where there is none to give is refused.
func judgeAddress(o *Option, given, want netip.Addr) Code {
	switch {
	case want.IsValid() && given != want:
		o.Data = want.AsSlice()
		return ConfigureNak
	case given.IsUnspecified():
		return ConfigureReject
	}
	return ConfigureAck
}

// V6 says that an end wants IPv6, and how its link-local address ends.
type V6 struct {
	ID uint64 // the interface identifier; 0: a random one
}

// ipv6cpTerms are what both ends agree on for IPv6: 64 bits at the end of each link-local
// address.
type ipv6cpTerms struct {
	link *Link
	own  uint64
	peer uint64
	say  bool
}

func newIPV6CPTerms(l *Link, want V6) *ipv6cpTerms {
	t := &ipv6cpTerms{link: l, own: want.ID, say: true}
	if t.own == 0 {
		t.own = l.newInterfaceID()
	}
	return t
}

func (t *ipv6cpTerms) request() []Option {
	if !t.say {
		return nil
	}
	return []Option{{optionInterfaceID, binary.BigEndian.AppendUint64(nil, t.own)}}
}

func (t *ipv6cpTerms) refused(code Code, options []Option) {
	for _, o := range options {
		switch {
		case o.Type != optionInterfaceID:
		case code == ConfigureReject:
			t.say = false
		case len(o.Data) == 8:
			given := binary.BigEndian.Uint64(o.Data)
			if given == 0 || given == t.own {
				given = t.link.newInterfaceID()
			}
			t.own = given
		}
	}
}

// judge refuses 0, for which the peer is given a random identifier, and our own (RFC 5072
// 4.1).
func (t *ipv6cpTerms) judge(options []Option, last bool) (Code, []Option) {
	var rejects []Option
	peer := uint64(0)
	for _, o := range options {
		if o.Type != optionInterfaceID || len(o.Data) != 8 {
			rejects = append(rejects, o)
			continue
		}
		peer = binary.BigEndian.Uint64(o.Data)
	}
	asks := len(options) > len(rejects)
	switch {
	case len(rejects) > 0:
		return ConfigureReject, rejects
	case asks && (peer == 0 || peer == t.own) && last:
		return ConfigureReject, options
	case asks && (peer == 0 || peer == t.own):
		return ConfigureNak, []Option{{optionInterfaceID, binary.BigEndian.AppendUint64(nil, t.link.newInterfaceID())}}
	}
	t.peer = peer
	return ConfigureAck, nil
}
