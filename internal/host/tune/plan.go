package tune

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"weir/internal/host/tune/db"
)

// A Change is a setting that a plan changes.
type Change struct {
	Key      string        `json:"key"`
	From     string        `json:"from"` // as the kernel writes it
	To       string        `json:"to"`
	Figure   string        `json:"figure,omitempty"` // calculation of To
	Why      string        `json:"why"`
	Risk     string        `json:"risk"`
	Evidence []db.Evidence `json:"evidence"`
	Grade    db.Grade      `json:"grade"`
	Scope    string        `json:"scope,omitempty"` // for sysctls: namespace or host
	Role     db.Role       `json:"role"`
	Card     string        `json:"card,omitempty"` // card of the setting
}

// A Skip is a setting that a plan leaves alone, with the reason.
type Skip struct {
	Key string `json:"key"`
	Why string `json:"why"`
}

// A Plan is what would change on a host.
type Plan struct {
	Inputs  Inputs   `json:"inputs"`
	Changes []Change `json:"changes"`
	Skips   []Skip   `json:"skips"`
	Fit     []string `json:"fit"` // keys already set as advised
	Left    []string `json:"-"`   // keys of the journal that the administrator has since set himself
	entries []entry  // the journal's entries when the plan was made
	// again plans once more. If a card gets another number of queues, their settings
	// can be planned only afterwards.
	again func() (*Plan, error)

	Arithmetic []Arithmetic `json:"arithmetic"`
}

