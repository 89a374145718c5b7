package ruletest

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"go4.org/netipx"

	"weir/internal/oracle/model"
)

// Ends are the addresses and ports that one end of a packet may have after a translation.
// In JSON each is a text, ADDRESSES or ADDRESSES:PORTS. ADDRESSES is an address, a
// network or two addresses with a dash between; PORTS is a port or two. If ports follow,
// IPv6 is in brackets. A single text needs no list.
type Ends []span

// A span is a range of addresses with a range of ports.
type span struct {
	addrs     netipx.IPRange
	ports     bool // else any port
	low, high uint16
	text      string
}

// UnmarshalJSON reads a text or a list of them.
func (e *Ends) UnmarshalJSON(data []byte) error {
	var texts []string
	if err := json.Unmarshal(inList(data), &texts); err != nil {
		return fmt.Errorf("%s is neither an address nor a list of them", data)
	}
	*e = nil
	for _, text := range texts {
		s, err := parseSpan(text)
		if err != nil {
			return err
		}
		*e = append(*e, s)
	}
	return nil
}

// String returns the texts as they were read.
func (e Ends) String() string {
	var texts []string
	for _, s := range e {
		texts = append(texts, s.text)
	}
	return strings.Join(texts, " or ")
}

func parseSpan(text string) (span, error) {
	s := span{text: text}
	addrs, ports := text, ""
	if inside, behind, ok := strings.Cut(strings.TrimPrefix(text, "["), "]"); ok && text[0] == '[' {
		addrs, ports = inside, strings.TrimPrefix(behind, ":")
		s.ports = strings.HasPrefix(behind, ":")
		if behind != "" && !s.ports {
			return s, fmt.Errorf("%q: a colon and the port must follow ]", text)
		}
	} else if strings.Count(text, ":") == 1 {
		addrs, ports, s.ports = strings.Cut(text, ":")
	}
	s.addrs = addrRange(addrs)
	if !s.addrs.IsValid() {
		return s, fmt.Errorf("%q: %q is not an address, network or range of addresses", text, addrs)
	}
	if s.ports {
		var ok bool
		if s.low, s.high, ok = portRange(ports); !ok {
			return s, fmt.Errorf("%q: %q is not a port or range of ports", text, ports)
		}
	}
	return s, nil
}

// addrRange returns an invalid range if the text is no address, network or range.
func addrRange(text string) netipx.IPRange {
	if p, err := netip.ParsePrefix(text); err == nil {
		return netipx.RangeOfPrefix(p)
	}
	first, last, dash := strings.Cut(text, "-")
	if !dash {
		last = first
	}
	low, err1 := netip.ParseAddr(strings.TrimSpace(first))
	high, err2 := netip.ParseAddr(strings.TrimSpace(last))
	if err1 != nil || err2 != nil {
		return netipx.IPRange{}
	}
	return netipx.IPRangeFrom(low, high)
}

func portRange(text string) (low, high uint16, ok bool) {
	first, last, dash := strings.Cut(text, "-")
	if !dash {
		last = first
	}
	l, err1 := strconv.ParseUint(strings.TrimSpace(first), 10, 16)
	h, err2 := strconv.ParseUint(strings.TrimSpace(last), 10, 16)
	return uint16(l), uint16(h), err1 == nil && err2 == nil && l <= h
}

// Hold reports whether an end of a packet is expected.
func (e Ends) Hold(end netip.AddrPort) bool {
	a := end.Addr()
	return e.covers(netip.PrefixFrom(a, a.BitLen()), end.Port(), end.Port())
}

// hold reports whether everything that a packet's end can become is expected.
func (e Ends) hold(end *model.End) bool {
	if len(end.Addrs) == 0 {
		return false
	}
	for _, p := range end.Addrs {
		if !e.covers(p, end.Low, end.High) {
			return false
		}
	}
	return true
}

// covers reports whether all addresses of p with these ports are among the ends.
func (e Ends) covers(p netip.Prefix, low, high uint16) bool {
	var fit netipx.IPSetBuilder
	for _, s := range e {
		if !s.ports || s.low <= low && s.high >= high {
			fit.AddRange(s.addrs)
		}
	}
	set, err := fit.IPSet()
	return err == nil && set.ContainsPrefix(p)
}

// describe returns what an end can become, in the form of an expectation; ported: the
// packet has ports.
func describe(end *model.End, ported bool) Ends {
	all := make(Ends, 0, len(end.Addrs))
	for _, p := range end.Addrs {
		s := span{addrs: netipx.RangeOfPrefix(p), ports: ported, low: end.Low, high: end.High}
		s.text = p.String()
		if p.IsSingleIP() {
			s.text = p.Addr().String()
		}
		if ported && p.Addr().Is6() {
			s.text = "[" + s.text + "]"
		}
		if ported {
			s.text += ":" + strconv.Itoa(int(s.low))
		}
		if ported && s.high > s.low {
			s.text += "-" + strconv.Itoa(int(s.high))
		}
		all = append(all, s)
	}
	return all
}

// MarshalJSON returns one text, or a list of them.
func (e Ends) MarshalJSON() ([]byte, error) {
	texts := make([]string, 0, len(e))
	for _, s := range e {
		texts = append(texts, s.text)
	}
	if len(texts) == 1 {
		return json.Marshal(texts[0])
	}
	return json.Marshal(texts)
}
