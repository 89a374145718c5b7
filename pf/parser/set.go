package parser

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"weir/pf/ast"
	"weir/pf/diag"
	"weir/pf/token"
)

// set reads an option.
func (p *parser) set() ast.Stmt {
	start := p.tok.Span
	if p.depth > 0 {
		p.fail(start, "options are not allowed in anchors")
	}
	p.advance()
	name := p.tok
	if !p.tok.IsText() {
		p.expected("the name of an option after set")
	}
	if p.is(token.Word) {
		if method := options[name.Text]; method != nil {
			p.advance()
			return method(p, start)
		}
		if values := optionValues[name.Text]; values != nil {
			return p.option(start, values)
		}
	}
	p.failWith(diag.Diagnostic{
		Span:    name.Span,
		Message: "there is no option " + p.describe(),
		Suggest: diag.Nearest(name.Text, optionWords()),
	})
	return nil
}

// options are the options with a form of their own.
var options = map[string]func(*parser, token.Span) ast.Stmt{
	"timeout":         (*parser).setTimeout,
	"limit":           (*parser).setLimit,
	"skip":            (*parser).setSkip,
	"interface-group": (*parser).setInterfaceGroup,
	"gateway":         (*parser).setGateway,
	"block-policy":    (*parser).setBlockPolicy,
	"implicit-pass":   (*parser).setImplicitPass,
	"mark-mask":       (*parser).setMarkMask,
	"spread":          (*parser).setSpread,
	"pflow":           (*parser).setPFlow,
	"reassemble":      (*parser).setReassemble,
	"hostid":          (*parser).setHostID,
	"syncookies":      (*parser).setSyncookies,
	"state-defaults":  (*parser).setStateDefaults,
	"loginterface":    (*parser).setLoginterface,
	"fingerprints":    (*parser).setFingerprints,
	"keepcounters":    (*parser).setKeepcounters,
	"table-store":     (*parser).setTableStore,
}

// optionValues are the options of one word, with its allowed values.
var optionValues = map[string][]string{
	"optimization":         {"default", "normal", "satellite", "high-latency", "conservative", "aggressive"},
	"ruleset-optimization": {"none", "basic", "profile"},
	"state-policy":         {"if-bound", "floating"},
	"debug": {
		"emerg", "panic", "alert", "crit", "err", "error", "warning", "warn", "notice", "info", "debug",
		"none", "urgent", "misc", "loud", // FreeBSD's
	},
	"require-order": {"yes", "no"},
	"fail-policy":   {"drop", "return"},

	"pfctl-may-open": {"yes", "no"}, // weir's own
}

// optionWords returns the names of all options.
func optionWords() []string {
	return slices.Concat(slices.Sorted(maps.Keys(options)), slices.Sorted(maps.Keys(optionValues)))
}

// anyCase are the options whose word pfctl also accepts in upper case.
var anyCase = setOf("optimization", "debug")

// option reads an option, whose name is the current token, and its word.
func (p *parser) option(start token.Span, values []string) ast.Stmt {
	name := ast.Word{Span: p.tok.Span, Text: p.tok.Text}
	p.advance()
	if !p.tok.IsText() {
		p.expected("a value after set " + name.Text)
	}
	value := ast.Word{Span: p.tok.Span, Text: p.tok.Text}
	if anyCase[name.Text] {
		value.Text = strings.ToLower(value.Text)
	}
	if !slices.Contains(values, value.Text) {
		p.failWith(diag.Diagnostic{
			Span:    value.Span,
			Message: "set " + name.Text + " takes " + alternatives(values) + ", not " + p.describe(),
			Suggest: diag.Nearest(value.Text, values),
		})
	}
	p.advance()
	return &ast.Option{Span: start.To(p.last), Name: name, Value: value}
}

