package state

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// A Filter selects states that meet all its conditions. The zero value selects all.
type Filter struct {
	Proto  string         // name or number, as in View
	From   []netip.Prefix // one of them must contain the address that the connection comes from
	To     []netip.Prefix // likewise, that it goes to
	Hosts  []netip.Prefix // each must contain an address of either end, before or after translation
	Port   uint16         // of either end, before or after translation
	Phase  string
	Rule   *int   // number of either deciding rule
	Label  string // of either deciding rule
	Leaves string // an interface that forwarded packets leave by, or that of link-local addresses
	Handle *Handle
	// Gateways are next hops that packets are sent to.
	Gateways []netip.Prefix
	NAT      []netip.Prefix     // one of them must contain an address that an end was translated to
	Ends     *[2]netip.AddrPort // the end that the connection comes from, and the other one
}

// Empty reports whether the filter selects all states.
func (f *Filter) Empty() bool {
	return f.Proto == "" && len(f.From)+len(f.To)+len(f.Hosts) == 0 && f.Port == 0 && f.Phase == "" && f.Rule == nil &&
		f.Label == "" && f.Leaves == "" && f.Handle == nil && len(f.Gateways) == 0 && len(f.NAT) == 0 && f.Ends == nil
}

// ParseFilter reads a filter from the words of a command line: any of
//
//	proto NAME  host ADDRESS|NETWORK  from ADDRESS|NETWORK  to ADDRESS|NETWORK  port NUMBER
//	phase NAME  rule NUMBER  label TEXT  on INTERFACE  id HEXADECIMAL
//	gateway ADDRESS|NETWORK  nat ADDRESS|NETWORK
//
// each followed by its value; host may be given twice, for the two ends. from is the end
// that has opened the connection.
func ParseFilter(words []string) (Filter, error) {
	var f Filter
	for i := 0; i < len(words); i += 2 {
		if !slices.Contains(keywords, words[i]) {
			return Filter{}, fmt.Errorf("%q: %w", words[i], errKeyword)
		}
		if i+1 == len(words) {
			return Filter{}, fmt.Errorf("%q must be followed by a value", words[i])
		}
		if err := f.set(words[i], words[i+1]); err != nil {
			return Filter{}, fmt.Errorf("%s %s: %w", words[i], words[i+1], err)
		}
	}
	return f, nil
}

var keywords = []string{"proto", "host", "from", "to", "port", "phase", "rule", "label", "on", "id", "gateway", "nat"}

var errKeyword = errors.New("expected proto, host, from, to, port, phase, rule, label, on, id, gateway or nat")

func (f *Filter) set(keyword, value string) error {
	if value == "" {
		return errors.New("the value is empty")
	}
	switch keyword {
	case "proto":
		return f.setProto(value)
	case "host":
		return addHost(&f.Hosts, value)
	case "from":
		return addHost(&f.From, value)
	case "to":
		return addHost(&f.To, value)
	case "nat":
		return addHost(&f.NAT, value)
	case "gateway":
		return addHost(&f.Gateways, value)
	case "label":
		f.Label = value
	case "on":
		f.Leaves = value
	case "id":
		f.Handle = new(Handle)
		return f.Handle.UnmarshalText([]byte(value))
	case "port":
		port, err := strconv.ParseUint(value, 10, 16)
		if err != nil || port == 0 {
			return errors.New("a port is a number from 1 to 65535")
		}
		f.Port = uint16(port)
	case "phase":
		if _, err := ParsePhase(value); err != nil {
			return err
		}
		f.Phase = value
	case "rule":
		nr, err := strconv.Atoi(value)
		if err != nil || nr < 0 {
			return errors.New("a rule is a number from 0")
		}
		f.Rule = &nr
	default:
		return errKeyword
	}
	return nil
}

// ParseKey reads the key of a state, as pfctl prints it:
//
//	PROTOCOL ADDRESS:PORT -> ADDRESS:PORT
//	PROTOCOL ADDRESS[PORT] <- ADDRESS[PORT]
//
// The arrow points to the end that was connected to.
func ParseKey(key string) (Filter, error) {
	var f Filter
	words := strings.Fields(key)
	if len(words) != 4 || words[2] != "->" && words[2] != "<-" {
		return f, errors.New("a key is a protocol, an address with a port, -> or <-, and an address with a port")
	}
	if err := f.setProto(words[0]); err != nil {
		return f, err
	}
	f.Ends = new([2]netip.AddrPort)
	for i, word := range []string{words[1], words[3]} {
		end, err := parseEnd(word)
		if err != nil {
			return f, fmt.Errorf("%s: %w", word, err)
		}
		if words[2] == "<-" {
			i = 1 - i
		}
		f.Ends[i] = end
	}
	return f, nil
}

