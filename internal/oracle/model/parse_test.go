package model

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/gopacket/gopacket/layers"

	"weir/internal/fw/reason"
)

// ip6 builds an IPv6 frame by hand: chain and payload follow the header.
func ip6(next uint8, rest ...byte) []byte {
	b := []byte(boxMAC + hostMAC + "\x86\xdd")
	b = append(b, 0x60, 0, 0, 0, 0, byte(len(rest)), next, 64)
	b = append(b, client6.AsSlice()...)
	b = append(b, server6.AsSlice()...)
	return append(b, rest...)
}

// Extension headers of 8 bytes, and a UDP header behind them.
func ext(next uint8, rest ...byte) []byte {
	return append([]byte{next, 0}, append(rest, make([]byte, 6-len(rest))...)...)
}

var udpHeader = []byte{0, 1, 0, 2, 0, 8, 0, 0}

func chain(parts ...[]byte) []byte { return slices.Concat(parts...) }

func TestParse(t *testing.T) {
	v4 := udp(t, client, 4000, server, 53, "q")
	change := func(b []byte, at int, v ...byte) []byte {
		b = slices.Clone(b)
		copy(b[at:], v)
		return b
	}
	tcp := seg(false, "S", 1, 0, 0).bytes(t)
	gre := frame(t, ip(client, server, layers.IPProtocolGRE))
	flagged := func(flags uint8) []byte { return change(tcp, 14+20+13, flags) }
	for name, c := range map[string]struct {
		frame []byte
		want  reason.Reason
	}{
		"whole":                 {v4, reason.NoRule},
		"no Ethernet header":    {v4[:13], reason.Short},
		"another station":       {change(v4, 0, 0x02, 9), reason.OtherMAC},
		"arp":                   {change(v4, 12, 0x08, 0x06), reason.Implicit},
		"vlan":                  {change(v4, 12, 0x81, 0x00), reason.Implicit},
		"group":                 {change(v4, 0, 0xff), reason.Local},
		"half an IP header":     {v4[:14+19], reason.Short},
		"version":               {change(v4, 14, 0x55), reason.Malformed},
		"ihl":                   {change(v4, 14, 0x44), reason.Malformed},
		"total length, small":   {change(v4, 16, 0, 19), reason.Malformed},
		"total length, large":   {change(v4, 16, 1, 0), reason.Malformed},
		"padding":               {append(slices.Clone(v4), 1, 2, 3), reason.NoRule},
		"ip checksum":           {change(v4, 24, v4[24]^1), reason.IPChecksum},
		"ip checksum, options":  {append(change(gre, 14, 0x46, 0, 0, 24), 1, 1, 1, 1), reason.Options},
		"tcp flags none":        {flagged(0), reason.TCPFlags},
		"tcp flags FIN":         {flagged(flagFIN), reason.TCPFlags},
		"tcp flags SYN RST":     {flagged(flagSYN | flagRST), reason.TCPFlags},
		"tcp flags SYN RST ACK": {flagged(flagSYN | flagRST | flagACK), reason.TCPFlags},
		"tcp flags SYN PSH URG": {flagged(flagSYN | flagPSH | flagURG), reason.TCPFlags},
		"tcp flags FIN PSH URG": {flagged(flagFIN | flagPSH | flagURG), reason.TCPFlags},
		"tcp flags ECE CWR SYN": {flagged(0xc0 | flagSYN), reason.NoRule},
		"tcp flags SYN FIN":     {flagged(flagSYN | flagFIN), reason.NoRule},
		"tcp flags RST":         {flagged(flagRST), reason.NoRule},
		"tcp flags FIN ACK":     {flagged(flagFIN | flagACK | flagPSH | flagURG), reason.NoRule},
		"no protocol header":    {summed(change(gre, 23, 6)), reason.Short},
		"no header needed":      {gre, reason.NoRule},
		"tcp offset, small":     {change(tcp, 14+20+12, 0x40), reason.Malformed},
		"tcp offset, large":     {change(tcp, 14+20+12, 0x60), reason.Malformed},
		"udp length, small":     {change(v4, 14+20+4, 0, 7), reason.Malformed},
		"udp length, large":     {change(v4, 14+20+4, 0, 10), reason.Malformed},
		"udp to port 0":         {udp(t, client, 1, server, 0, ""), reason.Malformed},
		"udp from port 0":       {udp(t, client, 0, server, 2, ""), reason.NoRule},
		"fragment of 4 bytes":   {summed(change(gre[:38], 16, 0, 24, 0, 0, 0x20, 1)), reason.Malformed},
		"fragment beyond 64 k":  {summed(change(v4, 20, 0x1f, 0xff)), reason.Malformed},
		"land":                  {udp(t, client, 1, client, 2, ""), reason.Land},
		"from 127/8":            {udp(t, addr("127.0.0.1"), 1, server, 2, ""), reason.MartianSource},
		"from 0/8":              {udp(t, addr("0.1.2.3"), 1, server, 2, ""), reason.MartianSource},
		"from multicast":        {udp(t, addr("224.0.0.1"), 1, server, 2, ""), reason.MartianSource},
		"from the box":          {udp(t, gateway, 1, server, 2, ""), reason.MartianSource},
		"to 127/8":              {udp(t, client, 1, addr("127.0.0.1"), 2, ""), reason.MartianDest},
		"to ::1":                {udp(t, client6, 1, addr("::1"), 2, ""), reason.MartianDest},
		"6: half a header":      {ip6(17)[:14+39], reason.Short},
		"6: whole":              {ip6(17, udpHeader...), reason.NoRule},
		"6: payload too long":   {change(ip6(17, udpHeader...), 14+5, 9), reason.Malformed},
		"6: no next header":     {ip6(59), reason.NoRule},
		"6: hop-by-hop":         {ip6(0, chain(ext(17), udpHeader)...), reason.Options},
		"6: hop-by-hop, second": {ip6(60, chain(ext(0), ext(17), udpHeader)...), reason.Malformed},
		"6: routing 0":          {ip6(43, chain(ext(17, 0), udpHeader)...), reason.RoutingHeader},
		"6: routing 2":          {ip6(43, chain(ext(17, 2), udpHeader)...), reason.NoRule},
		"6: routing 0 later":    {ip6(43, chain(ext(43, 2), ext(17, 0), udpHeader)...), reason.RoutingHeader},
		"6: auth":               {ip6(51, chain([]byte{17, 1, 0, 0}, make([]byte, 8), udpHeader)...), reason.NoRule},
		"6: eight headers":      {ip6(43, chain(repeated(7, ext(43, 2)), ext(17, 2), udpHeader)...), reason.NoRule},
		"6: nine headers":       {ip6(43, chain(repeated(8, ext(43, 2)), ext(17, 2), udpHeader)...), reason.ExtensionChain},
		"6: 520 bytes":          {ip6(60, 17, 64), reason.Short},
		"6: chain cut":          {ip6(43, chain(ext(17, 2))[:7]...), reason.Short},
		"6: chain ends it":      {ip6(43, ext(17, 2)...), reason.Short},
		"6: atomic fragment":    {ip6(44, chain(ext(17), udpHeader)...), reason.NoRule},
		"6: two fragments":      {ip6(44, chain(ext(44), ext(17), udpHeader)...), reason.Malformed},
		"6: first fragment":     {ip6(44, chain(ext(17, 0, 1), udpHeader)...), reason.NoRule},
		"6: first, cut":         {ip6(44, ext(6, 0, 1)...), reason.FragmentShort},
		"6: first, cut chain":   {ip6(44, ext(60, 0, 1)...), reason.FragmentShort},
		"6: orphan":             {ip6(44, chain(ext(17, 1, 0), udpHeader)...), reason.FragmentOrphan},
	} {
		t.Run(name, func(t *testing.T) {
			o := newWorld(t).Handle(&Frame{Interface: lanIndex, Bytes: c.frame}, nil)
			if o.Reason != c.want || (o.Verdict == Drop) != !c.want.IsPass() {
				t.Errorf("verdict %d (%s), want %s", o.Verdict, o.Reason, c.want)
			}
		})
	}
}

// summed sets the checksum of an IPv4 header without options behind an Ethernet header.
func summed(b []byte) []byte {
	b[24], b[25] = 0, 0
	binary.BigEndian.PutUint16(b[24:], Sum(b[14:34]))
	return b
}

func repeated(n int, b []byte) []byte { return slices.Repeat(b, n) }

// A chain of more than 512 bytes, all of them there.
func TestLongChain(t *testing.T) {
	long := append([]byte{17, 64}, make([]byte, 65*8-2)...)
	b := ip6(43, append(long, udpHeader...)...)
	b[14+4], b[14+5] = byte((len(b)-54)>>8), byte(len(b)-54)
	long[2] = 2
	copy(b[54:], long)
	if o := newWorld(t).Handle(&Frame{Interface: lanIndex, Bytes: b}, nil); o.Reason != reason.ExtensionChain {
		t.Errorf("reason %s", o.Reason)
	}
}
