package parser

import (
	"strconv"
	"strings"

	"weir/pf/ast"
	"weir/pf/diag"
	"weir/pf/token"
)

// filterWords start the clauses of an ast.Filter.
var filterWords = map[string]func(*parser, *ast.Rule, token.Span){
	"received-on": func(p *parser, r *ast.Rule, at token.Span) { p.receivedOn(r, at, false) },
	"tos": func(p *parser, r *ast.Rule, at token.Span) {
		single(p, &r.TOS, at, "tos", p.tos())
	},
	"dscp": func(p *parser, r *ast.Rule, at token.Span) {
		single(p, &r.DSCP, at, "dscp", p.dscp())
	},
	"prio": func(p *parser, r *ast.Rule, at token.Span) {
		single(p, &r.Prio, at, "prio", p.count("prio", mostPrio))
	},
	"marked":       func(p *parser, r *ast.Rule, at token.Span) { p.marked(r, at, false) },
	"max-pkt-rate": (*parser).maxPktRate,
	"max-pkt-size": func(p *parser, r *ast.Rule, at token.Span) {
		single(p, &r.MaxPktSize, at, "max-pkt-size", p.count("max-pkt-size", 1<<16-1))
	},
	"set": (*parser).sets,
	"queue": func(p *parser, r *ast.Rule, at token.Span) {
		single(p, &r.Set.Queue, at, "queue", p.assigned())
	},
	"state":         (*parser).stateLimiter,
	"source":        (*parser).sourceLimiter,
	"fragment":      func(_ *parser, r *ast.Rule, at token.Span) { r.Fragment = at },
	"probability":   (*parser).probability,
	"once":          func(_ *parser, r *ast.Rule, at token.Span) { r.Once = at },
	"rtable":        (*parser).rtable,
	"divert-to":     (*parser).divertTo,
	"divert-reply":  (*parser).divertReply,
	"divert-packet": (*parser).divertPacket,
	"scrub":         (*parser).scrub,
}

// Limits of values in filter options.
const (
	mostPrio   = 7         // IFQ_MAXPRIO
	mostRTable = 1<<16 - 1 // FreeBSD's; OpenBSD has 255
)

// filterOption reads one of the clauses of an ast.Filter, if one is here.
func (p *parser) filterOption(r *ast.Rule) bool {
	start, next := p.tok.Span, p.tok.Text
	if not := p.negated(); not != nil {
		p.advance()
		p.advance()
		not(r, start, true)
		return true
	}
	read := filterWords[next]
	if read == nil || !p.is(token.Word) {
		return false
	}
	if (next == "state" || next == "source") && p.peek().Text != "limiter" {
		return false
	}
	p.advance()
	read(p, r, start)
	return true
}

// negated returns the function that reads the negated clause here, or nil if there is none.
func (p *parser) negated() func(r *ast.Rule, at token.Span, not bool) {
	if !p.is(token.Not) || p.peek().Kind != token.Word {
		return nil
	}
	switch p.peek().Text {
	case "received-on":
		return p.receivedOn
	case "marked":
		return p.marked
	}
	return nil
}

// single stores a clause that may be given once.
func single[T interface{ Whole() token.Span }](p *parser, target **T, at token.Span, name string, value *T) {
	if *target != nil {
		p.givenTwice(at.To(p.last), (**target).Whole(), name)
		return
	}
	*target = value
}

// last stores a clause. As in pf, the last one counts.
func last[T interface{ Whole() token.Span }](p *parser, target **T, at token.Span, name string, value *T) {
	if *target != nil {
		p.faults.Add(diag.Diagnostic{
			Span: at.To(p.last), Severity: diag.Warning, Message: name + " is given twice: the last counts",
			Related: []diag.Related{{Span: (**target).Whole()}},
		})
	}
	*target = value
}

