package dataplane

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// A pkt is a packet as the tables of tests write it:
//
//	tcp 192.168.1.10:4000 > 203.0.113.1:80 S seq 5 len 10 ttl 63
//	icmp 192.168.1.10 > 203.0.113.1 type 8 id 7
//	icmp 203.0.113.9 > 203.0.113.2 type 11 quote udp 203.0.113.2:50001 > 9.9.9.9:53 ttl 1
//	udp [fd00:1::10]:53 > [2001:db8::1]:53 ext hop,dst len 5
//	udp 192.168.1.10 > 203.0.113.1 frag 1480+ id 9 len 100
//
// Fields that have their usual value are left out, in what is read and in what
// is printed, so that texts can be compared.
type pkt struct {
	proto    string // tcp, udp, sctp, icmp, icmp6 or a number
	src, dst netip.AddrPort
	flags    string // TCP: of FSRPAU
	seq, ack uint32
	win      int        // TCP; 65535
	wscale   int        // TCP option; -1
	mss      int        // TCP option; 0: none
	odd      bool       // it is at an odd offset; not printed
	stamp    *[2]uint32 // TCP option: timestamp and echo
	twice    bool       // it comes twice
	typ      int        // ICMP
	code     int
	id       int // ICMP query's id; of a fragment
	rest     int // ICMP error: the last two bytes of its header, which have the MTU
	size     int // bytes of payload
	ttl      int // 64
	opts     int // bytes of IPv4 options, all "no operation"
	ext      []string
	frag     int // offset in bytes; -1: no fragment
	more     bool
	nosum    bool   // UDP without checksum
	sums     string // what is wrong after decoding: "ip", "l4", "quote"
	quoted   *pkt
	quote    int // bytes of L4 that are quoted; 0: all
}

func (p *pkt) is6() bool { return p.src.Addr().Is6() }

// parsePkt parses a text. It panics on mistakes, because they are the test's.
func parsePkt(text string) *pkt {
	words := strings.Fields(text)
	if len(words) < 4 || words[2] != ">" {
		panic("packet: " + text)
	}
	p := &pkt{proto: words[0], src: parseEnd(words[1]), dst: parseEnd(words[3]), win: 65535, wscale: -1, ttl: 64, frag: -1}
	for i := 4; i < len(words); i++ {
		word := words[i]
		if p.proto == "tcp" && strings.Trim(word, "FSRPAU.") == "" {
			p.flags = strings.Trim(word, ".")
			continue
		}
		if word == "quote" {
			p.quoted = parsePkt(strings.Join(words[i+1:], " "))
			break
		}
		if word == "nosum" {
			p.nosum = true
			continue
		}
		i++
		p.set(word, words[i])
	}
	return p
}

// must0 returns a value of a test's text.
func must0(n int, err error) int {
	if err != nil {
		panic("packet: " + err.Error())
	}
	return n
}

func parseEnd(text string) netip.AddrPort {
	if a, err := netip.ParseAddr(text); err == nil {
		return netip.AddrPortFrom(a, 0)
	}
	return netip.MustParseAddrPort(text)
}

func (p *pkt) set(key, value string) {
	if key == "ext" {
		p.ext = strings.Split(value, ",")
		return
	}
	if key == "bad" {
		p.sums = value
		return
	}
	if key == "ts" {
		value, echo, _ := strings.Cut(value, ":")
		p.stamp = &[2]uint32{uint32(must0(strconv.Atoi(value))), uint32(must0(strconv.Atoi(echo)))}
		return
	}
	if key == "frag" {
		value, p.more = strings.TrimSuffix(value, "+"), strings.HasSuffix(value, "+")
	}
	n, err := strconv.Atoi(value)
	if err != nil {
		panic("packet: " + key + " " + value)
	}
	switch key {
	case "seq":
		p.seq = uint32(n)
	case "ack":
		p.ack = uint32(n)
	default:
		field, ok := p.numbers()[key]
		if !ok {
			panic("packet: unknown field " + key)
		}
		*field = n
	}
}

func (p *pkt) numbers() map[string]*int {
	return map[string]*int{
		"win": &p.win, "wscale": &p.wscale, "mss": &p.mss, "type": &p.typ, "code": &p.code, "id": &p.id, "len": &p.size,
		"ttl": &p.ttl, "opts": &p.opts, "mtu": &p.rest, "frag": &p.frag, "quoted": &p.quote,
	}
}

// String prints the packet in the form that parsePkt reads.
func (p *pkt) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s > %s", p.proto, endText(p.src), endText(p.dst))
	if p.flags != "" {
		b.WriteString(" " + p.flags)
	}
	number := func(key string, value, usual int) {
		if value != usual {
			fmt.Fprintf(&b, " %s %d", key, value)
		}
	}
	number("seq", int(p.seq), 0)
	number("ack", int(p.ack), 0)
	number("win", p.win, 65535)
	number("wscale", p.wscale, -1)
	number("mss", p.mss, 0)
	if p.stamp != nil {
		fmt.Fprintf(&b, " ts %d:%d", p.stamp[0], p.stamp[1])
	}
	number("type", p.typ, 0)
	number("code", p.code, 0)
	if p.frag >= 0 {
		fmt.Fprintf(&b, " frag %d", p.frag)
		if p.more {
			b.WriteString("+")
		}
	}
	number("id", p.id, 0)
	number("mtu", p.rest, 0)
	number("len", p.size, 0)
	number("ttl", p.ttl, 64)
	number("opts", p.opts, 0)
	if len(p.ext) > 0 {
		b.WriteString(" ext " + strings.Join(p.ext, ","))
	}
	if p.nosum {
		b.WriteString(" nosum")
	}
	if p.sums != "" {
		b.WriteString(" bad " + p.sums)
	}
	if p.quoted != nil {
		b.WriteString(" quote " + p.quoted.String())
	}
	return b.String()
}

func endText(a netip.AddrPort) string {
	if a.Port() == 0 {
		return a.Addr().String()
	}
	return a.String()
}
