package doctor

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"weir/internal/pattern"
)

// Redact replaces each address of a snapshot by a stand-in. The same address always gets
// the same stand-in, so related entries stay related. Stand-ins come from reserved blocks
// (RFC 2544's 198.18.0.0/15, RFC 3849's 2001:db8::/32, locally administered MAC
// addresses). Prefix lengths, interface names, and whether an address is private are
// kept.
func Redact(s *Snapshot) {
	r := redactor{addresses: map[netip.Addr]netip.Addr{}, macs: map[string]string{}}
	for i := range s.Interfaces {
		n := &s.Interfaces[i]
		for k, p := range n.Addresses {
			n.Addresses[k] = netip.PrefixFrom(r.address(p.Addr()), p.Bits())
		}
		n.MAC = r.mac(n.MAC)
	}
	for i := range s.Routes {
		if g := s.Routes[i].Gateway; g.IsValid() {
			s.Routes[i].Gateway = r.address(g)
		}
	}
	if s.Weir != nil {
		for i := range s.Weir.Sessions {
			p := &s.Weir.Sessions[i]
			p.Why = r.text(p.Why)
			for k := range p.Quirks {
				p.Quirks[k] = r.text(p.Quirks[k])
			}
		}
	}
	for _, c := range []*Counters{s.Before, s.After} {
		if c == nil || c.Weir == nil {
			continue
		}
		for i := range c.Weir.NAT {
			u := &c.Weir.NAT[i]
			u.Address, u.Far = r.address(u.Address), netip.AddrPortFrom(r.address(u.Far.Addr()), u.Far.Port())
		}
	}
	for name, value := range s.Sysctls {
		if named[name] {
			value = "redacted"
		}
		s.Sysctls[name] = r.text(value)
	}
	for name, why := range s.Unreadable {
		s.Unreadable[name] = r.text(why)
	}
	for i := range s.Log {
		s.Log[i].Text = r.text(s.Log[i].Text)
	}
	s.Host.Machine = r.text(s.Host.Machine)
	s.Redacted = true
}

// named lists sysctls that name the machine.
var named = map[string]bool{"kernel.hostname": true, "kernel.domainname": true, "kern.hostname": true, "kern.hostuuid": true, "kernel.random.boot_id": true}

// redactor remembers the stand-ins.
type redactor struct {
	addresses map[netip.Addr]netip.Addr
	macs      map[string]string
}

// address returns a private stand-in for a private address. Addresses with the same
// meaning on every machine stay.
func (r *redactor) address(a netip.Addr) netip.Addr {
	plain := a.WithZone("")
	if plain.IsUnspecified() || plain.IsLoopback() {
		return a
	}
	if known, ok := r.addresses[plain]; ok {
		return known
	}
	n := uint32(len(r.addresses) + 1)
	var stand netip.Addr
	switch {
	case plain.Is4() && plain.IsPrivate():
		stand = v4(10, n)
	case plain.Is4():
		stand = v4(198, 18<<16|n&0x1ffff)
	case plain.IsLinkLocalUnicast():
		stand = v6([]byte{0xfe, 0x80}, n)
	case plain.IsPrivate():
		stand = v6([]byte{0xfd, 0}, n)
	default:
		stand = v6([]byte{0x20, 0x01, 0x0d, 0xb8}, n)
	}
	r.addresses[plain] = stand
	return stand
}

func v4(first byte, rest uint32) netip.Addr {
	return netip.AddrFrom4([4]byte{first, byte(rest >> 16), byte(rest >> 8), byte(rest)})
}

func v6(head []byte, n uint32) netip.Addr {
	var b [16]byte
	copy(b[:], head)
	binary.BigEndian.PutUint32(b[12:], n)
	return netip.AddrFrom16(b)
}

// mac returns a stand-in that no card maker uses.
func (r *redactor) mac(mac string) string {
	if mac == "" || mac == "00:00:00:00:00:00" {
		return mac
	}
	if known, ok := r.macs[mac]; ok {
		return known
	}
	n := len(r.macs) + 1
	r.macs[mac] = fmt.Sprintf("02:00:00:00:%02x:%02x", n>>8&0xff, n&0xff)
	return r.macs[mac]
}

var (
	macText     = pattern.New(`(?i)\b[0-9a-f]{2}(?::[0-9a-f]{2}){5}\b`)
	addressText = pattern.New(`(?i)\b\d{1,3}(?:\.\d{1,3}){3}\b|\b[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){2,7}\b`)
)

// text replaces addresses inside a text. Words that only look like addresses stay.
func (r *redactor) text(text string) string {
	text = macText.ReplaceAllStringFunc(text, r.mac)
	return addressText.ReplaceAllStringFunc(text, func(word string) string {
		a, err := netip.ParseAddr(word)
		if err != nil {
			return word
		}
		return r.address(a).String()
	})
}
