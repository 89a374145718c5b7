package parser

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"weir/pf/ast"
	"weir/pf/diag"
	"weir/pf/token"
)

// Limits of a queue's numbers, as in pfctl.
const (
	maxQueueName = 63 // PF_QNAME_SIZE without the NUL
	maxFlows     = 32767
)

// queue reads the definition of a queue, OpenBSD's or one of FreeBSD's ALTQ.
func (p *parser) queue() ast.Stmt {
	q := &ast.Queue{Span: p.tok.Span}
	p.advance()
	q.Name = p.queueName()
	if p.isWord("config") { // of dummynet
		return p.dummynetDef(q.Span, ast.Word{Span: q.Span, Text: "queue"}, q.Name)
	}
	if p.acceptWord("on") {
		q.On = p.plainInterfaces("queue")
		switch {
		case p.acceptWord("in"):
			q.Direction = ast.In
		case p.acceptWord("out"):
			q.Direction = ast.Out
		}
	}
	p.queueOptions(q)
	q.Span = q.Span.To(p.last)
	return q
}

// altq reads altq on, which comes before FreeBSD's queues.
func (p *parser) altq() ast.Stmt {
	d := &ast.Discipline{Span: p.tok.Span}
	p.advance()
	p.expectWord("on", "altq")
	d.Queue.On = p.plainInterfaces("altq")
	p.queueOptions(&d.Queue)
	d.Span = d.Span.To(p.last)
	d.Queue.Span = d.Span
	return d
}

func (p *parser) queueName() ast.Word {
	w := p.name("the name of a queue")
	if len(w.Text) > maxQueueName {
		p.faults.Errorf(w.Span, "the name of a queue has at most %d characters", maxQueueName)
	}
	return w
}

var queueWords = []string{
	"bandwidth", "min", "max", "parent", "default", "flows", "quantum", "qlimit", "priority", "tbrsize", "queue",
	"fair", "ecn", "rtt", "link", "overhead", "mpu", "engine", "modem",
}

// queueOptions reads the options of a queue, each at most once.
func (p *parser) queueOptions(q *ast.Queue) {
	said := map[string]token.Span{}
	for p.accept(token.Comma) || p.is(token.Word) || p.is(token.LeftBrace) {
		if p.is(token.LeftBrace) { // FreeBSD omits the word queue there
			p.subqueues(q)
			continue
		}
		word, at := p.tok.Text, p.tok.Span
		if first, again := said[word]; again {
			p.givenTwice(at, first, word)
		}
		said[word] = at
		p.advance()
		switch {
		case slices.Contains(schedulers, word):
			p.scheduler(q, ast.Word{Span: at, Text: word})
		case word == "on":
			p.failWith(diag.Diagnostic{Span: at, Message: `the interface of a queue comes right after its name: "queue NAME on IF"`})
		case !p.queueOption(q, word) && !p.ownQueueOption(&q.Own, word):
			p.failWith(diag.Diagnostic{
				Span: at, Message: "a queue has no option " + strconv.Quote(word),
				Suggest: diag.Nearest(word, append(queueWords, schedulers...)),
			})
		}
	}
}

// queueOption reads the value of the option word. It returns false if word is not an
// option.
func (p *parser) queueOption(q *ast.Queue, word string) bool {
	switch word {
	case "bandwidth":
		q.Bandwidth = p.bandwidth()
	case "min":
		q.Min = p.bandwidth()
	case "max":
		q.Max = p.bandwidth()
	case "parent":
		parent := p.queueName()
		q.Parent = &parent
	case "default":
		q.Default = p.last
	case "flows":
		q.Flows = uint16(p.within("the number of flows", 1, maxFlows))
	case "quantum":
		q.Quantum = uint16(p.within("the quantum", 1, 1<<16-1))
	case "qlimit":
		n := uint16(p.within("qlimit", 0, 1<<16-1))
		q.QueueLimit = &n
	case "priority":
		q.Priority = p.count("the priority", 255)
	case "tbrsize":
		n := uint32(p.within("tbrsize", 0, 1<<32-1))
		q.ALTQ.Bucket = &n
	case "queue":
		if (p.is(token.Newline) || p.is(token.EOF)) && q.ALTQ.Scheduler != nil && isCodel(q.ALTQ.Scheduler.Name.Text) {
			return true // codel has no queues below it, but FreeBSD still has the word
		}
		p.subqueues(q)
	default:
		return false
	}
	return true
}

