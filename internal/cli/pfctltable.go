package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"weir/internal/fw/control"
	"weir/internal/fw/ruleset"
	"weir/internal/fw/view"
	"weir/internal/textout"
)

// tableReset is FreeBSD's -T reset.
const tableReset = "reset"

// doTable does -T.
func (p *pfctl) doTable(ctx context.Context) error {
	t := &tableTask{
		table: p.table, anchor: p.anchor, command: control.TableCommand(p.command), words: p.words,
		dry: p.dry, quiet: p.quiet, noDNS: p.noDNS, names: p.names, verbose: p.verbose,
	}
	switch p.command {
	case tableReset:
		return p.tableErr(p.resetTable(ctx, t))
	case "load":
		t.quiet = t.quiet || p.verbose == 0
		return p.env.loadTables(ctx, t, p.file, p.macros, p.noDNS)
	}
	if p.file != "" {
		t.files = []string{p.file}
	}
	return p.tableErr(p.env.table(ctx, t))
}

// tableErr says in pfctl's words that there is no such table.
func (p *pfctl) tableErr(err error) error {
	if err != nil && strings.HasSuffix(err.Error(), ruleset.ErrNoTable.Error()) {
		fmt.Fprintln(p.env.Stderr, "pfctl: Table does not exist.") // what scripts look for
		return ErrSilent
	}
	return err
}

// resetTable clears the statistics of the addresses that have counted something.
func (p *pfctl) resetTable(ctx context.Context, t *tableTask) error {
	if len(p.words) > 0 || p.file != "" {
		return &UsageError{errors.New("-T reset takes no address")}
	}
	folder, err := p.env.daemonFolder()
	if err != nil {
		return err
	}
	r := &control.TableRequest{Command: control.TableShow}
	if r.Table, err = t.name(); err != nil {
		return err
	}
	v, err := p.env.reader()
	if err != nil {
		return err
	}
	defer v.Close()
	client := control.NewClient(folder)
	all, err := counted(ctx, client, v, r)
	if err != nil {
		return err
	}
	total := len(all)
	all = slices.DeleteFunc(all, func(e shownEntry) bool {
		return e.In == nil || *e.In == (view.TableWay{}) && *e.Out == (view.TableWay{})
	})
	done := &control.TableResult{}
	r.Command, r.Only, r.DryRun, r.Marks = control.TableZero, true, p.dry, p.verbose > 0
	for i := range all {
		r.Entries = append(r.Entries, all[i].TableEntry)
	}
	if len(all) > 0 {
		if done, err = client.Table(ctx, r); err != nil {
			return err
		}
	}
	dummy := ""
	if p.dry {
		dummy = " (dummy)"
	}
	p.say("%d/%d stats cleared%s.", done.Cleared, total, dummy)
	if p.verbose > 0 {
		out := &textout.Lines{W: p.env.Stdout}
		t.printMarks(ctx, out, r, done)
		return out.Err
	}
	return nil
}

// clearTables removes the tables of an anchor, or of all below it, that commands have made and no
// rule names. Those of the rules keep what they hold: without it the rules would block less.
func (p *pfctl) clearTables(ctx context.Context, path string, below bool) error {
	folder, err := p.env.daemonFolder()
	if err != nil {
		return err
	}
	client := control.NewClient(folder)
	all, err := client.Table(ctx, &control.TableRequest{Command: control.TableList})
	if err != nil {
		return err
	}
	removed, left := 0, 0
	for _, t := range all.Tables {
		if t.Anchor != path && (!below || path != "" && !strings.HasPrefix(t.Anchor, path+"/")) {
			continue
		}
		if !t.Made || t.Rules > 0 {
			left++
			continue
		}
		if _, err := client.Table(ctx, &control.TableRequest{Command: control.TableKill, Table: t.Table, DryRun: p.dry}); err != nil {
			return err
		}
		removed++
	}
	p.say("%d tables deleted", removed)
	if left > 0 {
		p.say("%d tables of the rules keep their addresses; weir table flush -t NAME empties one", left)
	}
	return nil
}
