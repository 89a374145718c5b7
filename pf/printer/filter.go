package printer

import (
	"fmt"
	"strconv"
	"strings"

	"weir/pf/ast"
)

func receivedOn(c *clauses, i *ast.Interface) {
	if i != nil {
		c.add(pick(i.Not, "!received-on", "received-on"), interfaceName(i))
	}
}

// conditions prints the conditions of a rule, without addresses.
func conditions(c *clauses, f *ast.Filter) {
	if f.TOS != nil {
		c.add("tos", tos(f.TOS))
	}
	if f.DSCP != nil {
		c.add("dscp", dscp(f.DSCP.N))
	}
	if f.Prio != nil {
		c.add(fmt.Sprintf("prio %d", f.Prio.N))
	}
	if m := f.Marked; m != nil {
		c.addIf(m.Not, "!")
		c.add("marked", mark(m))
	}
	if r := f.MaxPktRate; r != nil {
		c.add(fmt.Sprintf("max-pkt-rate %d/%d", r.N, r.Seconds))
	}
	if f.MaxPktSize != nil {
		c.add(fmt.Sprintf("max-pkt-size %d", f.MaxPktSize.N))
	}
}

// mark prints a mark, with its mask if one is given.
func mark(m *ast.Mark) string {
	text := fmt.Sprintf("0x%x", m.N)
	if m.Mask != 0 {
		text += fmt.Sprintf("/0x%x", m.Mask)
	}
	return text
}

func tos(n *ast.Count) string { return fmt.Sprintf("0x%02x", n.N) }

// dscp prints a code point as a name, if it has one.
func dscp(n uint32) string {
	if name := ast.DSCPName(n); name != "" {
		return name
	}
	return strconv.FormatUint(uint64(n), 10)
}

// sets prints a rule's set clause, always in parentheses.
func sets(c *clauses, s *ast.Set) {
	var texts []string
	add := func(format string, args ...any) { texts = append(texts, fmt.Sprintf(format, args...)) }
	switch p := s.Prio; {
	case p == nil:
	case p.N == p.Ack:
		add("prio %d", p.N)
	default:
		add("prio(%d, %d)", p.N, p.Ack)
	}
	switch q := s.Queue; {
	case q == nil:
	case q.Ack == nil:
		add("queue %s", name(q.Name.Text))
	default:
		add("queue(%s, %s)", name(q.Name.Text), name(q.Ack.Text))
	}
	if s.TOS != nil {
		add("tos %s", tos(s.TOS))
	}
	if s.Delay != nil {
		add("delay %d", s.Delay.N)
	}
	if s.Mark != nil {
		add("mark %s", mark(s.Mark))
	}
	c.addIf(len(texts) > 0, "set ("+strings.Join(texts, ", ")+")")
}

func limiter(c *clauses, kind string, l *ast.Limiter) {
	if l == nil {
		return
	}
	c.add(kind + " limiter")
	c.addIf(l.ByID, "id", l.Name.Text)
	c.addIf(!l.ByID, name(l.Name.Text))
	c.addIf(l.Block, "(block)")
}

// probability prints per cent with at most six decimals.
func probability(c *clauses, p *ast.Count) {
	if p == nil {
		return
	}
	s := strconv.FormatFloat(float64(p.N)*100/(1<<32), 'f', 6, 64)
	c.add("probability", strings.TrimSuffix(strings.TrimRight(s, "0"), ".")+"%")
}

func scrub(c *clauses, s *ast.Scrub) {
	if s == nil {
		return
	}
	var o clauses
	o.addIf(s.NoDF, "no-df")
	o.addIf(s.RandomID, "random-id")
	if s.MinTTL != nil {
		o.add(fmt.Sprintf("min-ttl %d", s.MinTTL.N))
	}
	o.addIf(s.ReassembleTCP, "reassemble tcp")
	if s.MaxMSS != nil {
		o.add(fmt.Sprintf("max-mss %d", s.MaxMSS.N))
	}
	c.addIf(len(o) > 0, "scrub ("+o.String()+")")
}

func divert(c *clauses, d *ast.Divert) {
	if d == nil {
		return
	}
	switch {
	case d.Kind == ast.DivertReply:
		c.add("divert-reply")
		return
	case d.Kind == ast.DivertPacket:
		c.add("divert-packet port", name(d.Port.Text))
		return
	case d.Host == nil:
		c.add("divert-to", d.Port.Text)
		return
	}
	c.add("divert-to", address(d.Host), "port", name(d.Port.Text))
}
