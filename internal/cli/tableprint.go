package cli

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"weir/internal/fw/control"
	"weir/internal/fw/rundir"
	"weir/internal/fw/view"
	"weir/internal/textout"
)

// tableRecord is the output of commands that change a table with --json.
type tableRecord struct {
	Table   string               `json:"table"`
	Anchor  string               `json:"anchor,omitempty"`
	Command control.TableCommand `json:"command"`
	DryRun  bool                 `json:"dry_run,omitempty"`
	Created bool                 `json:"created,omitempty"`
	Total   int                  `json:"total"`
	Added   int                  `json:"added"`
	Deleted int                  `json:"deleted"`
	Changed int                  `json:"changed"`
	Cleared int                  `json:"cleared"`
	Matched int                  `json:"matched"`
	Tested  []testedRecord       `json:"addresses,omitempty"`
	Entries []control.TableEntry `json:"entries,omitempty"` // those that are gone
}

// testedRecord is an address that test looked up.
type testedRecord struct {
	Address netip.Addr `json:"address"`
	Match   bool       `json:"match"`
	Entry   string     `json:"entry,omitempty"` // that decides; with "!" it excludes
}

// record returns what is printed with --json.
func (t *tableTask) record(r *control.TableRequest, a *control.TableResult) any {
	switch t.command {
	case control.TableList:
		return t.chosen(a.Tables)
	case control.TableShow:
		shown := make([]shownEntry, len(a.Entries))
		for i := range a.Entries {
			shown[i] = shownEntry{TableEntry: a.Entries[i].TableEntry, Since: a.Entries[i].Since}
		}
		return shown
	}
	one := tableRecord{
		Table: t.table, Anchor: t.anchor, Command: t.command, DryRun: t.dry, Created: a.Created, Total: a.Total,
		Added: a.Added, Deleted: a.Deleted, Changed: a.Changed, Cleared: a.Cleared, Matched: a.Matched,
	}
	for i := range a.Entries {
		one.Entries = append(one.Entries, a.Entries[i].TableEntry)
	}
	for i, found := range a.Found {
		one.Tested = append(one.Tested, testedRecord{r.Entries[i].Prefix.Addr(), a.Marks[i] == byte(control.MarkMatch), found})
	}
	return one
}

// printTable prints what pfctl does.
func (e *Env) printTable(ctx context.Context, t *tableTask, r *control.TableRequest, a *control.TableResult) error {
	out := &textout.Lines{W: e.Stdout}
	switch t.command {
	case control.TableList:
		for _, one := range t.chosen(a.Tables) {
			printTableInfo(out, &one, t.verbose)
		}
		return out.Err
	case control.TableShow:
		for i := range a.Entries {
			out.Line("  %s", t.entry(ctx, a.Entries[i].TableEntry))
		}
		return out.Err
	}
	if !t.quiet {
		for _, line := range t.said(a) {
			fmt.Fprintln(e.Stderr, line)
		}
	}
	if t.verbose > 0 {
		t.printMarks(ctx, out, r, a)
	}
	return out.Err
}

// said returns what pfctl says of a change.
func (t *tableTask) said(a *control.TableResult) []string {
	var lines []string
	end := "."
	if t.dry {
		end = " (dummy)."
	}
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)+end) }
	if a.Created {
		say("1 table created")
	}
	switch t.command {
	case control.TableAdd:
		say("%d/%d addresses added", a.Added, a.Total)
	case control.TableDelete:
		say("%d/%d addresses deleted", a.Deleted, a.Total)
	case control.TableExpire:
		say("%d/%d addresses expired", a.Deleted, a.Total)
	case control.TableFlush:
		say("%d addresses deleted", a.Deleted)
	case control.TableTest:
		say("%d/%d addresses match", a.Matched, a.Total)
	case control.TableKill:
		say("%d table deleted", a.Deleted)
	case control.TableZero:
		if len(t.words)+len(t.files) > 0 {
			say("%d/%d addresses cleared", a.Cleared, a.Total)
		} else {
			say("%d table/stats cleared", a.Cleared)
		}
	case control.TableReplace:
		if a.Added > 0 {
			say("%d addresses added", a.Added)
		}
		if a.Deleted > 0 {
			say("%d addresses deleted", a.Deleted)
		}
		if a.Changed > 0 {
			say("%d addresses changed", a.Changed)
		}
		if a.Added+a.Deleted+a.Changed == 0 {
			say("no changes")
		}
	}
	return lines
}