// Plan compares the host with the records of the inputs' role. Keys name settings that
// are wanted whatever their role, grade and need. Without keys, it leaves out settings
// that only a guide recommends, and those that the host shows no need for. nic.DEV.lro
// names a setting of all cards, nic.eth1.lro that of one card.
func (h *Host) Plan(d *db.DB, in Inputs, keys ...string) (*Plan, error) {
	for _, key := range keys {
		if !slices.ContainsFunc(d.ByKey(recordKey(key)), settable) {
			return nil, fmt.Errorf("weir tune does not set %s on Linux; weir tune list --all shows what it sets", key)
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
	p.again = func() (*Plan, error) { return h.Plan(d, in, keys...) }
	j := planner{host: h, plan: p, in: &in, setters: setters, journal: journal, whole: h.isWholeMachine(), cards: h.cards(), services: h.services()}
	for _, r := range d.Records {
		if !settable(r) || len(keys) == 0 && r.Role != in.Role {
			continue
		}
		for _, key := range j.keysOf(r, keys) {
			if err := j.key(r, key, len(keys) > 0); err != nil {
				return nil, err
			}
		}
	}
	return p, nil
}

// PlanOf returns a plan of given changes: each has a key, a value and a reason. If they
// give a card another number of queues, again returns the changes to make afterwards; it
// may be nil.
func (h *Host) PlanOf(changes []Change, again func() ([]Change, error)) (*Plan, error) {
	journal, err := h.readJournal()
	if err != nil {
		return nil, err
	}
	p := &Plan{Changes: slices.Clone(changes), entries: journal.Entries}
	for i := range p.Changes {
		p.Changes[i].Key = h.existingKey(p.Changes[i].Key)
		if p.Changes[i].From, err = h.Read(p.Changes[i].Key); err != nil {
			return nil, err
		}
	}
	p.again = func() (*Plan, error) {
		if again == nil {
			return &Plan{}, nil
		}
		changes, err := again()
		if err != nil {
			return nil, err
		}
		return h.PlanOf(changes, nil)
	}
	return p, nil
}

// places are the places in which weir tune sets something on Linux.
var places = []string{"sysctl.d", "card", "cores"}

func settable(r *db.Record) bool { return r.System == "linux" && slices.Contains(places, r.Place) }

// planner holds the facts that records are compared with.
type planner struct {
	host     *Host
	plan     *Plan
	in       *Inputs
	setters  []setter
	journal  *contents
	whole    bool
	cards    []string
	services []string // running services that change what weir tune may set
}

// keysOf returns the keys that a record stands for here: one for each card if it is a
// card's setting. Without names it returns all.
func (j *planner) keysOf(r *db.Record, names []string) []string {
	var keys []string
	add := func(key string) {
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	card, setting, isCard := cardKey(r.Key)
	for _, name := range names {
		if name != r.Key && recordKey(name) == r.Key {
			add(name)
		}
	}
	switch {
	case len(names) > 0 && !slices.Contains(names, r.Key):
	case isCard && card == anyCard:
		for _, name := range j.cards {
			add(cardPrefix + name + "." + setting)
		}
		if len(names) > 0 && len(j.cards) == 0 {
			j.skip(r.Key, "no card is in use here")
		}
	default:
		add(r.Key)
	}
	return keys
}

// key puts a key among the changes, the skips, or the keys already set as advised.
func (j *planner) key(r *db.Record, key string, named bool) error {
	if !j.whole && (r.Scope == "host" || r.Place == "cores") {
		j.skip(key, "it affects the whole host, and this is a network namespace")
		return nil
	}
	found, err := j.host.Read(key)
	if errors.Is(err, fs.ErrNotExist) {
		j.missingKey(r, key, named)
		return nil
	}
	if err != nil {
		j.skip(key, fmt.Sprintf("it cannot be read: %v", err))
		return nil
	}
	if why := j.adminHas(key, found); why != "" {
		j.skip(key, why)
		return nil
	}
	if missing := j.missing(r); missing != "" {
		j.skip(key, "not known: "+missing)
		return nil
	}
	c, noNeed, err := j.change(r, key, found)
	switch {
	case err != nil:
		return err
	case noNeed != "" && c.To == "":
		j.skip(key, noNeed)
	case sameValue(key, c.From, c.To), r.Least && suffices(c.From, c.To):
		j.plan.Fit = append(j.plan.Fit, key)
	case !named && c.Grade > db.Vendor:
		j.skip(key, fmt.Sprintf("only a guide recommends %s; to try it: weir tune apply %s", c.To, key))
	case !named && r.Ineffective() != nil:
		j.skip(key, fmt.Sprintf("a measurement proved no effect of %s (%s); to set it anyway: weir tune apply %s", c.To, r.Ineffective().Says, key))
	case !named && noNeed != "":
		j.skip(key, fmt.Sprintf("no need for %s: %s; to set it anyway: weir tune apply %s", c.To, noNeed, key))
	default:
		j.plan.Changes = append(j.plan.Changes, *c)
	}
	return nil
}

// missingKey notes that the host has no such key. If most cards lack the setting, it is
// noted only if it was named.
func (j *planner) missingKey(r *db.Record, key string, named bool) {
	switch {
	case r.Place == "sysctl.d":
		j.skip(key, "this kernel does not have it, or its module is not loaded")
	case named:
		j.skip(key, "the device, or its driver, does not have it")
	}
}

func (j *planner) skip(key, why string) {
	j.plan.Skips = append(j.plan.Skips, Skip{Key: key, Why: why})
}

// adminHas says how the administrator has set a key: in a file, or by hand since weir set
// it. It returns "" if he has not.
func (j *planner) adminHas(key, found string) string {
	kept := j.journal.entry(key)
	if s := setBy(j.setters, key); s != nil {
		if kept != nil {
			j.plan.Left = append(j.plan.Left, key)
		}
		return fmt.Sprintf("the administrator sets it in %s", s.at)
	}
	if service := j.meddler(key); service != "" {
		return service + " runs and sets it; stop it first"
	}
	if where := j.host.linkSets(key); where != "" {
		return "the administrator sets it in " + where
	}
	if kept != nil && !sameValue(key, kept.Set, found) {
		return fmt.Sprintf("weir set it to %s, and somebody has since set it to %s; weir tune revert forgets it", kept.Set, strings.Join(strings.Fields(found), " "))
	}
	return ""
}

// missing names the record's inputs that are unknown.
func (j *planner) missing(r *db.Record) string {
	var names []string
	for _, in := range r.Inputs {
		if !j.in.has(in) {
			names = append(names, "--"+in)
		}
	}
	return strings.Join(names, ", ")
}

// change returns the change that a record asks for, even if the value equals the found
// one. If it would have no effect, noNeed says why. A change to "" cannot be made.
func (j *planner) change(r *db.Record, key, found string) (c *Change, noNeed string, err error) {
	c = &Change{Key: key, From: found, Why: r.Rationale, Risk: r.Risk, Evidence: r.Evidence, Grade: r.Grade(), Scope: r.Scope, Role: r.Role}
	c.Card, _, _ = cardKey(key)
	if r.Place != "sysctl.d" {
		w := j.want(r, key, found)
		c.To, c.Figure = w.value, w.shown
		return c, w.noNeed, nil
	}
	var f *figure
	if r.Formula != "" {
		if f, err = compute(r.Formula, j.in); err != nil {
			return nil, "", err
		}
		c.Figure = f.shown
	}
	c.To = fill(r.Value, found, f)
	return c, j.host.unneeded(key), nil
}
