package api

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"slices"
	"strconv"

	"weir/internal/fw/dataplane"
	"weir/internal/fw/state"
	"weir/internal/host/hostdb"
	"weir/internal/host/netif"
)

// Reader reads what weir does in the process's network namespace, from the run
// folder and the pinned maps: it needs no daemon.
type Reader struct {
	folder Folder
	loaded Loaded
	texts  []RuleText
	view   *dataplane.View
	info   dataplane.Info // as of Open
	names  map[int]string // of interfaces, by index
}

// Open opens a Reader. The error wraps dataplane.ErrNotLoaded where weir does
// not run. The caller closes it.
func Open(f Folder) (*Reader, error) {
	dir, err := dataplane.Folder("")
	if err != nil {
		return nil, err
	}
	view, err := dataplane.Open(dir)
	if err != nil {
		return nil, err
	}
	r := &Reader{folder: f, view: view, names: make(map[int]string)}
	if err := r.read(f); err != nil {
		return nil, errors.Join(err, view.Close())
	}
	return r, nil
}

func (r *Reader) read(f Folder) error {
	if err := ReadJSON(f.Loaded(), &r.loaded); err != nil {
		return fmt.Errorf("read what is loaded: %w", err)
	}
	// The programs say which ruleset is in force: the record may be a moment behind.
	info, err := r.view.Info()
	if err != nil {
		return err
	}
	r.info = info
	if err := ReadJSON(f.RulesOf(info.RuleBase), &r.texts); err != nil {
		return fmt.Errorf("read the texts of the rules: %w", err)
	}
	links, err := netif.Links()
	if err != nil {
		return err
	}
	for _, l := range links {
		r.names[l.Index] = l.Name
	}
	return nil
}

// Close releases the maps.
func (r *Reader) Close() error { return r.view.Close() }

// Loaded says which ruleset is in force.
func (r *Reader) Loaded() Loaded { return r.loaded }

// Rules gives the rules in force and what they have counted: a rule counts the
// packets and states of every path that it stands in, match rules too.
func (r *Reader) Rules() ([]Rule, error) {
	counters, err := r.view.Rules()
	if err != nil {
		return nil, fmt.Errorf("read the counters of the rules: %w", err)
	}
	paths, err := r.view.Paths()
	if err != nil {
		return nil, fmt.Errorf("read the counters of the paths: %w", err)
	}
	rules := make([]Rule, len(r.texts))
	for i := range rules {
		rules[i].RuleText = r.texts[i]
		if i < len(counters) {
			c := &counters[i]
			rules[i].Evaluations, rules[i].StateCreations = c.Evaluations, c.States
		}
	}
	for i := range paths {
		for _, global := range paths[i].Rules {
			if nr, ok := r.number(global); ok {
				rules[nr].Packets += paths[i].Counter.Packets
				rules[nr].Bytes += paths[i].Counter.Bytes
				rules[nr].States += paths[i].States
			}
		}
	}
	return rules, nil
}

// NATPorts are the ranges that rules in force choose source ports from, each once.
func (r *Reader) NATPorts() []PortRange {
	found := []PortRange{}
	for i := range r.texts {
		if p := r.texts[i].NATPorts; p != nil && !slices.Contains(found, *p) {
			found = append(found, *p)
		}
	}
	return found
}

// number is a rule's number in the ruleset in force; not ok for a rule of an
// earlier one.
func (r *Reader) number(global uint32) (int, bool) {
	nr := global - r.info.RuleBase
	return int(nr), nr < uint32(len(r.texts))
}

// States gives the live states that a filter selects.
func (r *Reader) States(f *state.Filter) iter.Seq[*state.View] {
	context := &state.Context{
		Now: r.info.Now, Timeouts: r.info.Timeouts,
		Rule: func(global uint32) (int, bool) { return r.number(global - 1) },
		Interface: func(index uint16) string {
			if name := r.names[int(index)]; name != "" {
				return name
			}
			return strconv.Itoa(int(index))
		},
	}
	return func(yield func(*state.View) bool) {
		for s := range r.view.States() {
			v := s.View(context)
			if f.Match(&v) && !yield(&v) {
				return
			}
		}
	}
}

// ReadInterfaces lists the machine's interfaces with what the daemon recorded
// of their hooks. choose says which hook weir would take for one that has none.
func ReadInterfaces(f Folder, choose func(*netif.Link) (why string)) (*Interfaces, error) {
	links, err := netif.Links()
	if err != nil {
		return nil, err
	}
	host, err := hostdb.Host(links)
	if err != nil {
		return nil, err
	}
	var recorded []Interface
	if err := ReadJSON(f.Interfaces(), &recorded); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the record of interfaces: %w", err)
	}
	known := make(map[int]*Interface, len(recorded))
	for i := range recorded {
		known[recorded[i].Index] = &recorded[i]
	}
	if err := hostdb.Fill(host, os.DirFS("/")); err != nil {
		return nil, err
	}
	all := &Interfaces{Interfaces: []Interface{}, Hosts: host.Hosts, Users: host.Users, Groups: host.Groups}
	all.Services, all.Protocols = host.Unusual()
	for i := range links {
		n := NewInterface(&links[i], host.Interfaces[i].Groups)
		n.Default = host.Interfaces[i].Default
		n.Hook, n.Why = "none", choose(&links[i])
		if k := known[n.Index]; k != nil {
			n.Hook, n.Mode, n.Why, n.Skip = k.Hook, k.Mode, k.Why, k.Skip
		}
		all.Interfaces = append(all.Interfaces, n)
	}
	return all, nil
}