// alternatives returns words as in "a, b or c".
func alternatives(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

func (p *parser) setTimeout(start token.Span) ast.Stmt {
	s := &ast.Timeout{}
	p.list(func() { s.Items = append(s.Items, p.setting(timeoutNames, "timeout")) })
	s.Span = start.To(p.last)
	return s
}

func (p *parser) setLimit(start token.Span) ast.Stmt {
	s := &ast.Limit{}
	p.list(func() { s.Items = append(s.Items, p.setting(limitNames, "limit")) })
	s.Span = start.To(p.last)
	return s
}

// setting reads one of names, in any case as in pfctl, and a number.
func (p *parser) setting(names []string, kind string) ast.Setting {
	name := p.word("the name of a " + kind)
	if lower := strings.ToLower(name.Text); slices.Contains(names, lower) {
		name.Text = lower
	}
	if !slices.Contains(names, name.Text) {
		p.failWith(diag.Diagnostic{
			Span:    name.Span,
			Message: "there is no " + kind + " " + strconv.Quote(name.Text),
			Suggest: diag.Nearest(name.Text, names),
		})
	}
	value, n := p.number("the value of "+name.Text, 1<<32-1)
	return ast.Setting{Name: name, Value: value, Count: uint32(n)}
}

// number reads a number that is not greater than limit.
func (p *parser) number(what string, limit uint64) (ast.Word, uint64) {
	if p.tok.Kind != token.Number {
		p.expected("a number for " + what)
	}
	n, err := strconv.ParseUint(p.tok.Text, 10, 64)
	if err != nil || n > limit {
		p.fail(p.tok.Span, "%s is too large: at most %d", what, limit)
	}
	return p.word(what), n
}

func (p *parser) setSkip(start token.Span) ast.Stmt {
	s := &ast.Skip{}
	if !p.is(token.Newline) && !p.is(token.EOF) {
		p.expectWord("on", "set skip")
		s.Interfaces = p.plainInterfaces("set skip on")
	}
	if len(s.Interfaces) == 1 && s.Interfaces[0].Name == "none" {
		s.Interfaces = nil
	}
	s.Span = start.To(p.last)
	return s
}

func (p *parser) setInterfaceGroup(start token.Span) ast.Stmt {
	s := &ast.InterfaceGroup{Name: p.name("the name of a group")}
	if last := s.Name.Text[len(s.Name.Text)-1]; last >= '0' && last <= '9' {
		p.faults.Errorf(s.Name.Span, "the name of a group does not end in a digit, as those of interfaces do")
	}
	s.Interfaces = p.plainInterfaces("set interface-group")
	s.Span = start.To(p.last)
	return s
}

// setSpread reads set spread INTERFACE auto|off|cores N.
func (p *parser) setSpread(start token.Span) ast.Stmt {
	s := &ast.Spread{Interface: p.name("the name of an interface")}
	s.Mode = ast.Word{Span: p.tok.Span, Text: p.tok.Text}
	switch {
	case p.acceptWord("auto"), p.acceptWord("off"):
	case p.acceptWord("cores"):
		p.list(func() {
			w := p.name("the number of a core")
			n, err := strconv.ParseUint(w.Text, 10, 16)
			if err != nil {
				p.fail(w.Span, "%q is no number of a core", w.Text)
			}
			s.Cores = append(s.Cores, int(n))
		})
	default:
		p.expected(`"auto", "off" or "cores" after the interface`)
	}
	s.Span = start.To(p.last)
	return s
}

// setGateway reads set gateway ADDRESS monitor none|arp|ping [ADDRESS] [states keep|kill].
func (p *parser) setGateway(start token.Span) ast.Stmt {
	s := &ast.Gateway{Address: p.name("the address of a gateway")}
	if !p.acceptWord("monitor") {
		p.expected(`"monitor"`)
	}
	s.Monitor = ast.Word{Span: p.tok.Span, Text: p.tok.Text}
	switch {
	case p.acceptWord("none"), p.acceptWord("arp"):
	case p.acceptWord("ping"):
		if p.tok.IsText() && !p.isWord("states") {
			s.Target = p.name("the address to ping")
		}
	default:
		p.expected(`"none", "arp" or "ping"`)
	}
	if p.acceptWord("states") {
		s.Kill = p.isWord("kill")
		if !p.acceptWord("keep") && !p.acceptWord("kill") {
			p.expected(`"keep" or "kill"`)
		}
	}
	s.Span = start.To(p.last)
	return s
}

// setPFlow reads set pflow to ADDRESS port NUMBER [source ADDRESS] [version 5|10].
func (p *parser) setPFlow(start token.Span) ast.Stmt {
	if !p.acceptWord("to") {
		p.expected(`"to" and the address of a collector`)
	}
	s := &ast.PFlow{To: p.name("the address of a collector")}
	if !p.acceptWord("port") {
		p.expected(`"port"`)
	}
	port, n := p.number("the collector's port", 65535)
	s.Port, s.Number = port, uint16(n)
	if p.acceptWord("source") {
		s.Source = p.name("the address to send from")
	}
	if p.acceptWord("version") {
		s.Version = p.name("5 or 10")
		if s.Version.Text != "5" && s.Version.Text != "10" {
			p.fail(s.Version.Span, "flows are told by version 5 (NetFlow) or 10 (IPFIX), not %s", s.Version.Text)
		}
	}
	s.Span = start.To(p.last)
	return s
}

// plainInterfaces reads the names of interfaces, without !.
func (p *parser) plainInterfaces(of string) []ast.Interface {
	var list []ast.Interface
	p.list(func() {
		i := p.interfaceName()
		if i.Not {
			p.faults.Errorf(i.Span, "%s takes no !", of)
		}
		list = append(list, i)
	})
	return list
}

func (p *parser) setBlockPolicy(start token.Span) ast.Stmt {
	policy := p.tok
	if !p.acceptWord("drop") && !p.acceptWord("return") {
		p.expected(`"drop" or "return" after set block-policy`)
	}
	return &ast.BlockPolicy{Span: start.To(p.last), Policy: ast.Word{Span: policy.Span, Text: policy.Text}}
}

func (p *parser) setImplicitPass(start token.Span) ast.Stmt {
	yes := p.yesNo("set implicit-pass")
	return &ast.ImplicitPass{Span: start.To(p.last), Yes: yes}
}

func (p *parser) setReassemble(start token.Span) ast.Stmt {
	s := &ast.Reassemble{Yes: p.yesNo("set reassemble")}
	if at := p.tok.Span; p.acceptWord("no-df") {
		s.NoDF = at
	}
	s.Span = start.To(p.last)
	return s
}

// yesNo reads yes or no. after names what comes before.
func (p *parser) yesNo(after string) bool {
	yes := p.isWord("yes")
	if !yes && !p.isWord("no") {
		p.expected(`"yes" or "no" after ` + after)
	}
	p.advance()
	return yes
}

func (p *parser) setHostID(start token.Span) ast.Stmt {
	w := p.name("a number after set hostid")
	n, err := strconv.ParseUint(w.Text, 0, 32)
	if err != nil || n == 0 {
		p.fail(w.Span, "a hostid is a number from 1 to 0xffffffff, not %q", w.Text)
	}
	return &ast.HostID{Span: start.To(p.last), ID: uint32(n)}
}

func (p *parser) setLoginterface(start token.Span) ast.Stmt {
	o := &ast.Option{Name: ast.Word{Span: p.last, Text: "loginterface"}}
	if p.isWord("all") {
		o.Value = ast.Word{Span: p.tok.Span, Text: "all"}
		p.advance()
	} else {
		o.Value = p.name("the name of an interface, or none")
	}
	o.Span = start.To(p.last)
	return o
}

func (p *parser) setFingerprints(start token.Span) ast.Stmt {
	o := &ast.Option{Name: ast.Word{Span: p.last, Text: "fingerprints"}}
	o.Value = p.fileName()
	o.Span = start.To(p.last)
	p.systemFile = o
	return o
}

func (p *parser) setTableStore(start token.Span) ast.Stmt {
	o := &ast.Option{Name: ast.Word{Span: p.last, Text: "table-store"}}
	o.Value = p.name("the name of a folder")
	o.Span = start.To(p.last)
	return o
}

func (p *parser) setKeepcounters(start token.Span) ast.Stmt {
	return &ast.Option{Span: start.To(p.last), Name: ast.Word{Span: p.last, Text: "keepcounters"}}
}

func (p *parser) setStateDefaults(start token.Span) ast.Stmt {
	s := &ast.StateDefaults{}
	for more := true; more; more = p.accept(token.Comma) || p.tok.IsText() {
		s.Options = p.stateOption(s.Options)
	}
	s.Span = start.To(p.last)
	return s
}

var syncookieModes = []string{"never", "always", "adaptive"}

func (p *parser) setSyncookies(start token.Span) ast.Stmt {
	if !p.tok.IsText() || !slices.Contains(syncookieModes, p.tok.Text) {
		p.expected(alternatives(syncookieModes) + " after set syncookies")
	}
	s := &ast.Syncookies{Mode: p.word("a mode")}
	if p.is(token.LeftParen) {
		p.syncookieMarks(s)
	}
	s.Span = start.To(p.last)
	return s
}

// syncookieMarks reads (start N%, end N%).
func (p *parser) syncookieMarks(s *ast.Syncookies) {
	open := p.tok.Span
	p.advance()
	for {
		switch {
		case p.acceptWord("start"):
			s.High = p.percent()
		case p.acceptWord("end"):
			s.Low = p.percent()
		default:
			p.expected(`"start" or "end"`)
		}
		p.comma(token.RightParen)
		if p.accept(token.RightParen) {
			break
		}
	}
	s.Marks = open.To(p.last)
}

// percent reads a number from 1 to 100 followed by %. As in pfctl, decimals are dropped.
func (p *parser) percent() uint8 {
	w := p.name("a percentage")
	number, ok := strings.CutSuffix(w.Text, "%")
	n, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil || !(n >= 1 && n <= 100) {
		p.fail(w.Span, "%q is not a percentage from 1%% to 100%%", w.Text)
	}
	return uint8(n)
}
