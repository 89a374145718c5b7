package audit

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"weir/internal/host/tune/db"
	"weir/internal/host/tune/target"
	"weir/internal/pattern"
)

// A Verdict is the judgement of a line.
type Verdict string

// Verdicts on lines.
const (
	Valid        Verdict = "still valid"
	IsDefault    Verdict = "the default now"
	Removed      Verdict = "removed in"
	Renamed      Verdict = "renamed to"
	Contradicted Verdict = "contradicted" // by measurement
	Dangerous    Verdict = "dangerous"
	EndpointOnly Verdict = "endpoint only"
	Elsewhere    Verdict = "not a router's business"
	Unknown      Verdict = "unknown"

	Added          Verdict = "added in"        // in a version newer than the target's
	VersionUnknown Verdict = "version unknown" // depends on the version, which is unknown
)

// Harmful reports whether a line with the verdict should go or change.
func (v Verdict) Harmful() bool {
	return v == Removed || v == Renamed || v == Added || v == Contradicted || v == Dangerous
}

// A Finding is a line and its verdict.
type Finding struct {
	Line
	Verdict Verdict `json:"verdict"`
	Detail  string  `json:"detail,omitempty"` // version of "removed in" and "added in", or key of "renamed to"
	Why     string  `json:"why"`
	Weir    string  `json:"weir,omitempty"` // what weir's own path does about the same
}

// Says returns the verdict in words, with the reason.
func (f *Finding) Says() string {
	text := string(f.Verdict)
	if f.Detail != "" {
		text += " " + f.Detail
	}
	if text += ": " + f.Why; f.Weir != "" {
		text = strings.TrimSuffix(text, ".") + ". In weir: " + f.Weir
	}
	return text
}

// An Auditor judges lines for a target, with the records of the database.
type Auditor struct {
	DB     *db.DB
	Target target.Target
}

// Known reports whether the database has a key.
func (j *Auditor) Known(key string) bool { return j.pick(key) != nil }

// Check returns the finding for a line.
func (j *Auditor) Check(l Line) Finding {
	f := Finding{Line: l}
	if strings.HasPrefix(l.Key, "ifconfig_") && j.Target.Family() != linux {
		f = j.options(l)
		if j.NoVersion() && (f.Verdict == Valid || f.Verdict == IsDefault) {
			f.Verdict = VersionUnknown
		}
		return f
	}
	if f, found := j.firewallSwitch(l); found {
		if j.NoVersion() && (f.Verdict == Valid || f.Verdict == IsDefault) {
			f.Verdict = VersionUnknown
		}
		return f
	}
	if f, found := j.all(l); found {
		return f
	}
	r := j.pick(l.Key)
	if l.Blanks {
		f.Verdict, f.Why = Unknown, "sysctl takes the line apart at the blanks around the equals sign, complains, and sets nothing: write "+l.Key+"="+l.Value
		return f
	}
	if (r == nil || r.Pattern()) && tells.MatchString(l.Key) {
		f.Verdict, f.Why = Elsewhere, "it tells something, and sets nothing"
		return f
	}
	if r != nil {
		f.Weir = r.Weir
	} else if verdict, why, known := card(l); known && (j.Target.Family() == linux || strings.HasSuffix(l.Key, ".mtu")) {
		f.Verdict, f.Why = verdict, why
		return f
	}
	switch {
	case r == nil:
		f.Verdict, f.Why = Unknown, j.unknownKey(l.Key)
		if value, found := target.Shipped(j.Target, l.Key); found {
			f.Verdict, f.Why = Valid, fmt.Sprintf("%s sets %s by itself; %s about other values", j.Target.Name, value, noRecord)
			if l.Value == value || l.Value == asShipped {
				f.Verdict, f.Why = IsDefault, j.Target.Name+" sets "+value+" by itself"
			}
		}
		return f
	case r.Inert:
		f.Verdict, f.Detail, f.Why = ineffective(r, l.Key)
		return f
	case j.NoVersion():
		f.Verdict, f.Why = j.anyVersion(r, l)
		return f
	}
	if verdict, detail, why, missing := j.missing(r, l); missing {
		f.Verdict, f.Detail, f.Why = verdict, detail, why
		return f
	}
	if since, gone := j.isRemoved(r); gone {
		f.Verdict, f.Detail, f.Why = Removed, since, r.Reason
		if r.Renamed != "" {
			f.Verdict, f.Detail, f.Why = Renamed, heir(r, l.Key), fmt.Sprintf("%s does not have it. %s", since, r.Reason)
			if r.System == linux {
				f.Why = r.Reason
			}
		}
		return f
	}
	if value, found := target.Shipped(j.Target, l.Key); found && (l.Value == value || l.Value == asShipped) {
		f.Verdict, f.Why = IsDefault, j.Target.Name+" sets "+value+" by itself"
		return f
	}
	f.Verdict, f.Why = j.verdict(r, l.Value)
	if r.Tunable && j.Target.Family() == "freebsd" && isSysctlConf(l.File) {
		f.Why = "It has no effect here: it belongs in loader.conf. " + f.Why
	}
	return f
}

