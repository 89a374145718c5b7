package audit

import (
	"fmt"
	"strconv"
	"strings"

	"weir/internal/tune/db"
	"weir/internal/tune/target"
)

// A Verdict is what is to be said of a line.
type Verdict string

// The verdicts.
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
)

// Harmful reports whether a line with the verdict should go or change.
func (v Verdict) Harmful() bool {
	return v == Removed || v == Renamed || v == Contradicted || v == Dangerous
}

// A Finding is a line and its verdict.
type Finding struct {
	Line
	Verdict Verdict `json:"verdict"`
	Detail  string  `json:"detail,omitempty"` // the version of "removed in", the key of "renamed to"
	Why     string  `json:"why"`
}

// Says is the verdict in words, and why.
func (f *Finding) Says() string {
	if f.Detail != "" {
		return fmt.Sprintf("%s %s: %s", f.Verdict, f.Detail, f.Why)
	}
	return string(f.Verdict) + ": " + f.Why
}

// A Judge knows the database and for which system lines are judged.
type Judge struct {
	DB     *db.DB
	Target target.Target
}

// Known reports whether the database has a key.
func (j *Judge) Known(key string) bool { return j.pick(key) != nil }

// Judge says what is to be said of a line.
func (j *Judge) Judge(l Line) Finding {
	f := Finding{Line: l}
	r := j.pick(l.Key)
	if r == nil {
		f.Verdict, f.Why = Unknown, "weir has no record of it"
		return f
	}
	if last, gone := j.gone(r); gone {
		f.Verdict, f.Detail, f.Why = Removed, fmt.Sprintf("FreeBSD %d", last+1), r.Reason
		if r.Renamed != "" {
			f.Verdict, f.Detail, f.Why = Renamed, r.Renamed, fmt.Sprintf("FreeBSD %d does not have it. %s", last+1, r.Reason)
		}
		return f
	}
	f.Verdict, f.Why = j.verdict(r, l.Value)
	return f
}

// verdict is that of a record which the target has.
func (j *Judge) verdict(r *db.Record, value string) (Verdict, string) {
	switch {
	case r.Account == db.Elsewhere:
		return Elsewhere, strings.TrimPrefix(r.Reason, "not a router's business: ")
	case r.Default == bySize:
		return Valid, "sized by memory, leave out. " + sentence(r)
	case j.isDefault(r, value):
		return IsDefault, "the system sets " + value + " by itself"
	case r.Account == db.Refused && advises(r, value):
		if r.Grade() == db.Published || r.Grade() == db.Measured {
			return Contradicted, r.Reason
		}
		return Dangerous, r.Reason
	case r.Role == db.Endpoint:
		return EndpointOnly, "acts on connections that end on the host, not on what it forwards. " + sentence(r)
	}
	return Valid, sentence(r)
}

// bySize is the default of records that the system computes from its memory: no value
// of a guide is it.
const bySize = "sized by memory"

// sentence is what a record says of itself, with how far that is proven.
func sentence(r *db.Record) string {
	text := r.Rationale
	if text == "" {
		text = r.Reason
	}
	if r.Account == db.Kept && r.Risk != "" {
		text += " Risk: " + r.Risk
	}
	return fmt.Sprintf("%s Evidence: %s.", text, r.Grade())
}

// gone reports whether the target is newer than the last version with the key. A
// version that is not known is taken for newer.
func (j *Judge) gone(r *db.Record) (last int, gone bool) {
	last, err := strconv.Atoi(r.Until)
	if err != nil {
		return 0, false // it is there still, or another system's
	}
	return last, j.Target.Major() == 0 || j.Target.Major() > last
}

// isDefault reports whether a value is the target's default.
func (j *Judge) isDefault(r *db.Record, value string) bool {
	text := target.Default(r, j.Target)
	return text != "" && strings.EqualFold(text, value)
}

// advises reports whether a value is one of those that the guide has for a refused
// record; another value is not what is refused.
func advises(r *db.Record, value string) bool {
	if r.Row == nil {
		return true
	}
	for _, v := range strings.Split(r.Row.Value, "|") {
		if v = strings.TrimSpace(v); strings.TrimSpace(strings.TrimPrefix(v, "[off]")) == value {
			return true
		}
	}
	return false
}

// pick is the record for a key: of the target's own family before FreeBSD's; those of
// other systems are not for its files.
func (j *Judge) pick(key string) *db.Record {
	var base *db.Record
	for _, r := range j.DB.Match(key) {
		switch {
		case r.System == j.Target.Family():
			return r
		case r.System == "freebsd", r.System == "pfsense" && base == nil:
			base = r
		}
	}
	return base
}
