package db

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
)

var (
	persistences = []string{"runtime", "boot", "reboot", "BIOS"}
	systems      = []string{"freebsd", "linux", "openbsd", "pfsense", "opnsense", "checkpoint", "any"}
	accounts     = []Account{Kept, Obsolete, Refused, Elsewhere}
	roles        = []Role{Forwarder, Endpoint, Hardening, Storage, Cosmetic}
	grades       = []Grade{Measured, Published, Vendor, Folklore}
	inputs       = []string{"link", "rtt", "memory", "cores", "ports", "mtu", "pppoe", "burst"}
)

// check checks the rules for each record beyond its form.
func (d *DB) check(r *Record) error {
	return errors.Join(
		oneOf("account", r.Account, accounts), oneOf("role", r.Role, roles), oneOf("system", r.System, systems),
		d.checkPlace(r), r.checkText(), r.checkEvidence(), r.checkInputs(), r.checkRow(), r.checkValues(),
	)
}

func oneOf[T ~string](member string, value T, of []T) error {
	if slices.Contains(of, value) {
		return nil
	}
	return fmt.Errorf("%s: %q is none of %q", member, value, of)
}

// checkValues checks that each value has a text.
func (r *Record) checkValues() error {
	for value, e := range r.Values {
		if e.Says == "" {
			return fmt.Errorf("values: %s has no text", value)
		}
	}
	return nil
}

func (d *DB) checkPlace(r *Record) error {
	if _, known := d.Places[r.Place]; !known {
		return fmt.Errorf("place: places.yaml has no %q", r.Place)
	}
	return nil
}

// checkText checks which sentences an account needs, and which it must not have.
func (r *Record) checkText() error {
	type need struct{ rationale, risk, reason, until bool }
	needs := map[Account]need{
		Kept:      {rationale: true, risk: true},
		Obsolete:  {rationale: true, reason: true, until: true},
		Refused:   {reason: true},
		Elsewhere: {reason: true},
	}[r.Account]
	var faults []error
	for _, m := range []struct {
		name, text string
		needed     bool
	}{
		{"rationale", r.Rationale, needs.rationale}, {"risk", r.Risk, needs.risk}, {"reason", r.Reason, needs.reason},
	} {
		if m.needed != (m.text != "") {
			faults = append(faults, fmt.Errorf("%s: account %s has one: %v", m.name, r.Account, m.needed))
		}
	}
	if needs.until && r.Until == "" {
		faults = append(faults, errors.New("until: what is obsolete names the last version that has it"))
	}
	if _, err := strconv.Atoi(r.Since); r.Since != "" && (err != nil || r.System != "freebsd") {
		faults = append(faults, fmt.Errorf("since: %q is no major version of FreeBSD", r.Since))
	}
	if r.Key == "" {
		faults = append(faults, errors.New("key: missing"))
	}
	return errors.Join(faults...)
}

func (r *Record) checkEvidence() error {
	if r.Account == Elsewhere {
		if len(r.Evidence) > 0 {
			return errors.New("evidence: what is not a router's business is not judged")
		}
		return nil
	}
	if len(r.Evidence) == 0 {
		return errors.New("evidence: missing")
	}
	if r.Grade() == "" {
		return errors.New("evidence: none that proves anything")
	}
	for _, e := range r.Evidence {
		if err := oneOf("grade", e.Grade, grades); err != nil {
			return err
		}
		if e.Source == "" {
			return errors.New("evidence: a source is missing")
		}
	}
	return nil
}

func (r *Record) checkInputs() error {
	for _, in := range r.Inputs {
		if err := oneOf("inputs", in, inputs); err != nil {
			return err
		}
	}
	if r.Formula != "" && formulas[r.Formula] == "" {
		return fmt.Errorf("formula: formulas.go has no %q", r.Formula)
	}
	return nil
}

func (r *Record) checkRow() error {
	switch {
	case r.Row == nil && r.Value == "" && r.Formula == "" && r.Account == Kept:
		return errors.New("value: what no guide names needs a value or a formula")
	case (r.System == "linux" && r.Place == "sysctl.d") != slices.Contains([]string{"namespace", "host"}, r.Scope):
		return errors.New("scope: Linux's sysctls have one, namespace or host, and nothing else has")
	case r.Tunable && r.Place != "loader.conf":
		return errors.New("tunable: only what loader.conf sets is one")
	case r.Row != nil && (r.Row.OS == "" || len(r.Row.Guide) != 3):
		return errors.New("row: system and guide are missing")
	}
	return nil
}