// printMarks prints the addresses of a request with their marks, then those that have left
// the table.
func (t *tableTask) printMarks(ctx context.Context, out *textout.Lines, r *control.TableRequest, a *control.TableResult) {
	for i := range min(len(a.Marks), len(r.Entries)) {
		mark := a.Marks[i]
		if t.verbose < 2 && mark == byte(control.MarkNone) {
			continue
		}
		text := entryText(r.Entries[i])
		if t.verbose > 1 && a.Found != nil {
			text += "\t" + foundText(a.Found[i])
		}
		text += t.nameOf(ctx, r.Entries[i])
		out.Line("%c %s", mark, text)
	}
	for i := range a.Entries {
		out.Line("%c %s", control.MarkDeleted, t.entry(ctx, a.Entries[i].TableEntry))
	}
}

// foundText returns the entry that test found, in pfctl's form.
func foundText(found string) string {
	if found == "" {
		return " nomatch"
	}
	prefix, not := strings.CutPrefix(found, "!")
	return entryText(control.TableEntry{Prefix: netip.MustParsePrefix(prefix), Not: not})
}

// entryText returns an entry in pfctl's form: a blank or "!", then the address.
func entryText(e control.TableEntry) string {
	text := " "
	if e.Not {
		text = "!"
	}
	if e.Prefix.IsSingleIP() {
		return text + e.Prefix.Addr().String()
	}
	return text + e.Prefix.String()
}

// entry returns an entry in pfctl's form, with its name if names are asked for.
func (t *tableTask) entry(ctx context.Context, e control.TableEntry) string {
	return entryText(e) + t.nameOf(ctx, e)
}

// namePatience is how long the name of one address may take.
const namePatience = 5 * time.Second

// nameOf returns the name of an address as pfctl -r prints it; empty if it has none, or none was asked for.
func (t *tableTask) nameOf(ctx context.Context, e control.TableEntry) string {
	if !t.names || !e.Prefix.IsSingleIP() {
		return ""
	}
	within, cancel := context.WithTimeout(ctx, namePatience)
	defer cancel()
	names, err := net.DefaultResolver.LookupAddr(within, e.Prefix.Addr().String())
	if err != nil || len(names) == 0 {
		return ""
	}
	return "\t(" + strings.TrimSuffix(names[0], ".") + ")"
}

// chosen returns the tables that list is asked for.
func (t *tableTask) chosen(all []control.TableInfo) []control.TableInfo {
	chosen := []control.TableInfo{}
	anchor := strings.Trim(t.anchor, "/")
	for _, one := range all {
		if (t.table == "" || one.Name == t.table) && (anchor == "*" || one.Anchor == anchor || anchor == "" && t.table == "") {
			chosen = append(chosen, one)
		}
	}
	return chosen
}

// printTableInfo prints a table as pfctl -s Tables does.
func printTableInfo(out *textout.Lines, i *control.TableInfo, verbose int) {
	name := i.Name
	if i.Anchor != "" {
		name += "@" + i.Anchor
	}
	if verbose == 0 {
		out.Line("%s", name)
		return
	}
	letters := []byte("-------")
	for at, set := range []bool{i.Const, i.Persist, true, false, i.Rules > 0, false, i.Counters} {
		if set {
			letters[at] = "cpairhC"[at]
		}
	}
	out.Line("%s\t%s", letters, name)
}