// within reads a number within limits.
func (p *parser) within(what string, least, most uint64) uint64 {
	w, n := p.number(what, most)
	if n < least {
		p.fail(w.Span, "%s must be at least %d", what, least)
	}
	return n
}

func (p *parser) subqueues(q *ast.Queue) {
	p.list(func() { q.ALTQ.Queues = append(q.ALTQ.Queues, p.queueName()) })
}

// units are the units of a bandwidth, without the b, B, bit or Bit that may follow.
var units = map[string]uint64{"": 1, "K": 1000, "M": 1000_000, "G": 1000_000_000}

// bandwidth reads a bandwidth and its burst.
func (p *parser) bandwidth() *ast.Bandwidth {
	start := p.tok.Span
	b := &ast.Bandwidth{}
	b.Rate, b.Percent = p.bitRate()
	if p.acceptWord("burst") {
		b.Burst = &ast.Burst{}
		at := p.tok.Span
		var percent uint8
		if b.Burst.Rate, percent = p.bitRate(); percent > 0 {
			p.fail(at, "a burst is given in bits, not in %%")
		}
		p.expectWord("for", "burst")
		b.Burst.For = p.milliseconds()
	}
	b.Span = start.To(p.last)
	return b
}

// bitRate reads bits per second, or a percentage.
func (p *parser) bitRate() (bits uint64, percent uint8) {
	w := p.name("a bandwidth, such as 10M")
	bits, percent, problem := BitRate(w.Text)
	if problem != "" {
		p.fail(w.Span, "%s", problem)
	}
	return bits, percent
}

// BitRate returns the bits per second that text means, or the percentage. problem says
// what is wrong with text; it is empty if nothing is.
func BitRate(text string) (bits uint64, percent uint8, problem string) {
	digits := strings.TrimRight(text, "%BbitKMG")
	unit := text[len(digits):]
	n, err := strconv.ParseFloat(digits, 64)
	if err != nil || n < 0 || strings.Trim(digits, "0123456789.") != "" {
		return 0, 0, fmt.Sprintf("%q is not a bandwidth, such as 10M", text)
	}
	if unit == "%" {
		if n == 0 { // FreeBSD's files have it beside linkshare
			return 0, 0, ""
		}
		if n < 1 || n > 100 {
			return 0, 0, "a share is from 1% to 100%"
		}
		return 0, uint8(n), ""
	}
	for _, suffix := range []string{"Bit", "bit", "B", "b"} {
		if s, ok := strings.CutSuffix(unit, suffix); ok {
			unit = s
			break
		}
	}
	factor, ok := units[unit]
	if !ok {
		return 0, 0, fmt.Sprintf("a bandwidth is in K, M or G, not in %q", unit)
	}
	if n *= float64(factor); n >= 1<<63 {
		return 0, 0, "the bandwidth is too large"
	}
	return uint64(n), 0, ""
}

// milliseconds reads a number followed by ms.
func (p *parser) milliseconds() uint32 {
	w := p.name("a time, such as 100ms")
	number, ok := strings.CutSuffix(w.Text, "ms")
	n, err := strconv.ParseUint(number, 10, 32)
	if !ok || err != nil || n == 0 {
		p.fail(w.Span, "%q is not a time in milliseconds, such as 100ms", w.Text)
	}
	return uint32(n)
}
