package resolve

import (
	"encoding/hex"
	"slices"
	"strings"

	"weir/pf/ast"
	"weir/pf/diag"
	"weir/pf/token"
)

// PPPoE is an interface that a PPPoE session makes.
type PPPoE struct {
	Name, On string
	User     string
	Password PasswordSource
	Service  string
	AC       string
	HostUniq []byte // nil: random
	MTU      uint16
	Auth     []string // chap, mschapv2, pap; none: all
	// Priority is the PCP of frames with control packets, on a VLAN; nil: that of all other frames.
	Priority *uint8
	Renew    string // time of day at which a new session is made, as 15:04; empty: never
	Resolved bool   // systemd-resolved is told of the name servers
	Inet     bool   // IPv4 is asked for
	Inet6    bool
	Route    bool   // default routes lead there
	Order    int    // of the statement: the default routes of the first go before those of the others
	Script   string // is run when the session comes and goes; empty: none
	// PrefixLength is that of the prefix to ask for; 0: the provider chooses. PrefixTo are the
	// interfaces that have a part of it; none: no prefix is asked for.
	PrefixLength uint8
	PrefixTo     []PrefixLink
}

// PrefixLink is an interface with a /64 of a provider's prefix.
type PrefixLink struct {
	Name   string
	Subnet uint32 // its number within the prefix
}

// PasswordSource says where a password is. It is not in the configuration, which may be shown.
type PasswordSource struct {
	File string // empty: Env
	Env  string // variable of the daemon's environment
}

// Packets of a session are at most this long unless mtu says so, and without sessions.
const (
	sessionMTU  = 1492
	ethernetMTU = 1500
)

// Bytes of the headers of IP and TCP.
const (
	headers4 = 40
	headers6 = 60
)

// declareSessions makes the interfaces of the statements known, before there are any.
func (r *resolver) declareSessions(stmts []ast.Stmt) {
	for _, s := range stmts {
		if s, ok := s.(*ast.PPPoE); ok {
			r.unknown[s.Name.Text] = true
			r.dialled[s.Name.Text] = s.Name.Span
		}
	}
}

// pppoe checks a PPPoE interface and stores it.
func (r *resolver) pppoe(s *ast.PPPoE) {
	if r.scope != r.main {
		r.faults.Errorf(s.Span, "PPPoE interfaces are not defined in an anchor")
		return
	}
	if s.Name.Text == s.On.Text {
		r.faults.Errorf(s.On.Span, "%q carries itself", s.On.Text)
	}
	if at := slices.IndexFunc(r.options.PPPoE, func(o PPPoE) bool { return o.Name == s.Name.Text }); at >= 0 {
		r.faults.Add(diag.Diagnostic{
			Span: s.Name.Span, Message: "another PPPoE interface has the name " + s.Name.Text,
			Related: []diag.Related{{Span: r.sessions[at].Name.Span, Note: "this one"}},
		})
		return
	}
	r.known(s.On)
	o := PPPoE{
		Name: s.Name.Text, On: s.On.Text, MTU: sessionMTU, Route: !s.NoRoute, Order: len(r.options.PPPoE),
		User: textOf(s.User), Service: textOf(s.Service), AC: textOf(s.AC), Script: textOf(s.Script),
		Inet: s.Family != ast.Inet6, Inet6: s.Family != ast.Inet,
	}
	if s.FromEnv {
		o.Password.Env = textOf(s.Password)
	} else {
		o.Password.File = textOf(s.Password)
	}
	o.Renew, o.Resolved = textOf(s.Renew), s.DNS != nil
	if s.Priority != nil {
		n := uint8(s.Priority.N)
		o.Priority = &n
	}
	if s.MTU != nil {
		o.MTU = uint16(s.MTU.N)
	}
	if s.HostUniq != nil {
		o.HostUniq, _ = hex.DecodeString(strings.TrimPrefix(s.HostUniq.Text, "0x")) // the parser has checked it
	}
	for _, w := range s.Auth {
		o.Auth = append(o.Auth, w.Text)
	}
	r.options.PPPoE = append(r.options.PPPoE, o)
	r.sessions = append(r.sessions, s)
	if !s.NoMSS {
		r.clamp(s.Span, s.Name, uint32(o.MTU))
	}
	if s.Prefix != nil {
		r.delegate(s, &r.options.PPPoE[len(r.options.PPPoE)-1])
	}
	printed := *s
	printed.NoMSS, printed.NoPass = true, s.Prefix != nil // the rules are printed
	r.out.Stmts = append(r.out.Stmts, &printed)
}

func textOf(w *ast.Word) string {
	if w == nil {
		return ""
	}
	return w.Text
}

// clamp adds the rules that keep TCP's segments from being too long for the interface, in front of
// all others. Its MTU counts as it is now.
func (r *resolver) clamp(at token.Span, name ast.Word, mtu uint32) {
	if i := r.host.Interface(name.Text); i != nil && i.MTU > headers6 {
		mtu = i.MTU
	}
	if mtu >= ethernetMTU {
		return
	}
	for _, f := range []struct {
		family  ast.Family
		headers uint32
	}{{ast.Inet, headers4}, {ast.Inet6, headers6}} {
		rule := &ast.Rule{
			Span: at, Origin: at, Action: ast.Match, Family: f.family,
			On:     []ast.Interface{{Span: name.Span, Name: name.Text}},
			Protos: []ast.Proto{{Word: ast.Word{Span: at, Text: "tcp"}, Number: 6}},
		}
		rule.Scrub = &ast.Scrub{Span: at, MaxMSS: &ast.Count{Span: at, N: mtu - f.headers}}
		if !r.addFirst(rule) {
			return
		}
	}
}

// addFirst adds a rule in front of all that the configuration has, behind others like it. False:
// there is no more room.
func (r *resolver) addFirst(rule *ast.Rule) bool {
	before := len(r.rules)
	r.add(rule)
	if len(r.rules) != before+1 {
		return false
	}
	copy(r.rules[r.clamps+1:], r.rules[r.clamps:before])
	r.rules[r.clamps] = rule
	r.clamps++
	return true
}