// all judges a Linux key with a star in place of an interface: it sets those of all and default,
// too. found is false if it harms neither.
func (j *Auditor) all(l Line) (f Finding, found bool) {
	if j.Target.Family() != linux || !strings.Contains(l.Key, ".*.") {
		return f, false
	}
	for _, name := range []string{".all.", ".default."} {
		one := l
		one.Key = strings.Replace(l.Key, ".*.", name, 1)
		if f = j.Check(one); f.Verdict.Harmful() {
			f.Line = l
			return f, true
		}
	}
	return f, false
}

// ineffective judges a name that sets nothing in any version.
func ineffective(r *db.Record, key string) (verdict Verdict, newName, why string) {
	if r.Renamed != "" {
		return Renamed, heir(r, key), r.Reason
	}
	return Unknown, "", r.Reason
}

// verdict returns the verdict for a record that the target has.
func (j *Auditor) verdict(r *db.Record, value string) (Verdict, string) {
	refused := r.Account == db.Refused && isAdvised(r, value)
	effect, known := r.Values[value]
	switch {
	case value == asShipped && j.Target.Family() != linux && j.Target.Family() != "freebsd":
		return IsDefault, "an entry that leaves the value to the system"
	case known:
		return j.effect(r, value, effect)
	case r.Account == db.Elsewhere:
		return Elsewhere, strings.TrimPrefix(r.Reason, "not a router's business: ")
	case r.Default == bySize && r.Role == db.Endpoint:
		return EndpointOnly, "affects connections that end on the host, not forwarded ones. It is sized by memory: leave it out. " + sentence(r)
	case r.Default == bySize:
		return Valid, "sized by memory, leave out. " + sentence(r)
	case refused && (r.Grade() == db.Published || r.Grade() == db.Measured):
		return Contradicted, r.Reason
	case refused && (r.System == linux || !j.isDefault(r, value)):
		return Dangerous, r.Reason
	case against(r, value) != "":
		return Dangerous, against(r, value) + ". " + sentence(r)
	case j.isDefault(r, value):
		return IsDefault, "the system sets " + value + " by itself"
	case r.Role == db.Endpoint:
		return EndpointOnly, "affects connections that end on the host, not forwarded ones. " + recordText(r, value)
	}
	return Valid, recordText(r, value)
}

// effect returns the verdict for a value that a record has a text for.
func (j *Auditor) effect(r *db.Record, value string, e db.Effect) (Verdict, string) {
	text := fmt.Sprintf("%s Evidence: %s.", e.Says, r.Grade())
	switch {
	case j.isDefault(r, value):
		return IsDefault, "the system sets " + value + " by itself. " + text
	case e.Dangerous:
		return Dangerous, text
	case r.Role == db.Endpoint:
		return EndpointOnly, "affects connections that end on the host, not forwarded ones. " + text
	}
	return Valid, text
}

// opposite maps a switch's value to the other one.
var opposite = map[string]string{"0": "1", "1": "0", "YES": "NO", "NO": "YES"}

// against returns the effect of setting a Linux switch against its default, if the
// default protects or is needed for speed. It returns "" for other values and for
// families of keys.
func against(r *db.Record, value string) string {
	if r.System != linux || r.Account != db.Kept || r.Value != r.Default || value == "" || value != opposite[r.Value] || r.Family() {
		return ""
	}
	switch {
	case value == "0":
		return "it turns off what is on by default"
	case r.Role == db.Hardening:
		return "it turns on what is off by default"
	}
	return ""
}

