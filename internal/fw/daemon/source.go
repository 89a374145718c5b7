package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"weir/internal/fw/dataplane"
	"weir/internal/fw/rundir"
	"weir/internal/host/hostdb"
	"weir/internal/killpoint"
	"weir/pf/parser"
	"weir/pf/source"
)

// Source is the text of a ruleset. It is resolved again whenever the machine changes,
// because interfaces and groups come and go.
type Source struct {
	Name string // the user's name for it, for diagnostics
	Path string // absolute, for records; rundir.Builtin for the built-in ruleset
	Text string
	source.Beside
	Builtin bool
	load    uint64                   // tells loads apart, also of the same text: rules with once begin anew; 0: a record of an earlier version
	flushed flushed                  // what pfctl -F has taken from it; not recorded, so a start has all of it again
	tables  map[string]*rundir.Table // of a load that is rolled back: what its tables held
	looked  *looked                  // of a load that asked for no host
	hosts   *hostdb.DNS              // looks up the file's hosts once and keeps the results; nil: look up none
}

// equal reports whether two sources are the same.
func (s *Source) equal(other *Source) bool {
	return s.Name == other.Name && s.Path == other.Path && s.Text == other.Text && s.Builtin == other.Builtin &&
		s.hosts == other.hosts && s.Beside.Equal(&other.Beside)
}

// bytes returns how long the text is, with all files that it names.
func (s *Source) bytes() int {
	n := len(s.Text)
	for _, f := range s.Files {
		n += len(f.Text)
	}
	return n
}

// builtinRules forward nothing and let only the administrator in. The implicit passes
// keep the box on its networks. lo is open, because only the box's own programs use it:
// cutting off a database or a resolver would lock the administrator out too.
const builtinRules = `set skip on lo
block
pass in proto tcp to self port %d
`

func builtin(management uint16) Source {
	return Source{Name: rundir.Builtin, Path: rundir.Builtin, Text: fmt.Sprintf(builtinRules, management), Builtin: true}
}

// readSource reads the rule file of a start. A missing default file is no error if rules are in force: they stay. Without any,
// only OrBlock blocks everything.
func (b *box) readSource() (Source, error) {
	s, err := b.cfg.readFile()
	if b.cfg.Optional && errors.Is(err, fs.ErrNotExist) {
		if _, err := b.sourceInForce(); err != nil && !b.cfg.OrBlock {
			return Source{}, b.noRules(err)
		}
		return b.withoutFile(), nil
	}
	if before, err := b.sourceInForce(); err == nil && before.Builtin == s.Builtin && before.sameFile(&s) {
		s.load = before.load // it is no other load
	}
	return s, err
}

// noRules is the error of a start that has neither a file nor rules in force.
func (b *box) noRules(why error) error {
	const advice = "there is no %s: write one, name one with -f, or give --or-block to block everything"
	if errors.Is(why, dataplane.ErrNotLoaded) {
		return fmt.Errorf(advice, b.cfg.File)
	}
	return fmt.Errorf(advice+"; the rules in force cannot be read again: %w", b.cfg.File, why)
}

// newLoad returns a number that no load had before.
func newLoad() uint64 { return uint64(time.Now().UnixNano()) }

func (cfg *Config) readFile() (Source, error) {
	text, err := source.ReadFile(cfg.File)
	if err != nil {
		return Source{}, fmt.Errorf("read the rules: %w", err)
	}
	path, err := filepath.Abs(cfg.File)
	if err != nil {
		return Source{}, fmt.Errorf("find the rule file's folder: %w", err)
	}
	beside := parser.Beside(cfg.File, text, cfg.Macros, source.Disk{})
	beside.Without = cfg.Without
	return Source{Name: cfg.File, Path: path, Text: string(text), Beside: beside, load: newLoad(), hosts: lookups(cfg.NoDNS)}, nil
}

// lookups returns what looks up the hosts of a new source.
func lookups(noDNS bool) *hostdb.DNS {
	if noDNS {
		return nil
	}
	return hostdb.NewDNS()
}

// withoutFile returns what a start loads without a file: the rules in force, or the
// built-in ones if there are none.
func (b *box) withoutFile() Source {
	source, err := b.sourceInForce()
	b.substitute = err == nil && !source.Builtin
	if err == nil {
		return source
	}
	if !errors.Is(err, dataplane.ErrNotLoaded) {
		b.cfg.Log.Warn("the rules in force cannot be read again", "error", err)
	}
	return builtin(b.cfg.Management)
}

// sourceInForce returns the text of the rules in force, which an earlier daemon may have
// loaded. The daemon may be another version's, whose tables only an upgrade can read.
func (b *box) sourceInForce() (Source, error) {
	generation, err := dataplane.LiveGeneration(b.dir)
	if err != nil {
		return Source{}, err
	}
	r, err := b.sourceOf(generation)
	if err != nil {
		return Source{}, err
	}
	if r.Builtin { // the management port may have changed
		return builtin(b.cfg.Management), nil
	}
	return *restored(r), nil
}

// sourceOf returns the record of the text that a generation was made from.
func (b *box) sourceOf(generation uint32) (*rundir.Source, error) {
	r := new(rundir.Source)
	return r, rundir.ReadJSON(b.cfg.Folder.SourceOf(generation), r)
}

// sameText reports whether a source has the text of a record.
func (s *Source) sameText(r *rundir.Source) bool {
	return s.Path == r.Path && s.Text == r.Text && s.Builtin == r.Builtin && s.Beside.Equal(&r.Beside)
}

// restored returns a source from its record. Its hosts keep their recorded addresses. No
// others are looked up.
func restored(r *rundir.Source) *Source {
	s := &Source{Name: r.Name, Path: r.Path, Text: r.Text, Beside: r.Beside, load: r.Load, hosts: hostdb.Asking(nil)}
	s.hosts.Remember(r.Hosts)
	return s
}

// recordSource records the source of a generation before it is live.
func (b *box) recordSource(s *Source, generation uint32) error {
	return b.recordSettling(s, generation, nil)
}

// recordSettling records a source before the records of some tables are those of its rules.
func (b *box) recordSettling(s *Source, generation uint32, tables []string) error {
	err := rundir.WriteJSON(b.cfg.Folder.SourceOf(generation), rundir.Source{
		Name: s.Name, Path: s.Path, Text: s.Text, Beside: s.Beside, Builtin: s.Builtin, Hosts: s.hosts.Known(),
		Load: s.load, Settling: tables, Time: time.Now(), Generation: generation,
	})
	if err != nil {
		return fmt.Errorf("record the text of the rules: %w", err)
	}
	return nil
}

// pruneSources removes the texts of all generations except one.
func (b *box) pruneSources(generation uint32) error {
	files, err := os.ReadDir(b.cfg.Folder.Sources())
	if err != nil {
		return fmt.Errorf("list the texts of rules: %w", err)
	}
	keep := b.cfg.Folder.SourceOf(generation)
	var errs []error
	for _, f := range files {
		if path := filepath.Join(b.cfg.Folder.Sources(), f.Name()); path != keep {
			errs = append(errs, killpoint.Remove(path))
		}
	}
	return errors.Join(errs...)
}

// path returns the name in records for a file that messages call name.
func (s *Source) path(name string) string {
	if name == s.Name || s.Builtin {
		return s.Path
	}
	if beside, err := filepath.Rel(filepath.Dir(s.Name), name); err == nil && !filepath.IsAbs(name) {
		return filepath.Join(filepath.Dir(s.Path), beside)
	}
	return name
}
