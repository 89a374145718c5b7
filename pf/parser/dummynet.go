package parser

import (
	"strconv"
	"strings"
	"time"

	"weir/pf/ast"
	"weir/pf/diag"
	"weir/pf/token"
)

const (
	mostDummynet = 1<<16 - 1 // numbers of pipes, queues and schedulers
	mostWeight   = 100       // as in ipfw(8)
)

// dummynetWords are the options of pipes, queues and schedulers, with the number of values
// that each has.
var dummynetWords = map[string]int{
	"bw": 1, "delay": 1, "plr": 1, "queue": 1, "buckets": 1, "pipe": 1, "sched": 1, "flowset": 1, "weight": 1, "type": 1,
	"burst": 1, "profile": 1, "droptail": 0, "red": 1, "gred": 1, "codel": 0, "pie": 0, "ecn": 0, "noecn": 0, "noerror": 0,
	"target": 1, "interval": 1, "quantum": 1, "limit": 1, "flows": 1, "tupdate": 1, "alpha": 1, "beta": 1, "max_burst": 1,
	"max_ecnth": 1, "capdrop": 0, "nocapdrop": 0, "derand": 0, "noderand": 0, "onoff": 0, "dre": 0, "ts": 0, "lmax": 1,
	"mask": 0, "sched_mask": 0, "flow_mask": 0, "all": 0, "noflow": 0,
	"src-ip": 1, "dst-ip": 1, "src-ip6": 1, "dst-ip6": 1, "src-port": 1, "dst-port": 1, "proto": 1, "flow-id": 1,
}

// dummynetDef reads the configuration of a pipe, a queue or a scheduler, behind its number.
func (p *parser) dummynetDef(start token.Span, kind, number ast.Word) ast.Stmt {
	d := &ast.DummynetDef{Kind: kind, Number: number}
	if n, err := strconv.ParseUint(number.Text, 10, 32); err != nil || n == 0 || n > mostDummynet {
		p.fail(number.Span, "a %s has a number from 1 to %d", kind.Text, mostDummynet)
	}
	p.expectWord("config", kind.Text+" "+number.Text)
	for p.tok.IsText() {
		at, word := p.tok.Span, p.tok.Text
		values, known := dummynetWords[word]
		if !known {
			p.failWith(diag.Diagnostic{Span: at, Message: "a " + kind.Text + " of dummynet has no option " + strconv.Quote(word)})
		}
		p.advance()
		d.Words = append(d.Words, word)
		for range values {
			value := p.dummynetValue(word)
			d.Words = append(d.Words, value.Text)
			p.dummynetOption(d, word, at.To(p.last), value)
		}
		if values == 0 {
			p.dummynetOption(d, word, at, ast.Word{Span: at})
		}
	}
	d.Span = start.To(p.last)
	return d
}

// dummynetValue reads a value, which may contain or begin with a slash: 10Mbit/s, /128.
func (p *parser) dummynetValue(of string) ast.Word {
	w := ast.Word{Span: p.tok.Span}
	for first := true; first || p.is(token.Slash) || strings.HasSuffix(w.Text, "/"); first = false {
		switch {
		case p.is(token.Slash):
			w.Text += "/"
		case p.tok.IsText():
			w.Text += p.tok.Text
		default:
			p.expected("a value of " + of)
		}
		w.Span = w.Span.To(p.tok.Span)
		p.advance()
	}
	return w
}

// dummynetOption stores what weir's queues have a counterpart for.
func (p *parser) dummynetOption(d *ast.DummynetDef, word string, at token.Span, value ast.Word) {
	switch word {
	case "bw":
		d.Bandwidth = &ast.Bandwidth{Span: at, Rate: p.dummynetRate(value)}
	case "pipe":
		d.Pipe = &value
	case "weight":
		n, err := strconv.ParseUint(value.Text, 10, 8)
		if err != nil || n == 0 || n > mostWeight {
			p.fail(value.Span, "a weight is from 1 to %d", mostWeight)
		}
		d.Weight = uint8(n)
	case "queue":
		if n, err := strconv.ParseUint(value.Text, 10, 16); err == nil {
			d.Slots = uint32(n)
		}
	case "src-ip", "dst-ip", "src-ip6", "dst-ip6", "all":
		if value.Text != "0x00000000" && value.Text != "/0" {
			d.Mask = at
		}
	case "delay":
		if strings.Trim(value.Text, "0ms") != "" {
			d.Delay = at
		}
	case "plr":
		if strings.Trim(value.Text, "0.") != "" {
			d.Loss = at
		}
	case "ecn":
		d.ECN = true
	case "interval":
		d.Interval = dummynetTime(value.Text)
	}
}

// dummynetRate reads a bandwidth of dummynet: bits, or bytes if it says so, in a second.
func (p *parser) dummynetRate(w ast.Word) uint64 {
	text, _ := strings.CutSuffix(w.Text, "/s")
	factor := uint64(1)
	for _, bytes := range []string{"Bytes", "bytes", "Byte", "byte"} {
		if number, ok := strings.CutSuffix(text, bytes); ok {
			text, factor = number, 8
			break
		}
	}
	text = strings.Replace(text, "bits", "bit", 1)
	if factor == 1 {
		text = strings.TrimSuffix(text, "bps")
	}
	bits, percent, problem := BitRate(strings.Replace(text, "k", "K", 1))
	if problem != "" || percent > 0 || strings.HasSuffix(text, "%") || bits >= 1<<59 {
		p.fail(w.Span, "%q is not a bandwidth, such as 10Mbit/s", w.Text)
	}
	return bits * factor
}

// dummynetTime reads a time of CoDel, in microseconds if it names no unit. 0: it is none.
func dummynetTime(text string) time.Duration {
	if n, err := strconv.ParseUint(text, 10, 32); err == nil {
		return time.Duration(n) * time.Microsecond
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0
	}
	return d
}