// oppositeText says that a switch is set to the opposite of the record's value.
func oppositeText(r *db.Record, value string) string {
	other := opposite[strings.ToUpper(value)]
	switch {
	case r.Account != db.Kept || r.Pattern() || other == "" || isAdvised(r, value) || !isAdvised(r, other):
		return ""
	case r.Row != nil:
		return "The guide has " + other + ". "
	}
	return "The opposite is set here. About " + other + " weir says: "
}

// recordText returns a record's own text for a value. If the value is the opposite one, the text
// does not call it the default.
func recordText(r *db.Record, value string) string {
	other := oppositeText(r, value)
	if other == "" {
		return sentence(r)
	}
	return other + strings.Replace(sentence(r), " Risk: None: it is the default.", "", 1)
}

// heir returns the key that took a key's place. If a family was renamed, the rest of the name
// stays.
func heir(r *db.Record, key string) string {
	before, after, family := strings.Cut(r.Key, "*")
	if !family || after != "" || !strings.HasSuffix(r.Renamed, "*") {
		return ofDriver(r.Renamed, key)
	}
	return strings.TrimSuffix(r.Renamed, "*") + strings.TrimPrefix(key, before)
}

// ofDriver returns a key's name for the driver of another key.
func ofDriver(name, key string) string {
	m := driverForm.FindStringSubmatch(key)
	if m == nil {
		return name
	}
	return strings.Replace(name, "dev.igb.", "dev."+m[1]+".", 1)
}

// eitherForm is a part of a key where a shell's loop fills in 4 and 6.
var eitherForm = pattern.New(`\bipv\$(?:\w+|\{\w+\})`)

var driverForm = pattern.New(`^(?:hw|dev)\.([a-z0-9]+?)\.`)

// bySize is the default of records whose value the system computes from its memory. No
// value in a guide equals it.
const bySize = "sized by memory"

// sentence returns a record's own text, with how far it is proven.
func sentence(r *db.Record) string {
	text := cmp.Or(r.Rationale, r.Reason)
	if r.Account == db.Refused {
		text = "This value is fine; only these are refused: " + refusedValues(r) + ": " + text
	}
	if r.Account == db.Kept && r.Risk != "" {
		text += " Risk: " + r.Risk
	}
	return fmt.Sprintf("%s Evidence: %s.", text, r.Grade())
}

// linux is the system whose versions are kernel versions.
const linux = "linux"

// isRemoved reports whether the target is newer than the last version with the key, and the
// version that removed it.
func (j *Auditor) isRemoved(r *db.Record) (since string, gone bool) {
	if r.System == linux {
		return "Linux, after " + r.Until, r.Account == db.Obsolete
	}
	last, err := strconv.Atoi(r.Until)
	if err != nil {
		return "", false // it still exists, or belongs to another system
	}
	return fmt.Sprintf("FreeBSD %d", last+1), j.Target.Major() > last
}

// isDefault reports whether a value is the target's default. For a family of keys it
// cannot tell.
func (j *Auditor) isDefault(r *db.Record, value string) bool {
	if r.System == linux {
		return !strings.HasSuffix(r.Key, "*") && strings.Join(strings.Fields(r.Default), " ") == strings.Join(strings.Fields(value), " ")
	}
	text := target.Default(r, j.Target)
	return text != "" && !r.Pattern() && strings.EqualFold(text, value)
}

// refusedValues returns the values that a record is about: the guide's, or weir's.
func refusedValues(r *db.Record) string {
	values := r.Value
	if r.Row != nil {
		values = r.Row.Value
	}
	return strings.ReplaceAll(strings.ReplaceAll(values, "[off] ", ""), " | ", " or ")
}

// isAdvised reports whether a value is one that a record is about. Other values are not
// refused.
func isAdvised(r *db.Record, value string) bool {
	values := refusedValues(r)
	return values == "" || slices.ContainsFunc(strings.Split(values, " or "), func(v string) bool { return strings.TrimSpace(v) == value })
}

// pick returns the record for a key. A record of the target's own family comes before
// FreeBSD's. Records of other systems do not count for its files.
func (j *Auditor) pick(key string) *db.Record {
	var base *db.Record
	for _, r := range j.DB.Match(eitherForm.ReplaceAllString(key, "ipv4")) {
		switch {
		case r.System == j.Target.Family():
			return r
		case j.Target.Family() == linux:
		case r.System == "freebsd", r.System == "pfsense" && base == nil:
			base = r
		}
	}
	return base
}
