package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"weir/internal/host/tune/audit"
	"weir/internal/host/tune/db"
	"weir/internal/host/tune/target"
)

// newTuneAuditCommand makes `weir tune audit`.
func newTuneAuditCommand(env *Env) *cobra.Command {
	var name string
	var asJSON, verbose bool
	c := &cobra.Command{
		Use:   "audit --target SYSTEM FILE...",
		Short: "check the settings in an existing loader.conf, sysctl.conf, config.xml or page",
		Long: `audit reads what people have: files of FreeBSD, of a firewall built on it (also its
config.xml), or of Linux's sysctl, what sysctl -a prints, commands in scripts, tables in
Markdown and HTML, Ansible's and Salt's files, and prose ("-" is standard input). It
gives each line that sets something a verdict: still valid, the default now, removed,
renamed, contradicted by measurement, dangerous, for endpoints only, not a router's
business, or unknown. It also judges lines that are commented out, marked (off), and
settings in sentences, marked (in a sentence). Then it compares the lines in force with
one another: settings that come twice or contradict each other, and figures that do not
fit. What it passes over is counted, and printed with -v. Exit status 1: a line in force
is removed, added later, renamed, contradicted or dangerous, or two do not fit. 2: a
file cannot be read, or nothing in it is understood.`,
		Example: `  weir tune audit --target pfsense-2.7 /boot/loader.conf.local
  weir tune audit --target freebsd-14 - < guide.txt
  weir tune audit --target linux /etc/sysctl.d/*.conf`,
		Args: func(_ *cobra.Command, files []string) error {
			if len(files) == 0 {
				return errors.New("tune audit: name a file, or - for standard input")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, files []string) error {
			auditor, err := newAuditor(name)
			if err != nil {
				return err
			}
			a := audited{Findings: []audit.Finding{}, Across: []audit.Note{}, Passed: []audit.Passed{}}
			var lines []audit.Line
			var strange, silent []string
			for _, file := range files {
				found, passed, err := env.settings(file, auditor)
				if err != nil {
					return err
				}
				if len(found) == 0 && len(passed) > 0 {
					strange = append(strange, file)
				} else if len(found) == 0 {
					silent = append(silent, file)
				}
				lines, a.Passed = append(lines, found...), append(a.Passed, passed...)
			}
			if len(silent) > 0 && len(silent) < len(files) {
				fmt.Fprintf(env.Stderr, "weir: tune audit: %s: no line sets anything\n", strings.Join(silent, ", "))
			}
			for _, l := range lines {
				a.Findings = append(a.Findings, auditor.Check(l))
			}
			a.Across = append(a.Across, auditor.Across(lines)...)
			if auditor.NoVersion() {
				fmt.Fprintf(env.Stderr, "weir: tune audit: weir does not know %s: its keys and their defaults are not checked\n", name)
			}
			refused := env.printAudited(&a, asJSON, verbose)
			switch {
			case len(strange) > 0:
				return &UsageError{fmt.Errorf("tune audit: %s: nothing is understood", strings.Join(strange, ", "))}
			case len(lines) == 0:
				return &UsageError{fmt.Errorf("tune audit: %s: no line sets anything", strings.Join(files, ", "))}
			}
			return refused
		},
	}
	c.Flags().BoolVarP(&verbose, "verbose", "v", false, "also print the lines that are passed over")
	c.Flags().StringVar(&name, "target", "", "`system` of the files: linux, freebsd-15, pfsense-2.8, opnsense-26.7 …")
	jsonFlag(c, &asJSON)
	return c
}

func newAuditor(name string) (*audit.Auditor, error) {
	if name == "" {
		return nil, &UsageError{errors.New("tune audit: --target is missing: which system's files are they? Such as --target linux, freebsd-14, opnsense-25.7 or pfsense-2.8")}
	}
	d, err := db.Load()
	if err != nil {
		return nil, err
	}
	if name == targetLinux {
		return &audit.Auditor{DB: d, Target: target.Target{Name: targetLinux}}, nil
	}
	system, err := target.Find(name)
	if err != nil {
		return nil, &UsageError{fmt.Errorf("--target %w, or linux", err)}
	}
	return &audit.Auditor{DB: d, Target: system}, nil
}

// settings returns the lines of a file that set something. "-" is standard input.
func (e *Env) settings(file string, auditor *audit.Auditor) ([]audit.Line, []audit.Passed, error) {
	r := e.Stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, nil, &UsageError{fmt.Errorf("tune audit: %w", err)}
		}
		defer f.Close()
		if info, err := f.Stat(); err == nil && info.IsDir() {
			return nil, nil, &UsageError{fmt.Errorf("tune audit: %s is a directory: name its files, such as %s", file, filepath.Join(file, "*.conf"))}
		}
		r = f
	}
	lines, passed, err := audit.Read(r, file, auditor.Known)
	if err != nil {
		return nil, nil, &UsageError{fmt.Errorf("tune audit: %w", err)}
	}
	return lines, passed, nil
}

// audited is what an audit says.
type audited struct {
	Findings []audit.Finding `json:"findings"`
	Across   []audit.Note    `json:"across"`
	Passed   []audit.Passed  `json:"passed"` // lines that were not understood
}

// printAudited prints a line for each finding and each note, and how many lines were passed
// over. It returns a refusal if a setting in force should go.
func (e *Env) printAudited(a *audited, asJSON, verbose bool) error {
	harmful := slices.ContainsFunc(a.Findings, func(f audit.Finding) bool { return f.Verdict.Harmful() && !f.Off && !f.Quoted }) ||
		slices.ContainsFunc(a.Across, func(n audit.Note) bool { return n.Harmful })
	if asJSON {
		if err := e.printJSON(a); err != nil {
			return err
		}
	} else {
		e.printFindings(a, verbose)
	}
	if harmful {
		return ErrSilent
	}
	return nil
}

func (e *Env) printFindings(a *audited, verbose bool) {
	for _, f := range a.Findings {
		off := ""
		switch {
		case f.Off:
			off = " (off)"
		case f.Quoted:
			off = " (in a sentence)"
		}
		fmt.Fprintf(e.Stdout, "%s:%d: %s=%s%s: %s\n", f.File, f.Line.Line, f.Key, f.Value, off, f.Says())
	}
	for _, n := range a.Across {
		fmt.Fprintf(e.Stdout, "%s:%d: together: %s\n", n.File, n.Line, n.Says)
	}
	if verbose {
		for _, p := range a.Passed {
			fmt.Fprintf(e.Stdout, "%s:%d: passed over: %s\n", p.File, p.Line, p.Text)
		}
	}
	if n := len(a.Passed); n > 0 {
		fmt.Fprintf(e.Stderr, "weir: tune audit: %d %s passed over%s\n", n, map[bool]string{true: "line was", false: "lines were"}[n == 1], map[bool]string{false: "; -v prints them"}[verbose])
	}
}
