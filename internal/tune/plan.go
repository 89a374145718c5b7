package tune

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"weir/internal/tune/db"
)

// A Change is one setting that a plan makes.
type Change struct {
	Key      string        `json:"key"`
	From     string        `json:"from"` // as the kernel writes it
	To       string        `json:"to"`
	Figure   string        `json:"figure,omitempty"` // how To comes about
	Why      string        `json:"why"`
	Risk     string        `json:"risk"`
	Evidence []db.Evidence `json:"evidence"`
	Grade    db.Grade      `json:"grade"`
	Scope    string        `json:"scope"` // namespace or host
}

// A Skip is one setting that a plan leaves alone, and why.
type Skip struct {
	Key string `json:"key"`
	Why string `json:"why"`
}

// A Plan is what would change on a host.
type Plan struct {
	Inputs  Inputs   `json:"inputs"`
	Changes []Change `json:"changes"`
	Skips   []Skip   `json:"skips"`
	Fit     []string `json:"fit"` // keys that are as advised already
	Left    []string `json:"-"`   // keys of the journal that the administrator has taken over
	entries []entry  // the journal's when the plan was made

	Arithmetic []Arithmetic `json:"arithmetic"`
}

// Plan compares the host with the records of the inputs' role. Keys name settings
// that are wanted whatever their role and grade and need; without any, those that
// only a guide speaks for, and those for which the host shows no need, are left.
func (h *Host) Plan(d *db.DB, in Inputs, keys ...string) (*Plan, error) {
	for _, key := range keys {
		if !slices.ContainsFunc(d.ByKey(key), settable) {
			return nil, fmt.Errorf("weir tune sets no %s on Linux; weir tune list --all names what it does", key)
		}
	}
	in = h.Complete(in)
	setters, err := h.admin()
	if err != nil {
		return nil, err
	}
	journal, err := h.readJournal()
	if err != nil {
		return nil, err
	}
	sums, err := in.arithmetic()
	if err != nil {
		return nil, err
	}
	p := &Plan{Inputs: in, Changes: []Change{}, Skips: []Skip{}, Fit: []string{}, Arithmetic: sums, entries: journal.Entries}
	j := judge{host: h, plan: p, in: &in, setters: setters, journal: journal, whole: h.whole()}
	for _, r := range d.Records {
		named := slices.Contains(keys, r.Key)
		if settable(r) && (named || len(keys) == 0 && r.Role == in.Role) {
			if err := j.record(r, named); err != nil {
				return nil, err
			}
		}
	}
	return p, nil
}

func settable(r *db.Record) bool { return r.System == "linux" && r.Place == "sysctl.d" }

// judge is what records are judged by.
type judge struct {
	host    *Host
	plan    *Plan
	in      *Inputs
	setters []setter
	journal *journal
	whole   bool
}

// record puts a record among the changes, the skips or what fits already.
func (j *judge) record(r *db.Record, named bool) error {
	if !j.whole && r.Scope == "host" {
		j.skip(r, "it is the whole host's, and this is a network namespace")
		return nil
	}
	found, err := j.host.Read(r.Key)
	if errors.Is(err, fs.ErrNotExist) {
		j.skip(r, "this kernel does not have it, or not yet: its module is not loaded")
		return nil
	}
	if err != nil {
		return err
	}
	if why := j.adminHas(r.Key, found); why != "" {
		j.skip(r, why)
		return nil
	}
	if missing := j.missing(r); missing != "" {
		j.skip(r, "not known: "+missing)
		return nil
	}
	c, err := j.change(r, found)
	switch {
	case err != nil:
		return err
	case same(c.From, c.To), r.Least && enough(c.From, c.To):
		j.plan.Fit = append(j.plan.Fit, r.Key)
	case !named && c.Grade > db.Vendor:
		j.skip(r, fmt.Sprintf("only a guide speaks for %s; to try it: weir tune apply %s", c.To, r.Key))
	case !named && j.host.noNeed(r.Key) != "":
		j.skip(r, fmt.Sprintf("no need for %s: %s; to set it all the same: weir tune apply %s", c.To, j.host.noNeed(r.Key), r.Key))
	default:
		j.plan.Changes = append(j.plan.Changes, *c)
	}
	return nil
}

func (j *judge) skip(r *db.Record, why string) {
	j.plan.Skips = append(j.plan.Skips, Skip{Key: r.Key, Why: why})
}

// adminHas says how the administrator has set a key: in a file, or by hand since
// weir set it. "" if he has not.
func (j *judge) adminHas(key, found string) string {
	kept := j.journal.entry(key)
	if s := setBy(j.setters, key); s != nil {
		if kept != nil {
			j.plan.Left = append(j.plan.Left, key)
		}
		return fmt.Sprintf("the administrator sets it in %s", s.at)
	}
	if kept != nil && !same(kept.Set, found) {
		return fmt.Sprintf("weir set it to %s, and somebody has set it to %s since; weir tune revert forgets it", kept.Set, strings.Join(strings.Fields(found), " "))
	}
	return ""
}

// missing names the inputs that a record needs and nobody told.
func (j *judge) missing(r *db.Record) string {
	var names []string
	for _, in := range r.Inputs {
		if !j.in.has(in) {
			names = append(names, "--"+in)
		}
	}
	return strings.Join(names, ", ")
}

// change is what a record asks for, where that differs from what was found or not.
func (j *judge) change(r *db.Record, found string) (*Change, error) {
	c := &Change{Key: r.Key, From: found, Why: r.Rationale, Risk: r.Risk, Evidence: r.Evidence, Grade: r.Grade(), Scope: r.Scope}
	var f *figure
	if r.Formula != "" {
		var err error
		if f, err = compute(r.Formula, j.in); err != nil {
			return nil, err
		}
		c.Figure = f.shown
	}
	c.To = fill(r.Value, found, f)
	return c, nil
}
