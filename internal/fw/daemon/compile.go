package daemon

import (
	"context"
	"fmt"
	"net/netip"
	"reflect"
	"slices"

	"weir/internal/fw/ruleset"
	"weir/internal/fw/rundir"
	"weir/internal/host/netif"
	"weir/pf/ast"
	"weir/pf/diag"
	"weir/pf/resolve"
	"weir/pf/source"
)

// compiled is a source resolved for one machine and compiled.
type compiled struct {
	base     uint32            // global number of rule 0
	load     uint64            // as in its Source
	loads    map[string]uint64 // likewise of anchors that were loaded at run time, by path
	program  *ruleset.Program
	lists    []*resolve.Rule // those of translation lists, which stand before rules
	rules    []*resolve.Rule
	options  resolve.Options
	anchors  []rundir.Anchor
	texts    []rundir.RuleText        // by number
	recorded []rundir.RuleText        // by index; with those of rules that were replaced in place
	warnings *diag.List               // nil: no warnings
	times    map[string]*rundir.Times // of entries of tables; missing: all are as old as the rules
}

// lookUp looks up the host names of a source that is to be loaded; compile then uses the
// results. It takes up to hostdb.Limit, so the caller must not hold box.mu. Faults in the
// source are left for compile to report.
func (s *Source) lookUp(ctx context.Context, m *machine) {
	if s.hosts == nil {
		return
	}
	s.hosts.Again()
	asked := false
	rules, list := s.resolve(m, func(name string) ([]netip.Addr, error) {
		asked = true
		return s.hosts.LookupContext(ctx, name)
	})
	if !asked && !list.HasErrors() && len(s.Anchors) == 0 && len(s.flushed.parts) == 0 {
		s.looked = &looked{host: m.host, rules: rules, list: list}
	}
}

// looked is what a source without host names and anchors of its own was resolved to when names were
// looked up.
type looked struct {
	host  *resolve.Host
	rules *resolve.Ruleset
	list  diag.List
}

// take returns what a source is resolved to, if that is known: the first time, because its user may
// change it, for the machine that it was resolved for, and if the source has got no anchors.
func (s *Source) take(m *machine) (*resolve.Ruleset, diag.List, bool) {
	known := s.looked
	if known == nil || known.rules == nil {
		return nil, diag.List{}, false
	}
	rules := known.rules
	known.rules = nil
	same := len(s.Anchors) == 0 && len(s.flushed.parts) == 0 && reflect.DeepEqual(known.host, m.host)
	return rules, known.list, same
}

func (s *Source) resolve(m *machine, lookup func(string) ([]netip.Addr, error)) (*resolve.Ruleset, diag.List) {
	host := *m.host
	host.Lookup = lookup
	rules, list := resolve.LoadWith(s.Name, []byte(s.Text), &host, resolve.Settings{Files: s.Files, Macros: s.Macros, Without: s.Without, Anchors: s.Anchors})
	if rules != nil {
		s.flushed.from(rules)
	}
	return rules, list
}

// compile resolves and compiles a source for a machine. If the text is wrong, the error
// shows every fault with its place. No host name is looked up: a name that meant an
// interface at the load must not become a host later.
func (s *Source) compile(m *machine) (*compiled, error) {
	rules, c, err := s.parse(m)
	if err != nil {
		return nil, err
	}
	return c, c.compile(rules, m)
}

func (c *compiled) compile(rules *resolve.Ruleset, m *machine) (err error) {
	if c.program, err = ruleset.Compile(rules, c.snapshot(rules, m)); err != nil {
		return fmt.Errorf("compile the rules: %w", err)
	}
	return nil
}

// snapshot returns what the rules of a load need to know of the machine.
func (c *compiled) snapshot(rules *resolve.Ruleset, m *machine) ruleset.Snapshot {
	s := m.snapshot(rules.Options.Groups)
	s.Load, s.Loads = c.load, c.loads
	return s
}

// loadsOf returns the loads of anchors by path.
func loadsOf(anchors source.Anchors) map[string]uint64 {
	loads := make(map[string]uint64)
	for i := range anchors {
		if anchors[i].Load != 0 {
			loads[anchors[i].Path] = anchors[i].Load
		}
	}
	return loads
}

