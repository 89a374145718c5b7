package parser

import (
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"weir/pf/ast"
	"weir/pf/diag"
	"weir/pf/token"
)

// Limits of PPPoE interfaces.
const (
	mostSessionName = 10 // the device at the other end has "-line" behind it
	leastPPPoEMTU   = 576
	mostPPPoEMTU    = 1500
	mostHostUniq    = 128
	leastDelegation = 16 // bits of a prefix that is asked for
	mostDelegation  = 64
	mostSubnet      = 0xffffffff
	mostPCP         = 7
)

var pppoeWords = []string{"user", "password", "service", "ac", "host-uniq", "mtu", "auth", "priority", "reconnect", "dns", "inet", "inet6", "no", "prefix", "script"}

// pppoe reads the definition of an interface that a PPPoE session makes.
func (p *parser) pppoe() ast.Stmt {
	s := &ast.PPPoE{Span: p.tok.Span}
	p.advance()
	s.Name = p.name("the name of an interface")
	if len(s.Name.Text) > mostSessionName {
		p.faults.Errorf(s.Name.Span, "the name of a PPPoE interface has at most %d characters", mostSessionName)
	}
	p.expectWord("on", "the name of a PPPoE interface")
	s.On = p.name("the name of an interface")
	said := map[string]token.Span{}
	for p.accept(token.Comma) || p.is(token.Word) {
		word, at := p.tok.Text, p.tok.Span
		p.advance()
		if word == "no" {
			word = "no " + p.tok.Text
		}
		if first, again := said[word]; again {
			p.givenTwice(at, first, word)
		}
		said[word] = at
		if !p.pppoeOption(s, word, at) {
			p.failWith(diag.Diagnostic{
				Span: at.To(p.last), Message: "a PPPoE interface has no option " + strconv.Quote(word), Suggest: diag.Nearest(word, pppoeWords),
			})
		}
	}
	s.Span = s.Span.To(p.last)
	if (s.User == nil) != (s.Password == nil) {
		p.faults.Errorf(s.Span, "user and password go together")
	}
	return s
}

func (p *parser) pppoeOption(s *ast.PPPoE, word string, at token.Span) bool {
	text := func(what string) *ast.Word {
		w := p.name(what)
		return &w
	}
	switch word {
	case "user":
		s.User = text("the name of the user")
	case "password":
		s.FromEnv = p.isWord("env")
		if !s.FromEnv && !p.isWord("file") {
			p.fail(p.tok.Span, `write password file "/path" or password env "NAME": weir reads no password from the configuration, which may be shown`)
		}
		p.advance()
		s.Password = text("where the password is")
		if !s.FromEnv && !strings.HasPrefix(s.Password.Text, "/") {
			p.faults.Errorf(s.Password.Span, "the path of a file with a password begins with /")
		}
	case "service":
		s.Service = text("the name of a service")
	case "ac":
		s.AC = text("the name of a concentrator")
	case "host-uniq":
		s.HostUniq = text("bytes in hexadecimal")
		if b, err := hex.DecodeString(strings.TrimPrefix(s.HostUniq.Text, "0x")); err != nil || len(b) == 0 || len(b) > mostHostUniq {
			p.faults.Errorf(s.HostUniq.Span, "%q is not 1 to %d bytes in hexadecimal, such as 0x1f2e", s.HostUniq.Text, mostHostUniq)
		}
	case "mtu":
		s.MTU = &ast.Count{Span: p.tok.Span, N: uint32(p.within("the MTU of a PPPoE interface", leastPPPoEMTU, mostPPPoEMTU))}
	case "auth":
		p.list(func() { s.Auth = append(s.Auth, p.pppoeMethod()) })
	case "inet", "inet6":
		family := ast.Inet
		if word == "inet6" {
			family = ast.Inet6
		}
		if s.Family != ast.AnyFamily && s.Family != family {
			p.faults.Errorf(at, "inet and inet6 exclude each other: without either a session has both families")
		}
		s.Family = family
	case "no route":
		s.NoRoute = true
		p.advance()
	case "no max-mss":
		s.NoMSS = true
		p.advance()
	case "priority":
		s.Priority = &ast.Count{Span: p.tok.Span, N: uint32(p.within("the priority of a PPPoE interface", 0, mostPCP))}
	case "reconnect":
		p.expectWord("at", "reconnect")
		s.Renew = p.timeOfDay()
	case "dns":
		s.DNS = text("who is told of the name servers")
		if s.DNS.Text != "resolved" {
			p.faults.Errorf(s.DNS.Span, `expected "resolved", found %q; a script tells others`, s.DNS.Text)
		}
	case "no pass":
		s.NoPass = true
		p.advance()
	case "prefix":
		s.Prefix = p.delegation(at)
	case "script":
		s.Script = text("the path of a program")
		if !strings.HasPrefix(s.Script.Text, "/") {
			p.faults.Errorf(s.Script.Span, "the path of a script begins with /")
		}
	default:
		return false
	}
	return true
}

func (p *parser) pppoeMethod() ast.Word {
	w := p.name("chap, mschapv2 or pap")
	if w.Text != "chap" && w.Text != "mschapv2" && w.Text != "pap" {
		p.fail(w.Span, `expected "chap", "mschapv2" or "pap", found %q`, w.Text)
	}
	return w
}

// delegation reads to which interfaces a prefix of the provider goes.
func (p *parser) delegation(start token.Span) *ast.Delegation {
	d := &ast.Delegation{}
	if p.is(token.Number) {
		d.Length = &ast.Count{Span: p.tok.Span, N: uint32(p.within("the length of a prefix", leastDelegation, mostDelegation))}
	}
	p.expectWord("to", "prefix")
	p.list(func() {
		l := ast.DelegationLink{Word: p.name("the name of an interface")}
		if p.acceptWord("subnet") {
			l.Subnet = &ast.Count{Span: p.tok.Span, N: uint32(p.within("the number of a subnet", 0, mostSubnet))}
		}
		d.To = append(d.To, l)
	})
	d.Span = start.To(p.last)
	return d
}

// timeOfDay reads hours and minutes.
func (p *parser) timeOfDay() *ast.Word {
	w := p.name("a time of day, such as 04:00")
	if t, err := time.Parse("15:04", w.Text); err != nil {
		p.faults.Errorf(w.Span, "%q is no time of day, such as 04:00", w.Text)
	} else {
		w.Text = t.Format("15:04")
	}
	return &w
}
