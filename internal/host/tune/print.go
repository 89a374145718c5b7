package tune

import (
	"fmt"
	"io"
	"strings"

	"weir/internal/units"
)

// WriteText prints a plan: first the changes with their reason, calculation, evidence and
// risk, then what is left alone, and why.
func (p *Plan) WriteText(w io.Writer) error {
	var b strings.Builder
	if len(p.Changes) == 0 {
		b.WriteString("nothing to change\n")
	}
	for _, c := range p.Changes {
		fmt.Fprintf(&b, "%s: %s -> %s\n", c.Key, oneLine(c.From), c.To)
		line := func(name, text string) {
			if text != "" {
				fmt.Fprintf(&b, "  %-9s %s\n", name, text)
			}
		}
		line("why", c.Why)
		line("figure", c.Figure)
		for _, e := range c.Evidence {
			line("evidence", e.String())
		}
		line("risk", c.Risk)
	}
	if len(p.Fit) > 0 {
		fmt.Fprintf(&b, "already as advised: %s\n", strings.Join(p.Fit, ", "))
	}
	if len(p.Skips) > 0 {
		b.WriteString("left alone:\n")
	}
	for _, s := range p.Skips {
		fmt.Fprintf(&b, "  %s: %s\n", s.Key, s.Why)
	}
	if len(p.Arithmetic) > 0 {
		b.WriteString("arithmetic:\n")
	}
	for _, a := range p.Arithmetic {
		fmt.Fprintf(&b, "  %-15s %s\n", a.Name, a.Shown)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteText prints what weir has set and its present state.
func (s *Status) WriteText(w io.Writer) error {
	var b strings.Builder
	if len(s.Keys) == 0 {
		b.WriteString("weir tune has set nothing\n")
	}
	for _, k := range s.Keys {
		fmt.Fprintf(&b, "%s = %s (was %s)", k.Key, k.Set, k.Before)
		switch {
		case k.Fault != "":
			fmt.Fprintf(&b, ": it cannot be read now: %s", k.Fault)
		case k.Drift && k.Now == "":
			b.WriteString(": the kernel does not have it now")
		case k.Drift:
			fmt.Fprintf(&b, ": somebody has set it to %s", k.Now)
		}
		b.WriteString("\n")
	}
	if s.Drift > 0 {
		fmt.Fprintf(&b, "drift: %s not as weir set it\n", units.Plural(s.Drift, "key"))
	}
	if len(s.Unkept) > 0 {
		fmt.Fprintf(&b, "only until the next boot, because systemd does not run here: %s\n", strings.Join(s.Unkept, ", "))
	}
	switch {
	case s.Confirm != nil:
		fmt.Fprintf(&b, "waits for weir tune confirm until %s\n", s.Confirm.Format("15:04:05"))
	case s.CutOff:
		b.WriteString("a weir tune apply was interrupted, or never confirmed: weir tune revert restores everything\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
