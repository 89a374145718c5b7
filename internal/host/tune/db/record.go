package db

import "slices"

// An Account is the decision about a setting.
type Account string

// Accounts of settings.
const (
	Kept      Account = "record"    // a setting that may be useful
	Obsolete  Account = "obsolete"  // systems newer than Until lack it
	Refused   Account = "refused"   // measurement contradicts it, or it breaks something
	Elsewhere Account = "elsewhere" // not a router's business
)

// A Role is the kind of work that a setting affects.
type Role string

// Roles of a host.
const (
	Forwarder Role = "forwarder" // packets that pass through
	Endpoint  Role = "endpoint"  // connections that end on the host
	Hardening Role = "hardening" // protection; does not affect rates
	Storage   Role = "storage"
	Cosmetic  Role = "cosmetic"
)

// A Grade says how far a setting's effect is proven.
type Grade string

// Grades, best first.
const (
	Measured  Grade = "A" // by weir's own benchmark
	Published Grade = "B" // with intervals or repetitions, by others
	Vendor    Grade = "C" // by the maker's document, or by a standard
	Folklore  Grade = "D" // only a guide says so
)

// Evidence supports the effect of a setting, or contradicts it.
type Evidence struct {
	Grade  Grade  `yaml:"grade" json:"grade"`
	Source string `yaml:"source" json:"source"`
	Says   string `yaml:"says" json:"says,omitempty"`

	Unproven bool `yaml:"unproven" json:"unproven,omitempty"` // it looked for the effect but did not prove it

	// Drivers are those of the cards that it is about, if its effect depends on them.
	Drivers []string `yaml:"drivers" json:"drivers,omitempty"`
}

// Covers reports whether the evidence says something about a driver's cards.
func (e *Evidence) Covers(driver string) bool {
	return len(e.Drivers) == 0 || slices.Contains(e.Drivers, driver)
}

// A Row is a record's place in the table of the guides' settings. With the record's key,
// it names one row.
type Row struct {
	OS    string `yaml:"os" json:"os"`       // as in the table: system and file, or device
	Value string `yaml:"value" json:"value"` // the guide's value, with [off] in front if it is commented out
	Guide string `yaml:"guide" json:"guide"` // 000 to 004
}

// A Record is one setting.
type Record struct {
	Key string `yaml:"key" json:"-"` // N stands for a device's number, DEV for its name

	Row *Row `yaml:"row" json:"-"` // nil if no guide names it

	Account Account `yaml:"account" json:"account"`
	Role    Role    `yaml:"role" json:"role"`

	System   string `yaml:"system" json:"system"` // freebsd, linux, …; any for devices
	Place    string `yaml:"place" json:"place"`   // a name in places.yaml
	Versions string `yaml:"versions" json:"versions,omitempty"`
	Since    string `yaml:"since" json:"since,omitempty"`     // FreeBSD: first major version that has it, or its value
	Until    string `yaml:"until" json:"until,omitempty"`     // the last version that has it
	Renamed  string `yaml:"renamed" json:"renamed,omitempty"` // the key that took its place
	Driver   string `yaml:"driver" json:"driver,omitempty"`
	Inert    bool   `yaml:"inert" json:"inert,omitempty"`     // the name sets nothing: it is read-only, or nobody reads it
	Tunable  bool   `yaml:"tunable" json:"tunable,omitempty"` // FreeBSD: only the loader sets it; as a sysctl it is read-only
	Scope    string `yaml:"scope" json:"scope,omitempty"`     // Linux: namespace or host

	Default string   `yaml:"default" json:"default,omitempty"`
	Value   string   `yaml:"value" json:"-"`               // what weir sets, or the text is about: "{}" is Formula's figure, "=" the found value
	Least   bool     `yaml:"least" json:"least,omitempty"` // never lowered
	Formula string   `yaml:"formula" json:"-"`             // a name in formulas.go
	Inputs  []string `yaml:"inputs" json:"inputs,omitempty"`

	Rationale string     `yaml:"rationale" json:"rationale,omitempty"`
	Risk      string     `yaml:"risk" json:"risk,omitempty"`
	Reason    string     `yaml:"reason" json:"reason,omitempty"` // why it is obsolete, refused or elsewhere
	Conflicts []string   `yaml:"conflicts" json:"conflicts,omitempty"`
	Evidence  []Evidence `yaml:"evidence" json:"evidence,omitempty"`

	// Values says what single values do, where Rationale does not.
	Values map[string]Effect `yaml:"values" json:"values,omitempty"`

	// Linux is the nearest setting of Linux.
	Linux string `yaml:"linux" json:"linux,omitempty"`
	// Weir is what weir's own path does about the same.
	Weir string `yaml:"weir" json:"weir,omitempty"`
}

// An Effect is what a single value does.
type Effect struct {
	Says      string `yaml:"says" json:"says"`
	Dangerous bool   `yaml:"dangerous" json:"dangerous,omitempty"` // it breaks something, unless the system sets it by itself
}

// A Place is where settings are made: a file or a menu.
type Place struct {
	Apply       string `yaml:"apply" json:"apply"`
	ReadBack    string `yaml:"readback" json:"readback"`
	Revert      string `yaml:"revert" json:"revert"`
	Persistence string `yaml:"persistence" json:"persistence"`
}

// Grade returns the best grade of the record's evidence, "" if the setting is not a
// router's business. Evidence that did not prove the effect does not count.
func (r *Record) Grade() Grade { return r.best(func(*Evidence) bool { return true }) }

// GradeFor returns the best grade of the evidence that covers a driver's cards, "" for
// none.
func (r *Record) GradeFor(driver string) Grade {
	return r.best(func(e *Evidence) bool { return e.Covers(driver) })
}

func (r *Record) best(counts func(e *Evidence) bool) (best Grade) {
	for i := range r.Evidence {
		if e := &r.Evidence[i]; !e.Unproven && counts(e) && (best == "" || e.Grade < best) {
			best = e.Grade
		}
	}
	return best
}

// Ineffective returns the measurement that looked for the setting's effect and proved
// none, nil if there is no such or if another one of its grade proved it.
func (r *Record) Ineffective() *Evidence {
	for i := range r.Evidence {
		if e := &r.Evidence[i]; e.Unproven && e.Grade < r.Grade() {
			return e
		}
	}
	return nil
}
