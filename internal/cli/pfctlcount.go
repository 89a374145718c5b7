package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"weir/internal/fw/control"
	"weir/internal/fw/view"
)

// countTables adds to the tables that rules name how many addresses they have, as pfctl -vv prints them:
// <bad:3>. Without a daemon nobody knows, and the rules stay as they are.
func (p *pfctl) countTables(ctx context.Context, rules []view.Rule) error {
	if p.verbose < 2 {
		return nil
	}
	folder, err := p.env.folder()
	if err != nil {
		return err
	}
	all, err := control.NewClient(folder).Table(ctx, &control.TableRequest{Command: control.TableList})
	if errors.Is(err, control.ErrNoDaemon) {
		return nil
	}
	if err != nil {
		return err
	}
	entries := make(map[string]int, len(all.Tables))
	for _, t := range all.Tables {
		entries[t.Table] = t.Entries
	}
	for i := range rules {
		rules[i].Text = withCounts(rules[i].Text, rules[i].Scope, entries)
	}
	return nil
}

// withCounts is countTables for the text of one rule. A table that is not there is <bad:*>. What
// overload names is not counted, as in pfctl.
func withCounts(text, anchor string, entries map[string]int) string {
	var out strings.Builder
	for quoted := false; text != ""; {
		at := strings.IndexAny(text, `"<`)
		if at < 0 {
			break
		}
		before, found := text[:at+1], text[at]
		out.WriteString(before)
		text = text[at+1:]
		end := strings.IndexByte(text, '>')
		switch {
		case found == '"':
			quoted = !quoted
			continue
		case quoted || end < 1 || strings.ContainsAny(text[:end], ` "`): // < and >< of ports
			continue
		}
		name := text[:end]
		out.WriteString(name)
		if !strings.HasSuffix(before, "overload <") {
			n, known := entries[name+"@"+anchor]
			if !known {
				n, known = entries[name]
			}
			if known {
				fmt.Fprintf(&out, ":%d", n)
			} else {
				out.WriteString(":*")
			}
		}
		text = text[end:]
	}
	return out.String() + text
}
