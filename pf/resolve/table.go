package resolve

import (
	"fmt"
	"sync"

	"weir/pf/ast"
	"weir/pf/diag"
)

// A use is a table named by a rule, with the rule's scope.
type use struct {
	ast.Host
	in *scope
}

// declareAll stores the tables among the statements of the scope, because rules may name
// tables that are defined after them.
func (r *resolver) declareAll(stmts []ast.Stmt) {
	for _, s := range stmts {
		if t, ok := s.(*ast.Table); ok {
			r.declare(t)
		}
	}
}

// tableOf returns the table with a name in a scope, or nil. An anchor's own table hides
// one of the main ruleset.
func (r *resolver) tableOf(s *scope, name string) *ast.Table {
	if t := s.tables[name]; t != nil {
		return t
	}
	return r.main.tables[name]
}

// declare stores a table that the scope defines. As in pf, of several definitions the last
// counts.
func (r *resolver) declare(t *ast.Table) {
	if earlier := r.tables[t.Name.Text]; earlier != nil {
		r.faults.Add(diag.Diagnostic{
			Severity: diag.Warning,
			Span:     t.Name.Span,
			Message:  fmt.Sprintf("table <%s> is defined again; its earlier definition has no effect", t.Name.Text),
			Related:  []diag.Related{{Span: earlier.Name.Span, Note: "this one"}},
		})
	}
	r.tables[t.Name.Text] = t
}

// table resolves the addresses of a table, unless a later definition replaces it.
func (r *resolver) table(t *ast.Table) {
	if r.tables[t.Name.Text] != t {
		return
	}
	resolved := *t
	resolved.Sources = make([]ast.TableSource, len(t.Sources))
	for i, source := range t.Sources {
		if source.Text != nil {
			loaded := r.fileEntries(source.Text)
			source.Loaded = len(loaded)
			resolved.Entries = append(resolved.Entries, loaded...)
		}
		source.Hosts = r.hosts(source.Hosts, tableHost)
		resolved.Sources[i] = source
		resolved.Entries = append(resolved.Entries, entries(source.Hosts)...)
	}
	r.tableWeights(&resolved)
	r.tables[t.Name.Text] = &resolved
	r.defined = append(r.defined, &resolved)
	r.out.Stmts = append(r.out.Stmts, &resolved)
}

// entries returns resolved addresses as elements of a table.
func entries(hosts []ast.Host) []ast.TableEntry {
	list := make([]ast.TableEntry, 0, len(hosts))
	for i := range hosts {
		if hosts[i].Kind == ast.HostPrefix {
			list = append(list, ast.TableEntry{Prefix: hosts[i].Prefix, Not: hosts[i].Not})
		}
	}
	return list
}

// checkTables warns about tables that rules name and the file does not define. pf creates
// them empty.
func (r *resolver) checkTables() {
	known := sync.OnceValue(keysOf(r.tables))
	for _, use := range r.uses {
		if t := r.tableOf(use.in, use.Name); t != nil {
			t.Used = true
			continue
		}
		if r.host.Tables[use.Name] != nil {
			continue
		}
		r.faults.Add(diag.Diagnostic{
			Severity: diag.Warning,
			Span:     use.Span,
			Message:  fmt.Sprintf("table <%s> is not defined and will be empty", use.Name),
			Suggest:  r.nearest(use.Name, known),
		})
	}
}

// fillTables adds the entries of the host's tables that are not in the file.
func (rs *Ruleset) fillTables(host *Host) {
	places := make(map[string]*Table, len(rs.Tables))
	for _, t := range rs.Tables {
		places[t.Name] = t
	}
	for _, name := range sortedKeys(host.Tables) {
		t := places[name]
		if t == nil {
			t = &Table{Name: name}
			rs.Tables = append(rs.Tables, t)
		}
		t.Entries = append(t.Entries, host.Tables[name]...)
	}
}

// newTable makes a table from a list of translation addresses, as pfctl does.
func (r *resolver) newTable(hosts []ast.Host, elements []ast.TableEntry) ast.Host {
	name := ""
	for name == "" || r.tableOf(r.scope, name) != nil {
		name = fmt.Sprint(automaticTable, r.automatic)
		r.automatic++
	}
	span := hosts[0].Span.To(hosts[len(hosts)-1].Span)
	t := &ast.Table{
		Span: span, Name: ast.Word{Span: span, Text: name}, Flags: ast.TableFlags{Const: true}, Used: true,
		Sources: []ast.TableSource{{Span: span, Hosts: hosts}}, Entries: elements,
	}
	r.main.tables[name] = t
	r.main.out.Stmts = append(r.main.out.Stmts, t)
	return ast.Host{Span: span, Kind: ast.HostTable, Name: name, Bits: -1}
}

// allTables lowers the tables. Those of anchors get the names that qualified returns.
func (r *resolver) allTables() []*Table {
	var tables []*Table
	scopes := []*scope{r.main}
	for _, path := range sortedKeys(r.anchors) {
		scopes = append(scopes, r.anchors[path])
	}
	for _, s := range scopes {
		for _, stmt := range s.out.Stmts {
			if t, ok := stmt.(*ast.Table); ok {
				lowered := lowerTable(t)
				lowered.Name = s.qualified(t.Name.Text)
				tables = append(tables, lowered)
			}
		}
	}
	return tables
}

// qualified returns the unique name of the scope's table: name@anchor, as pf writes it.
func (s *scope) qualified(name string) string {
	if s.path == "" || s.tables[name] == nil {
		return name
	}
	return name + "@" + s.path
}
