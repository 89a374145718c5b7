package db

// An Account says what became of a setting.
type Account string

// The accounts.
const (
	Kept      Account = "record"    // a setting that may be of use
	Obsolete  Account = "obsolete"  // systems newer than Until do not have it
	Refused   Account = "refused"   // measurement contradicts it, or it breaks something
	Elsewhere Account = "elsewhere" // not a router's business
)

// A Role is the kind of work on which a setting acts.
type Role string

// The roles.
const (
	Forwarder Role = "forwarder" // packets that pass through
	Endpoint  Role = "endpoint"  // connections that end on the host
	Hardening Role = "hardening" // protection; changes no rate
	Storage   Role = "storage"
	Cosmetic  Role = "cosmetic"
)

// A Grade says how far a setting's effect is proven.
type Grade string

// The grades, from the best on.
const (
	Measured  Grade = "A" // by weir's own benchmark
	Published Grade = "B" // with intervals or repetitions, by others
	Vendor    Grade = "C" // by the document of who makes it, or by a standard
	Folklore  Grade = "D" // by a guide's word
)

// Evidence is what speaks for the effect of a setting, or against it.
type Evidence struct {
	Grade  Grade  `yaml:"grade" json:"grade"`
	Source string `yaml:"source" json:"source"`
	Says   string `yaml:"says" json:"says,omitempty"`

	Unproven bool `yaml:"unproven" json:"unproven,omitempty"` // it looked for the effect and did not prove it
}

// A Row is where a record stands in the table of the guides' settings: with the
// record's key, it names one row.
type Row struct {
	OS    string `yaml:"os" json:"os"`       // as the table has it: system and file, or device
	Value string `yaml:"value" json:"value"` // the guide's; [off] before what it has as a comment
	Guide string `yaml:"guide" json:"guide"` // 000 to 004
}

// A Record is one setting.
type Record struct {
	Key string `yaml:"key" json:"-"` // N stands for the number of a device, DEV for its name

	Row *Row `yaml:"row" json:"-"` // nil for what no guide names

	Account Account `yaml:"account" json:"account"`
	Role    Role    `yaml:"role" json:"role"`

	System   string `yaml:"system" json:"system"` // freebsd, linux, …; any for devices
	Place    string `yaml:"place" json:"place"`   // a name in places.yaml
	Versions string `yaml:"versions" json:"versions,omitempty"`
	Since    string `yaml:"since" json:"since,omitempty"`     // FreeBSD's: the first major version that has it, or its value
	Until    string `yaml:"until" json:"until,omitempty"`     // the last version that has it
	Renamed  string `yaml:"renamed" json:"renamed,omitempty"` // the key that took its place
	Driver   string `yaml:"driver" json:"driver,omitempty"`
	Inert    bool   `yaml:"inert" json:"inert,omitempty"`     // a name that sets nothing: it only tells, or nobody reads it
	Tunable  bool   `yaml:"tunable" json:"tunable,omitempty"` // of FreeBSD's: the loader alone sets it; as a sysctl it can be read
	Scope    string `yaml:"scope" json:"scope,omitempty"`     // of Linux's: namespace or host

	Default string   `yaml:"default" json:"default,omitempty"`
	Value   string   `yaml:"value" json:"-"`               // what weir sets, or is spoken of: "{}" is Formula's figure, "=" what was found
	Least   bool     `yaml:"least" json:"least,omitempty"` // never lowered
	Formula string   `yaml:"formula" json:"-"`             // a name in formulas.go
	Inputs  []string `yaml:"inputs" json:"inputs,omitempty"`

	Rationale string     `yaml:"rationale" json:"rationale,omitempty"`
	Risk      string     `yaml:"risk" json:"risk,omitempty"`
	Reason    string     `yaml:"reason" json:"reason,omitempty"` // why it is obsolete, refused or elsewhere
	Conflicts []string   `yaml:"conflicts" json:"conflicts,omitempty"`
	Evidence  []Evidence `yaml:"evidence" json:"evidence,omitempty"`

	// Linux is the setting of Linux that comes nearest.
	Linux string `yaml:"linux" json:"linux,omitempty"`
}

// A Place is where settings are made: a file or a menu.
type Place struct {
	Apply       string `yaml:"apply" json:"apply"`
	ReadBack    string `yaml:"readback" json:"readback"`
	Revert      string `yaml:"revert" json:"revert"`
	Persistence string `yaml:"persistence" json:"persistence"`
}

// Grade is the best grade of what speaks about the record, "" for what is not a
// router's business. What did not prove the effect does not count.
func (r *Record) Grade() Grade {
	var best Grade
	for _, e := range r.Evidence {
		if !e.Unproven && (best == "" || e.Grade < best) {
			best = e.Grade
		}
	}
	return best
}
