package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"weir/internal/fw/control"
	"weir/internal/fw/view"
)

// doShow does -s.
func (p *pfctl) doShow(ctx context.Context) error {
	if p.show != "all" {
		return p.showOne(ctx, p.show)
	}
	for _, part := range []struct{ what, title string }{
		{"nat", "TRANSLATION RULES:"}, {"rules", "FILTER RULES:"}, {"states", "STATES:"}, {"Sources", "SOURCE TRACKING NODES:"},
		{"info", "INFO:"}, {"labels", "LABEL COUNTERS:"}, {"timeouts", "TIMEOUTS:"}, {"memory", "LIMITS:"}, {"Tables", "TABLES:"},
		{"Interfaces", "INTERFACES:"},
	} {
		fmt.Fprintln(p.env.Stdout, part.title)
		if err := p.showOne(ctx, part.what); err != nil {
			return err
		}
		fmt.Fprintln(p.env.Stdout)
	}
	return nil
}

func (p *pfctl) showOne(ctx context.Context, what string) error {
	e := p.env
	switch what {
	case "Tables":
		return e.table(ctx, &tableTask{anchor: p.anchor, command: control.TableList, verbose: p.verbose})
	case "Interfaces":
		return p.showInterfaces()
	case "Running":
		info, err := e.info()
		if err == nil && !info.Enabled {
			fmt.Fprintln(e.Stdout, "Disabled")
			return ErrSilent
		}
		if err == nil {
			fmt.Fprintln(e.Stdout, "Enabled")
		}
		return err
	case "Anchors":
		return p.showAnchors("", false)
	case "osfp":
		return errors.New("-s osfp: fingerprints of operating systems are read with the rules that say os: see the file of set fingerprints (/etc/pf.os)")
	case "creatorids": // all states are of this machine
		_, err := fmt.Fprintf(e.Stdout, "Creator IDs:\n%08x\n", 0)
		return err
	}
	r, err := e.reader()
	if err != nil {
		return err
	}
	defer r.Close()
	switch what {
	case "rules", "nat", "ether":
		return p.showRules(ctx, r, what)
	case "states":
		t := &statesTask{verbose: min(p.verbose, 2), ofPf: true}
		t.filter.Leaves = p.iface
		return e.printEachState(r, t)
	case "Sources":
		sources, err := r.AllSources()
		return errors.Join(err, view.PrintSources(e.Stdout, sources, p.verbose > 0))
	case "labels":
		return p.showLabels(r, p.asked)
	case "queue":
		queues, err := r.Queues()
		if err != nil {
			return err
		}
		return queues.PrintPf(p.env.Stdout, p.iface, p.verbose > 0)
	}
	info, err := r.Info()
	if err != nil {
		return err
	}
	switch what {
	case "timeouts":
		return info.PrintTimeouts(e.Stdout)
	case "memory":
		return info.PrintLimits(e.Stdout)
	}
	zero, err := p.readZero()
	if err != nil {
		return err
	}
	return info.PrintPf(e.Stdout, zero.Info, p.verbose > 0)
}

// showRules prints the rules of one kind: of the main ruleset, or with -a '*' of all anchors, too.
func (p *pfctl) showRules(ctx context.Context, r *view.View, what string) error {
	rules, pid, err := p.rules(r)
	rules = slices.DeleteFunc(rules, func(rule view.Rule) bool { return !p.asked(rule.Scope) })
	if err == nil {
		err = p.countTables(ctx, rules)
	}
	if err != nil {
		return err
	}
	return view.PrintRules(p.env.Stdout, ofPfctl(rules, what), p.verbose, pid)
}

// asked reports whether the rules of a scope are asked for, if those of no single anchor are: all with
// -a '*', else those of the main ruleset, and those in the braces of an anchor without a name.
func (p *pfctl) asked(scope string) bool {
	if p.anchor != "" {
		return true
	}
	for name := range strings.SplitSeq(scope, "/") {
		if scope != "" && !strings.HasPrefix(name, "_") {
			return false
		}
	}
	return true
}

// showLabels prints the counters of rules with labels.
func (p *pfctl) showLabels(r *view.View, asked func(scope string) bool) error {
	rules, _, err := p.rules(r)
	if err != nil {
		return err
	}
	rules = slices.DeleteFunc(rules, func(rule view.Rule) bool { return !asked(rule.Scope) })
	for i := range rules {
		for _, label := range rules[i].Labels() {
			c := &rules[i]
			_, err := fmt.Fprintf(p.env.Stdout, "%s %d %d %d %d %d %d %d %d\n", label, c.Evaluations, c.Packets, c.Bytes,
				c.PacketsIn, c.BytesIn, c.PacketsOut, c.BytesOut, c.StateCreations)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// showInterfaces prints the interfaces and groups that rules may name. With -v those of set
// skip are marked.
func (p *pfctl) showInterfaces() error {
	folder, err := p.env.folder()
	if err != nil {
		return err
	}
	all, err := view.ReadInterfaces(folder, chooseHook)
	if err != nil {
		return err
	}
	names := map[string]bool{} // whether set skip names it
	for i := range all.Interfaces {
		n := &all.Interfaces[i]
		names[n.Name] = n.Skip
		for _, group := range n.Groups {
			if _, known := names[group]; !known {
				names[group] = false
			}
		}
	}
	var lines []string
	for name, skip := range names {
		if skip && p.verbose > 0 {
			name += " (skip)"
		}
		lines = append(lines, name)
	}
	slices.Sort(lines)
	for _, line := range lines {
		if p.iface != "" && p.iface != strings.TrimSuffix(line, " (skip)") {
			continue
		}
		if _, err := fmt.Fprintln(p.env.Stdout, line); err != nil {
			return err
		}
	}
	return nil
}
