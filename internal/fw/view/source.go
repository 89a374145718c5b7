package view

import (
	"cmp"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"time"

	"weir/internal/fw/dataplane"
	"weir/internal/fw/state"
	"weir/internal/textout"
)

// A Source is an address that opens states by rules with source-track, or one that keeps an address of
// a pool with sticky-address.
type Source struct {
	Addr        netip.Addr     `json:"addr"`
	Interface   string         `json:"interface,omitempty"` // of a link-local address
	States      uint32         `json:"states"`
	Connections uint32         `json:"connections"`       // those of the states whose handshake is complete
	Rate        float64        `json:"rate"`              // connections, in a span of Seconds
	Seconds     uint32         `json:"seconds"`           // of the rule's max-src-conn-rate; 0: it has none
	Rule        *state.RuleRef `json:"rule,omitempty"`    // whose sources these are; nil: all with source-track global, or a limiter's
	Limiter     string         `json:"limiter,omitempty"` // the source limiter whose source it is
	Bits        int            `json:"bits,omitempty"`    // of a limiter's source: how many bits of addresses it stands for
	Listed      bool           `json:"listed,omitempty"`  // of a limiter's source: it is in the limiter's table
	Over        bool           `json:"over,omitempty"`    // too many connections, and not yet in the overload table
	Age         time.Duration  `json:"age_ns"`
	Expires     time.Duration  `json:"expires_ns,omitempty"` // without states: until it is forgotten
	// Keeps is the address that it keeps, of a pool with sticky-address. States are those of the source
	// that are translated to it, or have it for a gateway. When it began is not known.
	Keeps *netip.Addr `json:"keeps,omitempty"`
}

// Sources returns the sources, by address and rule.
func (v *View) Sources() (all []Source, err error) {
	err = v.read(func(r *reading) error {
		numbers, err := r.pins.RuleLimits()
		if err != nil {
			return err
		}
		rules := make(map[uint16]int, len(numbers))
		for rule, number := range numbers {
			rules[number] = rule
		}
		limiters := make(map[uint8]dataplane.Limiter)
		for _, l := range r.pins.Limiters() {
			if l.Source {
				limiters[l.ID] = l
			}
		}
		all = []Source{}
		for s := range r.pins.Sources() {
			one := r.sourceOf(&s, rules)
			if l, ok := limiters[s.Limiter]; ok {
				one.limitedBy(&l, &s)
			}
			all = append(all, one)
		}
		return nil
	})
	slices.SortFunc(all, func(a, b Source) int {
		return cmp.Or(a.Addr.Compare(b.Addr), cmp.Compare(a.Interface, b.Interface), cmp.Compare(a.order(), b.order()))
	})
	return all, err
}

// AllSources returns the sources, and what addresses keep of pools with sticky-address.
func (v *View) AllSources() ([]Source, error) {
	all, err := v.Sources()
	if err != nil {
		return nil, err
	}
	var keepers []Source
	err = v.read(func(r *reading) error {
		keepers, err = r.keepers()
		return err
	})
	all = append(all, keepers...)
	slices.SortStableFunc(all, func(a, b Source) int { return a.Addr.Compare(b.Addr) })
	return all, err
}

// keepers returns the sources that keep an address of a pool.
func (r *reading) keepers() (all []Source, err error) {
	kept, err := r.pins.KeptAddresses()
	if err != nil || len(kept) == 0 {
		return nil, err
	}
	states := make(map[dataplane.KeptAddress]uint32)
	for s := range r.pins.States() {
		used := []netip.Addr{s.Tuple[1].Src, s.Tuple[1].Dst, r.pins.GatewayOf(s.NextHops[0]), r.pins.GatewayOf(s.NextHops[1])}
		slices.SortFunc(used, netip.Addr.Compare)
		for _, to := range slices.Compact(used) {
			states[dataplane.KeptAddress{Source: s.Tuple[0].Src, Address: to}]++
		}
	}
	for one := range kept {
		all = append(all, Source{Addr: one.Source, States: states[one], Keeps: &one.Address})
	}
	slices.SortFunc(all, func(a, b Source) int { return a.Keeps.Compare(*b.Keeps) })
	return all, nil
}

// limitedBy notes that a source is one of a limiter.
func (s *Source) limitedBy(l *dataplane.Limiter, raw *dataplane.Source) {
	s.Limiter, s.Listed, s.Rate = l.Name, raw.Listed, 0
	if s.Bits = int(l.Inet6); s.Addr.Is4() {
		s.Bits = int(l.Inet)
	}
}

func (s *Source) order() int {
	switch {
	case s.Limiter != "":
		return -3
	case s.Rule == nil:
		return -2
	case s.Rule.Old:
		return -1
	}
	return s.Rule.Nr
}

func (r *reading) sourceOf(s *dataplane.Source, rules map[uint16]int) Source {
	one := Source{
		Addr: s.Addr, States: s.States, Connections: s.Connections, Over: s.Over,
		Age: sinceTick(r.info.Now, s.Created),
	}
	if s.Zone != 0 {
		one.Interface = r.interfaceName(int(s.Zone))
	}
	if s.Limit != 0 {
		number, inForce := rules[s.Limit]
		one.Rule = &state.RuleRef{Old: !inForce}
		if inForce && number < len(r.texts) {
			one.Rule.Nr, one.Rule.List = r.texts[number].Nr, r.texts[number].List
		}
		one.Seconds = r.pins.LimitSeconds(s.Limit)
	}
	one.Rate = s.RateAt(r.info.Now, one.Seconds)
	if s.States == 0 {
		one.Expires = max(0, -sinceTick(r.info.Now, s.Expires))
	}
	return one
}

func sinceTick(now, tick state.Tick) time.Duration {
	return time.Duration(now.Since(tick)) * (time.Second / state.TicksPerSecond)
}

// PrintSources writes sources as pfctl -sS does. With verbose it adds ages and rules, as
// pfctl -sS -v does.
func PrintSources(w io.Writer, sources []Source, verbose bool) error {
	p := &textout.Lines{W: w}
	for i := range sources {
		s := &sources[i]
		addr := s.Addr.String()
		if s.Limiter != "" && s.Bits < s.Addr.BitLen() {
			addr += fmt.Sprintf("/%d", s.Bits)
		}
		if s.Interface != "" {
			addr += "%" + s.Interface
		}
		if s.Keeps != nil {
			addr += " -> " + s.Keeps.String()
		}
		p.Line("%s ( states %d, connections %d, rate %.1f/%ds )", addr, s.States, s.Connections, s.Rate, s.Seconds)
		if verbose && s.Keeps != nil {
			p.Line("   sticky-address")
		} else if verbose {
			p.Line("   %s", s.details())
		}
	}
	return p.Err
}

func (s *Source) details() string {
	text := "age " + clock(s.Age)
	if s.States == 0 {
		text += ", expires in " + clock(s.Expires)
	}
	if s.Limiter != "" {
		text += ", limiter " + s.Limiter
	}
	if s.Listed {
		text += ", in its table"
	}
	if s.Rule != nil && s.Rule.Old {
		text += ", of a rule that is gone"
	} else if s.Rule != nil {
		text += ", rule " + s.Rule.String()
	}
	if s.Over {
		text += ", over"
	}
	return text
}

func clock(d time.Duration) string {
	seconds := int(d.Seconds())
	return fmt.Sprintf("%02d:%02d:%02d", seconds/3600, seconds/60%60, seconds%60)
}
