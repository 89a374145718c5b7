package bpfload

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/cilium/ebpf"
	"golang.org/x/sync/errgroup"
)

// Names for the library's types that other packages use, so that they need not import it.
type (
	Map         = ebpf.Map
	MapSpec     = ebpf.MapSpec
	Program     = ebpf.Program
	ProgramSpec = ebpf.ProgramSpec
	Spec        = ebpf.CollectionSpec
	Refusal     = ebpf.VerifierError // prints a summary; %+v prints the verifier's whole log
	MapBatch    = ebpf.MapBatchCursor
)

// Errors of maps that callers distinguish.
var (
	ErrNoKey = ebpf.ErrKeyNotExist
	// ErrAborted ends an iteration over a map that changes too fast.
	ErrAborted = ebpf.ErrIterationAborted
	ErrHasKey  = ebpf.ErrKeyExist
)

// ReadSpec reads an object.
func ReadSpec(object io.ReaderAt) (*Spec, error) {
	spec, err := ebpf.LoadCollectionSpecFromReader(object)
	if err != nil {
		return nil, fmt.Errorf("read an object: %w", err)
	}
	return spec, nil
}

// Options says how objects are loaded.
type Options struct {
	// Maps are used instead of new ones of the same name. The caller still owns them.
	Maps map[string]*Map
	// Entries overrides the sizes of maps.
	Entries map[string]uint32
	// Values sets read-only variables, in every object that has them.
	Values map[string]any
	// Shared names the data sections that all objects share, as they share maps of
	// one name. Each object has its own copy of the other sections.
	Shared []string
	// Programs names the programs to load at once. The others are loaded when they
	// are needed. nil means all.
	Programs []string
	// Aside loads them on half of the cores, because other programs need the machine.
	Aside bool
}

// Objects holds the maps of several object files, and the programs that were needed so
// far.
type Objects struct {
	Programs map[string]*Program
	Maps     map[string]*Map

	aside    bool       // as in Options; those that are needed later are loaded aside in any case
	mutex    sync.Mutex // protects the programs and the fields below
	prepared map[string]*Program
	objects  []object
	own      []*ebpf.Collection
}

// object is one file: its declarations and its maps, including its own sections.
type object struct {
	spec   *Spec
	maps   map[string]*Map
	values []byte // of its constants
}

// Load makes the maps of the objects and loads the programs that o names. A map that
// several objects declare is one map. If the kernel refuses a program, the error wraps
// *Refusal. Load changes the specs.
func Load(specs []*Spec, o Options) (*Objects, error) {
	loaded := &Objects{Programs: map[string]*Program{}, Maps: map[string]*Map{}, prepared: map[string]*Program{}, aside: o.Aside}
	if err := checkValues(specs, o.Values); err != nil {
		return nil, err
	}
	for _, spec := range specs {
		if err := loaded.addMaps(spec, o); err != nil {
			return nil, errors.Join(err, loaded.Close())
		}
	}
	now := o.Programs
	if now == nil {
		for _, spec := range specs {
			now = slices.AppendSeq(now, maps.Keys(spec.Programs))
		}
	}
	if err := loaded.Need(now...); err != nil {
		return nil, errors.Join(err, loaded.Close())
	}
	loaded.aside = true
	return loaded, nil
}

// addMaps makes an object's own sections, and its maps that no earlier object has.
func (l *Objects) addMaps(spec *Spec, o Options) error {
	if err := adapt(spec, o); err != nil {
		return err
	}
	only := spec.Copy()
	only.Programs = nil
	made, err := ebpf.NewCollectionWithOptions(only, ebpf.CollectionOptions{MapReplacements: among(o.Maps, l.Maps, only)})
	if err != nil {
		return fmt.Errorf("load: %w", err)
	}
	l.own = append(l.own, made)
	for name, m := range made.Maps {
		if l.Maps[name] == nil && !isPrivate(name, o.Shared) {
			l.Maps[name] = m
		}
	}
	values, err := valuesOf(made.Maps)
	l.objects = append(l.objects, object{spec, made.Maps, values})
	return err
}

// SpecOf returns the declaration of a map that is like m, without BTF.
func SpecOf(m *Map) *MapSpec {
	return &MapSpec{Type: m.Type(), KeySize: m.KeySize(), ValueSize: m.ValueSize(), MaxEntries: m.MaxEntries(), Flags: m.Flags()}
}

// Need puts programs into Programs and loads those that are not loaded yet. Several
// goroutines may call it, but not while others read Programs.
func (l *Objects) Need(names ...string) error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	err := l.prepare(names)
	for _, name := range names {
		if p := l.prepared[name]; p != nil {
			l.Programs[name] = p
			delete(l.prepared, name)
		}
	}
	return err
}

// Prepare loads programs as Need does but does not change Programs. So others may read
// Programs during the seconds that it takes. Need then does the rest.
func (l *Objects) Prepare(names ...string) error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.prepare(names)
}

