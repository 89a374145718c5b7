package cli

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"weir/internal/host/tune/audit"
	"weir/internal/host/tune/db"
	"weir/internal/host/tune/target"
)

// newTuneAuditCommand makes `weir tune audit`.
func newTuneAuditCommand(env *Env) *cobra.Command {
	var name string
	var asJSON bool
	c := &cobra.Command{
		Use:   "audit --target SYSTEM FILE...",
		Short: "check the settings in an existing loader.conf, sysctl.conf or rc.conf",
		Long: `audit reads files of FreeBSD, of a firewall built on it, or of Linux's sysctl, or a
page of prose with such lines ("-" is standard input). It gives each line that sets
something a verdict: still valid, the default now, removed, renamed, contradicted by
measurement, dangerous, for endpoints only, not a router's business, or unknown. It
also judges lines that are commented out, marked (off), and settings in sentences,
marked (in a sentence). Exit status 1: a line in force is removed, added later,
renamed, contradicted or dangerous. 2: a file cannot be read, or no file sets
anything.`,
		Example: `  weir tune audit --target pfsense-2.7 /boot/loader.conf.local
  weir tune audit --target freebsd-14 - < guide.txt
  weir tune audit --target linux /etc/sysctl.d/*.conf`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, files []string) error {
			auditor, err := newAuditor(name)
			if err != nil {
				return err
			}
			findings, empty := []audit.Finding{}, []string{}
			for _, file := range files {
				lines, err := env.settings(file, auditor)
				if err != nil {
					return err
				}
				if len(lines) == 0 {
					empty = append(empty, file)
				}
				for _, l := range lines {
					findings = append(findings, auditor.Check(l))
				}
			}
			if len(findings) == 0 {
				return &UsageError{fmt.Errorf("tune audit: %s: no line sets anything", strings.Join(empty, ", "))}
			}
			for _, file := range empty {
				fmt.Fprintf(env.Stderr, "weir: tune audit: %s: no line sets anything\n", file)
			}
			if auditor.NoVersion() {
				fmt.Fprintf(env.Stderr, "weir: tune audit: weir does not know %s: its keys and their defaults are not checked\n", name)
			}
			return env.printFindings(findings, asJSON)
		},
	}
	c.Flags().StringVar(&name, "target", "", "`system` of the files: linux, freebsd-15, pfsense-2.8, opnsense-26.1 …")
	jsonFlag(c, &asJSON)
	return c
}

func newAuditor(name string) (*audit.Auditor, error) {
	if name == "" {
		return nil, &UsageError{errors.New("tune audit: --target is missing: which system's files are they?")}
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
func (e *Env) settings(file string, auditor *audit.Auditor) ([]audit.Line, error) {
	r := e.Stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, &UsageError{fmt.Errorf("tune audit: %w", err)}
		}
		defer f.Close()
		r = f
	}
	lines, err := audit.Read(r, file, auditor.Known)
	if err != nil {
		return nil, &UsageError{fmt.Errorf("tune audit: %w", err)}
	}
	return lines, nil
}

// printFindings prints a line for each finding. It returns a refusal if a setting in
// force should go.
func (e *Env) printFindings(findings []audit.Finding, asJSON bool) error {
	harmful := false
	for _, f := range findings {
		harmful = harmful || f.Verdict.Harmful() && !f.Off && !f.Quoted
		if asJSON {
			continue
		}
		off := ""
		switch {
		case f.Off:
			off = " (off)"
		case f.Quoted:
			off = " (in a sentence)"
		}
		fmt.Fprintf(e.Stdout, "%s:%d: %s=%s%s: %s\n", f.File, f.Line.Line, f.Key, f.Value, off, f.Says())
	}
	if asJSON {
		if err := e.printJSON(findings); err != nil {
			return err
		}
	}
	if harmful {
		return ErrSilent
	}
	return nil
}