// parseEnd reads ADDRESS:PORT, ADDRESS[PORT], or an address alone, whose port is 0.
func parseEnd(word string) (netip.AddrPort, error) {
	if end, err := netip.ParseAddrPort(word); err == nil {
		return end, nil
	}
	addr, port, found := strings.Cut(strings.TrimSuffix(word, "]"), "[")
	a, err := netip.ParseAddr(addr)
	if err != nil {
		return netip.AddrPort{}, errors.New("not an address with a port")
	}
	if !found {
		return netip.AddrPortFrom(a, 0), nil
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return netip.AddrPort{}, errors.New("not an address with a port")
	}
	return netip.AddrPortFrom(a, uint16(n)), nil
}

func (f *Filter) setProto(value string) error {
	if value == "icmp6" {
		value = Protocol(protoICMPv6) // its name in pf.conf
	}
	for p := range 256 {
		if name := Protocol(uint8(p)); name == value || strconv.Itoa(p) == value {
			f.Proto = name
			return nil
		}
	}
	return errors.New("unknown protocol; give its number")
}

func addHost(hosts *[]netip.Prefix, value string) error {
	if !strings.Contains(value, "/") {
		addr, err := netip.ParseAddr(value)
		if err != nil {
			return errors.New("not an address")
		}
		*hosts = append(*hosts, netip.PrefixFrom(addr, addr.BitLen()))
		return nil
	}
	prefix, err := netip.ParsePrefix(value)
	if err != nil {
		return errors.New("not a network")
	}
	*hosts = append(*hosts, prefix.Masked())
	return nil
}

// Match reports whether the filter selects v.
func (f *Filter) Match(v *View) bool {
	if f.Proto != "" && f.Proto != v.Proto || f.Phase != "" && f.Phase != v.Phase {
		return false
	}
	if f.Port != 0 && !v.Src.hasPort(f.Port) && !v.Dst.hasPort(f.Port) {
		return false
	}
	if f.Rule != nil && !v.RuleIn.is(*f.Rule) && !v.RuleOut.is(*f.Rule) {
		return false
	}
	if f.Label != "" && !slices.Contains(v.Labels, f.Label) || f.Handle != nil && *f.Handle != v.Handle {
		return false
	}
	if f.Leaves != "" && !slices.Contains(v.Leaves, f.Leaves) && v.Interface != f.Leaves {
		return false
	}
	if len(f.Gateways) > 0 && !slices.ContainsFunc(f.Gateways, v.goesBy) {
		return false
	}
	if f.Ends != nil && (!v.Src.is(f.Ends[0]) || !v.Dst.is(f.Ends[1])) {
		return false
	}
	if len(f.NAT) > 0 && !slices.ContainsFunc(f.NAT, v.isTranslatedTo) {
		return false
	}
	return v.Src.among(f.From) && v.Dst.among(f.To) && f.matchHosts(v)
}

// goesBy reports whether a next hop is in a network.
func (v *View) goesBy(p netip.Prefix) bool { return slices.ContainsFunc(v.Gateways, p.Contains) }

// isTranslatedTo reports whether an end has an address of a network instead of its own.
func (v *View) isTranslatedTo(p netip.Prefix) bool {
	return v.Src.NewAddr.IsValid() && p.Contains(v.Src.NewAddr) || v.Dst.NewAddr.IsValid() && p.Contains(v.Dst.NewAddr)
}

// is reports whether the end has that address and port, before or after translation.
func (e *End) is(at netip.AddrPort) bool {
	return e.Addr == at.Addr() && e.Port == at.Port() || e.NewAddr == at.Addr() && e.NewPort == at.Port()
}

// among reports whether one of the networks contains the end. None: any does.
func (e *End) among(networks []netip.Prefix) bool {
	return len(networks) == 0 || slices.ContainsFunc(networks, e.within)
}

// matchHosts requires two hosts to match different ends.
func (f *Filter) matchHosts(v *View) bool {
	if len(f.Hosts) == 2 {
		a, b := f.Hosts[0], f.Hosts[1]
		return v.Src.within(a) && v.Dst.within(b) || v.Src.within(b) && v.Dst.within(a)
	}
	for _, h := range f.Hosts {
		if !v.Src.within(h) && !v.Dst.within(h) {
			return false
		}
	}
	return true
}

func (e *End) within(p netip.Prefix) bool {
	return p.Contains(e.Addr) || e.NewAddr.IsValid() && p.Contains(e.NewAddr)
}

func (e *End) hasPort(port uint16) bool { return e.Port == port || e.NewPort == port }

func (r *RuleRef) is(nr int) bool { return r != nil && !r.Old && r.List == "" && r.Nr == nr }