func (p *parser) receivedOn(r *ast.Rule, at token.Span, not bool) {
	i := p.ruleInterface()
	switch {
	case i.Not:
		p.faults.Errorf(i.Span, "write ! before received-on")
	case i.RDomain != nil:
		p.faults.Errorf(i.Span, "received-on takes an interface or a group")
	}
	i.Not, i.Span = not, at.To(p.last)
	single(p, &r.ReceivedOn, at, "received-on", &i)
}

// count reads a number.
func (p *parser) count(what string, most uint64) *ast.Count {
	at := p.tok.Span
	_, n := p.number(what, most)
	return &ast.Count{Span: at, N: uint32(n)}
}

// tosNames are names of values of the type of service: those of RFC 1349 and RFC 791, and
// of the code points of RFC 2474, 2597, 3246 and 5865.
var tosNames = map[string]uint32{
	"lowdelay": 0x10, "throughput": 0x08, "reliability": 0x04,
	"critical": 0xa0, "inetcontrol": 0xc0, "netcontrol": 0xe0,
	"af11": 0x28, "af12": 0x30, "af13": 0x38, "af21": 0x48, "af22": 0x50, "af23": 0x58,
	"af31": 0x68, "af32": 0x70, "af33": 0x78, "af41": 0x88, "af42": 0x90, "af43": 0x98,
	"cs0": 0x00, "cs1": 0x20, "cs2": 0x40, "cs3": 0x60, "cs4": 0x80, "cs5": 0xa0, "cs6": 0xc0, "cs7": 0xe0,
	"ef": 0xb8, "va": 0xb0,
}

// tos reads a type of service: a name, or a number that may be hexadecimal.
func (p *parser) tos() *ast.Count {
	if p.is(token.Number) {
		return p.count("tos", 255)
	}
	w := p.word("a type of service")
	n, known := tosNames[strings.ToLower(w.Text)]
	if digits, hex := strings.CutPrefix(w.Text, "0x"); !known && hex {
		value, err := strconv.ParseUint(digits, 16, 8)
		n, known = uint32(value), err == nil
	}
	if !known {
		p.fail(w.Span, "%q is not a type of service: expected a number up to 255, lowdelay, throughput, reliability, or a code point such as af11, cs1 or ef", w.Text)
	}
	return &ast.Count{Span: w.Span, N: n}
}

// dscp reads a code point: a name, or a number that may be hexadecimal.
func (p *parser) dscp() *ast.Count {
	if p.is(token.Number) {
		return p.count("dscp", ast.MostDSCP)
	}
	w := p.word("a code point")
	n, known := ast.DSCP(strings.ToLower(w.Text))
	if digits, hex := strings.CutPrefix(w.Text, "0x"); !known && hex {
		value, err := strconv.ParseUint(digits, 16, 8)
		n, known = uint32(value), err == nil && value <= ast.MostDSCP
	}
	if !known {
		p.fail(w.Span, "%q is not a code point: expected a number up to 63, or a name such as ef, af41, cs1 or le", w.Text)
	}
	return &ast.Count{Span: w.Span, N: n}
}

func (p *parser) maxPktRate(r *ast.Rule, at token.Span) {
	rate := &ast.Rate{}
	_, n := p.number("max-pkt-rate", 1<<32-1)
	p.expect(token.Slash, "the number of max-pkt-rate")
	_, seconds := p.number("the seconds of max-pkt-rate", 1<<32-1)
	rate.N, rate.Seconds, rate.Span = uint32(n), uint32(seconds), at.To(p.last)
	single(p, &r.MaxPktRate, at, "max-pkt-rate", rate)
}

// sets reads one set option, or several in parentheses.
func (p *parser) sets(r *ast.Rule, _ token.Span) {
	if !p.accept(token.LeftParen) {
		p.set1(&r.Set)
		return
	}
	for {
		p.set1(&r.Set)
		p.comma(token.RightParen)
		if p.accept(token.RightParen) {
			return
		}
	}
}

