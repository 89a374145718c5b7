package parser

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"weir/pf/ast"
	"weir/pf/diag"
	"weir/pf/token"
)

// Limits of weir's own options of queues. Those of lines are tc-cake's.
const (
	leastOverhead = -64
	mostOverhead  = 256
	mostMPU       = 256
	leastRTT      = 100 * time.Microsecond
	mostRTT       = 10 * time.Second
)

// ownQueueOption reads the value of an option that only weir's queues have. It returns
// false if word is not one.
func (p *parser) ownQueueOption(o *ast.OwnQueue, word string) bool {
	at := p.last
	switch word {
	case "fair":
		o.Fair = p.fairness()
		o.FairAt = at.To(p.last)
		return true
	case "ecn":
		o.ECN = at
		return true
	case "rtt":
		o.RTT = p.rtt()
		return true
	case "engine":
		o.Engine = p.engine()
		p.heldFrom(o, at)
		return true
	case "modem":
		o.Modem = at
		p.heldFrom(o, at)
		return true
	case "link":
		p.list(func() { o.Link = append(o.Link, p.linkKind()) })
	case "overhead":
		o.Overhead = p.overhead()
	case "mpu":
		o.MPU = p.count("mpu", mostMPU)
	default:
		return false
	}
	if !o.Line.IsValid() {
		o.Line = at.To(p.last)
	}
	return true
}

// heldFrom notes where the first of engine and modem stands.
func (p *parser) heldFrom(o *ast.OwnQueue, at token.Span) {
	if !o.Held.IsValid() {
		o.Held = at.To(p.last)
	}
}

func (p *parser) engine() ast.Engine {
	if p.acceptWord("queue") { // a keyword
		return ast.EngineQueue
	}
	w := p.word("auto, phantom or queue")
	n := slices.Index(ast.EngineWords[:], w.Text)
	if n <= 0 {
		p.failWith(diag.Diagnostic{
			Span: w.Span, Message: "engine takes auto, phantom or queue, not " + strconv.Quote(w.Text),
			Suggest: diag.Nearest(w.Text, ast.EngineWords[1:]),
		})
	}
	return ast.Engine(n)
}

func (p *parser) fairness() ast.Fairness {
	w := p.word("host, flow or host-flow")
	n := slices.Index(ast.FairWords[:], w.Text)
	if n <= 0 {
		p.failWith(diag.Diagnostic{
			Span: w.Span, Message: "fair takes host, flow or host-flow, not " + strconv.Quote(w.Text),
			Suggest: diag.Nearest(w.Text, ast.FairWords[1:]),
		})
	}
	return ast.Fairness(n)
}

// timeUnits are the units of a round-trip time, the shortest word last.
var timeUnits = []struct {
	word string
	unit time.Duration
}{{"us", time.Microsecond}, {"ms", time.Millisecond}, {"s", time.Second}}

func (p *parser) rtt() *ast.Time {
	w := p.word("a time, such as 50ms")
	for _, u := range timeUnits {
		digits, ok := strings.CutSuffix(w.Text, u.word)
		n, err := strconv.ParseUint(digits, 10, 32)
		if !ok || err != nil {
			continue
		}
		d := time.Duration(n) * u.unit
		if d < leastRTT || d > mostRTT {
			p.fail(w.Span, "a round-trip time is from 100us to 10s")
		}
		return &ast.Time{Span: w.Span, For: d}
	}
	p.fail(w.Span, "%q is not a time, such as 50ms", w.Text)
	return nil
}

func (p *parser) linkKind() ast.Word {
	w := p.word("a kind of line, such as ethernet")
	if _, known := ast.Links[w.Text]; !known {
		p.failWith(diag.Diagnostic{
			Span: w.Span, Message: "weir knows no kind of line " + strconv.Quote(w.Text),
			Suggest: diag.Nearest(w.Text, slices.Sorted(maps.Keys(ast.Links))),
		})
	}
	return w
}

func (p *parser) overhead() *ast.Signed {
	start := p.tok.Span
	sign := int32(1)
	if p.accept(token.Minus) {
		sign = -1
	}
	_, bytes := p.number("overhead", mostOverhead)
	o := &ast.Signed{Span: start.To(p.last), N: sign * int32(bytes)}
	if o.N < leastOverhead {
		p.fail(o.Span, "overhead is at least %d", leastOverhead)
	}
	return o
}