// parse resolves a source and leaves the program out.
func (s *Source) parse(m *machine) (*resolve.Ruleset, *compiled, error) {
	var recall func(string) ([]netip.Addr, error)
	if s.hosts != nil {
		recall = s.hosts.Recall
	}
	rules, list, ok := s.take(m)
	if !ok {
		rules, list = s.resolve(m, recall)
	}
	list.Enforce()
	if err := list.Err(); err != nil {
		return nil, nil, err
	}
	c := &compiled{load: s.load, loads: loadsOf(s.Anchors), rules: rules.Rules, options: rules.Options, anchors: anchorsOf(rules)}
	for _, l := range rules.First {
		c.lists = append(c.lists, &l.Rule)
		text := rundir.RuleText{}
		if l.Of != nil {
			text = s.textOf(&l.Rule, &list)
			text.List, text.Back = l.Of.Kind.String(), l.Of.Kind == resolve.BinatRule && l.Direction == ast.In
		}
		if l.IsScrub {
			text = s.textOf(&l.Rule, &list)
			text.List = "scrub"
		}
		if l.IsEther && !l.IsPast {
			text = s.textOf(&l.Rule, &list)
			text.List = "ether"
		}
		c.texts = append(c.texts, text)
	}
	for _, r := range rules.Rules {
		c.texts = append(c.texts, s.textOf(r, &list))
	}
	c.recorded = c.texts
	if len(list.Items) > 0 {
		c.warnings = &list
	}
	return rules, c, nil
}

// textOf returns the record of a rule.
func (s *Source) textOf(r *resolve.Rule, list *diag.List) rundir.RuleText {
	at := list.Files.Position(r.Pos)
	text := rundir.RuleText{Nr: r.Nr, Text: r.Text, File: s.path(at.File), Line: at.Line, Label: r.Label, Scope: r.Scope, Pflog: int(r.LogTo)}
	if r.Anchor != nil {
		text.Calls, text.End, text.Braces = r.Anchor.Path, r.Anchor.End, r.Anchor.Braces
	}
	copy(text.MoreLabels[:], r.MoreLabels)
	if r.Nat != nil {
		if low, high, ok := r.Nat.SourcePorts(); ok {
			text.NATPorts = rundir.PortRange{Low: low, High: high}
		}
	}
	text.Redirect = redirectOf(r)
	return text
}

// redirectOf returns the ports that a rule sends on where they come in.
func redirectOf(r *resolve.Rule) (d rundir.Redirect) {
	low, high, ok := r.To.Port.Span()
	if !ok || r.Rdr == nil || r.Direction == ast.Out || r.Family == ast.Inet6 {
		return d
	}
	d = rundir.Redirect{Protocol: r.Proto, Ports: rundir.PortRange{Low: low, High: high}}
	if on := &r.Interface; !on.Any && !on.Not && !on.Group && on.RDomain == nil {
		d.On = on.Name
	}
	return d
}

// warned returns the warnings with their places, ready to print.
func (c *compiled) warned() []string {
	if c.warnings == nil {
		return nil
	}
	return []string{c.warnings.String()}
}

// warnedOf returns the warnings about the rules of an anchor, and the files that they include. All
// others were said when what they are about was loaded.
func (c *compiled) warnedOf(one *source.Anchor) []string {
	if c.warnings == nil || one == nil {
		return nil
	}
	files := c.warnings.Files
	own := diag.List{Files: files}
	for _, d := range c.warnings.Items {
		f := files.File(files.Use(d.Span).Pos)
		for f != nil && f.Included.IsValid() {
			f = files.File(f.Included.Pos)
		}
		if f != nil && f.Name == one.Name && string(f.Src) == one.Text {
			own.Add(d)
		}
	}
	if len(own.Items) == 0 {
		return nil
	}
	return []string{own.String()}
}

// snapshot returns the facts about the machine that rules need at run time. groups holds
// the groups that the rules define, with the names of their members.
func (m *machine) snapshot(groups map[string][]string) ruleset.Snapshot {
	s := ruleset.Snapshot{Down: m.down}
	host := m.host.WithGroups(groups)
	for i := range m.links {
		l := &m.links[i]
		groups := slices.Concat(host.Interfaces[i].Groups, []string{ruleset.RDomainGroup(l.RDomain)})
		n := ruleset.Interface{Name: l.Name, Index: uint32(l.Index), Groups: groups}
		for _, a := range l.Addresses {
			if !a.Tentative {
				n.Addresses = append(n.Addresses, ruleset.Address{Prefix: a.Prefix, Peer: a.Peer, Deprecated: a.Deprecated})
			}
		}
		s.Interfaces = append(s.Interfaces, n)
	}
	return s
}

// sameRules reports whether two rulesets are equal, apart from the addresses that
// translations choose from.
func (c *compiled) sameRules(other *compiled) bool {
	return slices.Equal(c.texts, other.texts) && c.program.EqualRules(other.program)
}

// skips reports whether `set skip` names an interface or one of its groups.
func (c *compiled) skips(l *netif.Link, host *resolve.Host) bool {
	named := func(name string) bool { return slices.Contains(c.options.Skip, name) }
	if named(l.Name) {
		return true
	}
	n := host.WithGroups(c.options.Groups).Interface(l.Name)
	return n != nil && slices.ContainsFunc(n.Groups, named)
}