func (p *parser) set1(s *ast.Set) {
	at := p.tok.Span
	switch {
	case p.acceptWord("prio"):
		single(p, &s.Prio, at, "set prio", p.setPrio())
	case p.acceptWord("queue"):
		single(p, &s.Queue, at, "queue", p.assigned())
	case p.acceptWord("tos"):
		single(p, &s.TOS, at, "set tos", p.tos())
	case p.acceptWord("dscp"): // set tos leaves the bits of congestion alone, too
		n := p.dscp()
		n.N <<= 2
		single(p, &s.TOS, at, "set tos or set dscp", n)
	case p.acceptWord("delay"):
		single(p, &s.Delay, at, "set delay", p.count("delay", 1<<16-1))
	case p.acceptWord("mark"):
		single(p, &s.Mark, at, "set mark", p.mark(at))
	default:
		p.expected("prio, queue, tos, dscp, delay or mark after set")
	}
}

func (p *parser) setPrio() *ast.SetPrio {
	at := p.tok.Span
	if !p.accept(token.LeftParen) {
		n := p.count("prio", mostPrio)
		return &ast.SetPrio{Span: at, N: n.N, Ack: n.N}
	}
	n := p.count("prio", mostPrio)
	p.accept(token.Comma)
	ack := p.count("prio", mostPrio)
	p.expect(token.RightParen, "the two priorities")
	return &ast.SetPrio{Span: at.To(p.last), N: n.N, Ack: ack.N}
}

// assigned reads a queue, or one or two in parentheses.
func (p *parser) assigned() *ast.SetQueue {
	at := p.tok.Span
	if !p.accept(token.LeftParen) {
		return &ast.SetQueue{Span: at, Name: p.queueName()}
	}
	q := &ast.SetQueue{Name: p.queueName()}
	p.accept(token.Comma)
	if !p.is(token.RightParen) {
		ack := p.queueName()
		q.Ack = &ack
	}
	p.expect(token.RightParen, "the names of queues")
	q.Span = at.To(p.last)
	return q
}

func (p *parser) stateLimiter(r *ast.Rule, at token.Span) {
	single(p, &r.StateLimiter, at, "state limiter", p.limiter(at))
}

func (p *parser) sourceLimiter(r *ast.Rule, at token.Span) {
	single(p, &r.SourceLimiter, at, "source limiter", p.limiter(at))
}

// limiter reads a limiter's name, or its number after id, and what happens to packets
// above its limit.
func (p *parser) limiter(at token.Span) *ast.Limiter {
	p.expectWord("limiter", "state or source")
	l := &ast.Limiter{}
	if l.ByID = p.isWord("id") && p.peek().Kind == token.Number; l.ByID {
		p.advance()
		l.Name, _ = p.number("the number of a limiter", maxLimiterID)
	} else {
		l.Name = p.name("the name of a limiter")
	}
	if p.accept(token.LeftParen) {
		l.Block = p.isWord("block")
		if !l.Block && !p.isWord("no-match") {
			p.expected(`"block" or "no-match"`)
		}
		p.advance()
		p.expect(token.RightParen, "the option of the limiter")
	}
	l.Span = at.To(p.last)
	return l
}

// probability reads a probability: 0.5 or 50%.
func (p *parser) probability(r *ast.Rule, at token.Span) {
	w := p.word("a probability")
	digits, percent := strings.CutSuffix(w.Text, "%")
	f, err := strconv.ParseFloat(digits, 64)
	if percent {
		f *= 0.01
	}
	if err != nil || !(f >= 0 && f <= 1) {
		p.fail(w.Span, "%q is not a probability: expected 0 to 1, or 0%% to 100%%", w.Text)
	}
	n := uint32(f*(1<<32-1) + 0.5)
	last(p, &r.Probability, at, "probability", &ast.Count{Span: at.To(p.last), N: max(n, 1)})
}

func (p *parser) rtable(r *ast.Rule, at token.Span) {
	last(p, &r.RTable, at, "rtable", p.rtableNumber())
}

func (p *parser) rtableNumber() *ast.Count {
	return p.count("the number of a routing table", mostRTable)
}