// prepare loads the programs that are not loaded yet, several at a time, because the verifier takes
// long. The caller holds l.mutex.
func (l *Objects) prepare(names []string) error {
	var missing []string
	for _, name := range names {
		if l.Programs[name] == nil && l.prepared[name] == nil && !slices.Contains(missing, name) {
			missing = append(missing, name)
		}
	}
	slices.SortStableFunc(missing, func(a, b string) int { return cmp.Compare(l.weight(b), l.weight(a)) })
	loaded := make([]*ebpf.Collection, len(missing))
	var group errgroup.Group
	group.SetLimit(l.atOnce())
	for i, name := range missing {
		group.Go(func() (err error) {
			loaded[i], err = l.program(name)
			return err
		})
	}
	err := group.Wait()
	for _, c := range loaded {
		if c != nil {
			l.own = append(l.own, c)
			maps.Copy(l.prepared, c.Programs)
		}
	}
	return err
}

// atOnce returns how many programs are loaded at a time: one per core. While others need the machine it
// is half of that: what waits for a core that loads goes on with another one.
func (l *Objects) atOnce() int {
	cores := runtime.GOMAXPROCS(0)
	if l.aside {
		return (cores + 1) / 2
	}
	return cores
}

// weight returns how much of a program the verifier has to read. The heaviest programs
// are loaded first, so that none starts when all others are done.
func (l *Objects) weight(program string) int {
	for i := range l.objects {
		if p := l.objects[i].spec.Programs[program]; p != nil {
			return len(p.Instructions)
		}
	}
	return 0
}

// program loads one program over its object's maps.
func (l *Objects) program(name string) (*ebpf.Collection, error) {
	for i := range l.objects {
		o := &l.objects[i]
		p := o.spec.Programs[name]
		if p == nil {
			continue
		}
		needed := *p
		needed.Instructions = trim(p.Instructions, o.values)
		only := &Spec{
			Maps: o.spec.Maps, Programs: map[string]*ebpf.ProgramSpec{name: &needed},
			Types: o.spec.Types, ByteOrder: o.spec.ByteOrder,
		}
		c, err := ebpf.NewCollectionWithOptions(only, ebpf.CollectionOptions{MapReplacements: o.maps})
		if err != nil {
			return nil, fmt.Errorf("load: %w", err)
		}
		// The kernel keeps a program's maps for it. More descriptors of them for each
		// program would be thousands.
		for name := range c.Maps {
			err = errors.Join(err, c.DetachMap(name).Close())
		}
		if err != nil {
			c.Close()
			return nil, fmt.Errorf("load: %w", err)
		}
		return c, nil
	}
	return nil, fmt.Errorf("load: the objects have no program %s", name)
}

// valuesOf returns what an object's constants are for its programs.
func valuesOf(maps map[string]*Map) (values []byte, err error) {
	m := maps[settings]
	if m == nil {
		return nil, nil
	}
	if err := m.Lookup(uint32(0), &values); err != nil {
		return nil, fmt.Errorf("read the constants of an object: %w", err)
	}
	return values, nil
}

// among returns the maps that the object declares: the given ones, or those of earlier
// objects.
func among(given, earlier map[string]*Map, spec *Spec) map[string]*Map {
	found := make(map[string]*Map)
	for name := range spec.Maps {
		if m := cmp.Or(given[name], earlier[name]); m != nil {
			found[name] = m
		}
	}
	return found
}

// isPrivate reports whether a map is an object's own section of constants or variables.
func isPrivate(name string, shared []string) bool {
	return strings.HasPrefix(name, ".") && !slices.Contains(shared, name)
}

func adapt(spec *Spec, o Options) error {
	for name, n := range o.Entries {
		if m := spec.Maps[name]; m != nil {
			m.MaxEntries = n
		}
	}
	for name, value := range o.Values {
		v := spec.Variables[name]
		if v == nil {
			continue
		}
		if err := v.Set(value); err != nil {
			return fmt.Errorf("set %s: %w", name, err)
		}
	}
	return nil
}

// checkValues refuses values for which no object has a variable.
func checkValues(specs []*Spec, values map[string]any) error {
	for name := range values {
		known := slices.ContainsFunc(specs, func(s *Spec) bool { return s.Variables[name] != nil })
		if !known {
			return fmt.Errorf("set %s: no object has such a variable", name)
		}
	}
	return nil
}

// Close releases the process's handles to the objects.
func (l *Objects) Close() error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for _, c := range l.own {
		c.Close()
	}
	l.own, l.objects = nil, nil
	return nil
}

// NewTable makes an array with one value of the given size. No program needs to know it.
func NewTable(name string, size uint32) (*Map, error) {
	m, err := ebpf.NewMap(&ebpf.MapSpec{
		Name: name, Type: ebpf.Array, KeySize: 4, ValueSize: size, MaxEntries: 1,
	})
	if err != nil {
		return nil, fmt.Errorf("make map %s: %w", name, err)
	}
	return m, nil
}

// Instructions returns how many instructions the verifier processed for the program.
func Instructions(p *Program) (uint32, error) {
	info, err := p.Info()
	if err != nil {
		return 0, fmt.Errorf("ask about a program: %w", err)
	}
	n, ok := info.VerifiedInstructions()
	if !ok {
		return 0, errors.New("this kernel does not tell how many instructions it verified")
	}
	return n, nil
}