// A shownEntry is an entry of show --json. It has counters if the table has.
type shownEntry struct {
	control.TableEntry
	Since time.Time      `json:"since"`
	In    *view.TableWay `json:"in,omitempty"`
	Out   *view.TableWay `json:"out,omitempty"`
}

// A countedTable is a table of list -vv.
type countedTable struct {
	control.TableInfo
	In  *view.TableWay `json:"in,omitempty"` // of all entries
	Out *view.TableWay `json:"out,omitempty"`
}

// tableCounters prints entries or tables with their counters.
func (e *Env) tableCounters(ctx context.Context, folder rundir.Folder, t *tableTask, r *control.TableRequest) error {
	client := control.NewClient(folder)
	tables, err := client.Table(ctx, &control.TableRequest{Command: control.TableList})
	if err != nil {
		return err
	}
	v, err := e.reader()
	if err != nil {
		return err
	}
	defer v.Close()
	if t.command == control.TableList {
		return e.listCounted(v, t, t.chosen(tables.Tables))
	}
	shown, err := counted(ctx, client, v, r)
	if err != nil {
		return err
	}
	if t.json {
		return e.printJSON(shown)
	}
	out := &textout.Lines{W: e.Stdout}
	for i := range shown {
		out.Line("  %s", t.entry(ctx, shown[i].TableEntry))
		out.Line("\tCleared:     %s", shown[i].Since.Format(time.ANSIC))
		printWays(out, shown[i].In, shown[i].Out)
	}
	return out.Err
}

// counted returns what a table holds, with counters if it has such.
func counted(ctx context.Context, client *control.Client, v *view.View, r *control.TableRequest) ([]shownEntry, error) {
	held, err := client.Table(ctx, r)
	if err != nil {
		return nil, err
	}
	counters, err := v.Table(held.Table)
	if err != nil {
		return nil, err
	}
	by := make(map[netip.Prefix]*view.TableEntry, len(counters))
	for i := range counters {
		by[counters[i].Prefix] = &counters[i]
	}
	shown := make([]shownEntry, len(held.Entries))
	for i := range held.Entries {
		shown[i] = shownEntry{TableEntry: held.Entries[i].TableEntry, Since: held.Entries[i].Since}
		if c := by[shown[i].Prefix]; c != nil {
			shown[i].In, shown[i].Out = &c.In, &c.Out
		}
	}
	return shown, nil
}

// printWays prints counters as pfctl does.
func printWays(out *textout.Lines, in, left *view.TableWay) {
	if in == nil || left == nil {
		return
	}
	for _, one := range []struct {
		name  string
		count view.TableCount
	}{{"In/Block:", in.Blocked}, {"In/Pass:", in.Passed}, {"Out/Block:", left.Blocked}, {"Out/Pass:", left.Passed}} {
		out.Line("\t%-12s [ Packets: %-18d Bytes: %-18d ]", one.name, one.count.Packets, one.count.Bytes)
	}
}

func (e *Env) listCounted(v *view.View, t *tableTask, tables []control.TableInfo) error {
	all := make([]countedTable, len(tables))
	for i := range tables {
		all[i].TableInfo = tables[i]
		if !tables[i].Counters {
			continue
		}
		entries, err := v.Table(tables[i].Table)
		if err != nil {
			return err
		}
		all[i].In, all[i].Out = new(view.TableWay), new(view.TableWay)
		for n := range entries {
			all[i].In.Add(&entries[n].In)
			all[i].Out.Add(&entries[n].Out)
		}
	}
	if t.json {
		return e.printJSON(all)
	}
	out := &textout.Lines{W: e.Stdout}
	for i := range all {
		printTableInfo(out, &all[i].TableInfo, t.verbose)
		out.Line("\tAddresses:   %d", all[i].Entries)
		out.Line("\tCleared:     %s", all[i].Cleared.Local().Format(time.ANSIC))
		out.Line("\tReferences:  [ Anchors: %-18d Rules: %-18d ]", all[i].Anchors, all[i].Rules)
		printWays(out, all[i].In, all[i].Out)
	}
	return out.Err
}
