package bpfload

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"golang.org/x/sync/errgroup"
)

// Names for what other packages hold of the library, so that they need not
// import it.
type (
	Map      = ebpf.Map
	MapSpec  = ebpf.MapSpec
	Program  = ebpf.Program
	Spec     = ebpf.CollectionSpec
	Refusal  = ebpf.VerifierError // prints a summary; with %+v the verifier's whole log
	MapBatch = ebpf.MapBatchCursor
)

// Errors of maps that callers tell apart.
var (
	ErrNoKey  = ebpf.ErrKeyNotExist
	ErrHasKey = ebpf.ErrKeyExist
)

// Options say how objects are loaded.
type Options struct {
	// Maps are used instead of new ones of the same name. They stay the caller's.
	Maps map[string]*Map
	// Entries replace the sizes of maps.
	Entries map[string]uint32
	// Values of read-only variables, set in every object that has them.
	Values map[string]any
	// Shared names the data sections that all objects have in common, as they
	// have all maps of one name; other sections are each object's own.
	Shared []string
}

// Objects are the loaded programs and maps of several object files.
type Objects struct {
	Programs map[string]*Program
	Maps     map[string]*Map
	own      []*ebpf.Collection
}

// Load loads the objects, all at a time: what takes long is the verifier. A map
// declared by several of them is one map. A program that the kernel refuses is
// an error that wraps *Refusal. Specs are changed.
func Load(specs []*Spec, o Options) (*Objects, error) {
	loaded := &Objects{Programs: map[string]*Program{}, Maps: map[string]*Map{}}
	if err := checkValues(specs, o.Values); err != nil {
		return nil, err
	}
	for _, spec := range specs {
		if err := loaded.addMaps(spec, o); err != nil {
			return nil, errors.Join(err, loaded.Close())
		}
	}
	if err := loaded.addPrograms(specs); err != nil {
		return nil, errors.Join(err, loaded.Close())
	}
	return loaded, nil
}

// addMaps makes the maps of an object that none before it has.
func (l *Objects) addMaps(spec *Spec, o Options) error {
	if err := adapt(spec, o); err != nil {
		return err
	}
	only := spec.Copy()
	only.Programs = nil
	maps.DeleteFunc(only.Maps, func(name string, _ *MapSpec) bool {
		return l.Maps[name] != nil || isPrivate(name, o.Shared)
	})
	maps.DeleteFunc(only.Variables, func(_ string, v *ebpf.VariableSpec) bool { return only.Maps[v.SectionName] == nil })
	made, err := ebpf.NewCollectionWithOptions(only, ebpf.CollectionOptions{MapReplacements: among(o.Maps, only)})
	if err != nil {
		return fmt.Errorf("load: %w", err)
	}
	l.own = append(l.own, made)
	maps.Copy(l.Maps, made.Maps)
	return nil
}

// addPrograms loads the programs of all objects over the maps.
func (l *Objects) addPrograms(specs []*Spec) error {
	loaded := make([]*ebpf.Collection, len(specs))
	var group errgroup.Group
	for i, spec := range specs {
		group.Go(func() (err error) {
			loaded[i], err = ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{MapReplacements: among(l.Maps, spec)})
			if err != nil {
				return fmt.Errorf("load: %w", err)
			}
			return nil
		})
	}
	err := group.Wait()
	for _, c := range loaded {
		if c != nil {
			l.own = append(l.own, c)
			maps.Copy(l.Programs, c.Programs)
		}
	}
	return err
}

// among returns those of the maps that the object has.
func among(all map[string]*Map, spec *Spec) map[string]*Map {
	found := make(map[string]*Map)
	for name := range spec.Maps {
		if m := all[name]; m != nil {
			found[name] = m
		}
	}
	return found
}

// isPrivate tells sections of constants and variables from maps that objects share.
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

// checkValues refuses values that no object has a variable for.
func checkValues(specs []*Spec, values map[string]any) error {
	for name := range values {
		known := slices.ContainsFunc(specs, func(s *Spec) bool { return s.Variables[name] != nil })
		if !known {
			return fmt.Errorf("set %s: no object has such a variable", name)
		}
	}
	return nil
}

// Close releases what the process holds of the objects.
func (l *Objects) Close() error {
	for _, c := range l.own {
		c.Close()
	}
	l.own = nil
	return nil
}

// NewTable makes an array of one value of that size, which no program needs to
// know.
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
