package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"weir/internal/fw/rundir"
	"weir/internal/host/netif"
)

// Found records what the machine was like before weir changed it: one entry for each
// setting, with the value that `weir stop` restores. An entry is written to disk before
// the change is made. An existing entry is never overwritten, because a later start finds
// weir's own values.
type Found struct {
	Guard    bool            `json:"guard"` // there was no guard: weir raised it
	Sysctls  []FoundSysctl   `json:"sysctls"`
	Features []FoundFeatures `json:"features"`
	// Diverts are the marks for which weir has added a routing rule.
	Diverts []netif.MarkMatch `json:"diverts,omitempty"`

	path string
}

// FoundSysctl is a setting below /proc/sys. If it belongs to an interface, Format has %s
// in place of its name, because the name may change while weir runs.
type FoundSysctl struct {
	Format string `json:"format"`
	Index  int    `json:"index,omitempty"` // interface; 0: none
	Value  string `json:"value"`
}

// FoundFeatures are the offloads of an interface.
type FoundFeatures struct {
	Index    int            `json:"index"`
	Features netif.Features `json:"features"`
}

// readFound reads the record at path. A missing record is empty.
func readFound(path string) (*Found, error) {
	f := &Found{path: path}
	err := rundir.ReadJSON(path, f)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the recorded settings: %w", err)
	}
	return f, nil
}

// empty reports whether weir has changed nothing.
func (f *Found) empty() bool {
	return !f.Guard && len(f.Sysctls) == 0 && len(f.Features) == 0 && len(f.Diverts) == 0
}

// note changes the record on disk, then in memory. If the write fails, the setting must
// not be changed.
func (f *Found) note(change func(*Found)) error {
	next := Found{f.Guard, slices.Clone(f.Sysctls), slices.Clone(f.Features), slices.Clone(f.Diverts), f.path}
	change(&next)
	if err := rundir.WriteJSON(f.path, &next); err != nil {
		return fmt.Errorf("record the settings: %w", err)
	}
	*f = next
	return nil
}

// guard notes that weir raises the guard and that there was none before.
func (f *Found) guard() error {
	if f.Guard {
		return nil
	}
	return f.note(func(f *Found) { f.Guard = true })
}

// restored notes that everything has been restored.
func (f *Found) restored() error {
	return f.note(func(f *Found) { *f = Found{path: f.path} })
}

func (f *Found) hasSysctl(format string, index int) bool {
	return slices.ContainsFunc(f.Sysctls, func(s FoundSysctl) bool {
		return s.Format == format && s.Index == index
	})
}

// record notes the present value of a sysctl, once. index and name identify the interface
// that format is for, or are 0 and "".
func (f *Found) record(format string, index int, name string) error {
	if f.hasSysctl(format, index) {
		return nil
	}
	now, err := netif.Sysctl(sysctlPath(format, name))
	if err != nil {
		return err
	}
	return f.note(func(f *Found) {
		f.Sysctls = append(f.Sysctls, FoundSysctl{Format: format, Index: index, Value: now})
	})
}

// sysctl sets a sysctl after recording its old value.
func (f *Found) sysctl(format string, index int, name, value string) error {
	path := sysctlPath(format, name)
	now, err := netif.Sysctl(path)
	if err != nil || now == value {
		return err
	}
	if err := f.record(format, index, name); err != nil {
		return err
	}
	return netif.SetSysctl(path, value)
}

// features sets offloads of an interface after recording the old ones.
func (f *Found) features(index int, name string, was, want netif.Features) error {
	known := slices.ContainsFunc(f.Features, func(x FoundFeatures) bool { return x.Index == index })
	if !known {
		err := f.note(func(f *Found) { f.Features = append(f.Features, FoundFeatures{Index: index, Features: was}) })
		if err != nil {
			return err
		}
	}
	return netif.SetFeatures(name, want)
}

// forget drops the entries of interfaces that are gone, because a new interface may reuse
// an index.
func (f *Found) forget(names map[int]string) error {
	sysctls := slices.DeleteFunc(slices.Clone(f.Sysctls), func(s FoundSysctl) bool {
		return s.Index != 0 && names[s.Index] == ""
	})
	features := slices.DeleteFunc(slices.Clone(f.Features), func(x FoundFeatures) bool {
		return names[x.Index] == ""
	})
	if len(sysctls) == len(f.Sysctls) && len(features) == len(f.Features) {
		return nil
	}
	return f.note(func(f *Found) { f.Sysctls, f.Features = sysctls, features })
}

// restoreForwarding restores the sysctls, the last changed first. list returns the names
// of the interfaces that exist. If one that has a record was renamed meanwhile, its
// sysctls were not found, so everything is restored again.
func (f *Found) restoreForwarding(list func() (map[int]string, error)) error {
	names, err := list()
	for err == nil {
		if err = f.restoreSysctls(names); err != nil {
			break
		}
		before := names
		if names, err = list(); err != nil || !f.renamed(before, names) {
			break
		}
	}
	return err
}

// renamed reports whether an interface that has a record has another name now.
func (f *Found) renamed(before, now map[int]string) bool {
	return slices.ContainsFunc(f.Sysctls, func(s FoundSysctl) bool {
		return now[s.Index] != "" && now[s.Index] != before[s.Index]
	})
}

// restoreSysctls tries to restore all sysctls and joins the errors.
func (f *Found) restoreSysctls(names map[int]string) error {
	var errs []error
	for _, s := range slices.Backward(f.Sysctls) {
		name := names[s.Index]
		if s.Index != 0 && name == "" {
			continue
		}
		err := netif.SetSysctl(sysctlPath(s.Format, name), s.Value)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// restoreFeatures restores the offloads in the same way.
func (f *Found) restoreFeatures(names map[int]string) error {
	var errs []error
	for _, x := range f.Features {
		name := names[x.Index]
		if name == "" {
			continue
		}
		if err := netif.SetFeatures(name, x.Features); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func sysctlPath(format, name string) string {
	if name == "" {
		return format
	}
	return fmt.Sprintf(format, name)
}
