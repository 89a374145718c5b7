package view

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"weir/internal/fw/dataplane"
	"weir/internal/fw/pktrecord"
	"weir/internal/fw/rundir"
	"weir/internal/fw/shaper"
	"weir/internal/host/netif"
)

// namesPause is how long to wait before looking again for a name that was not found.
const namesPause = time.Second

// Names finds the names for the numbers in packet records, in the run folder and from
// the kernel. A name that was found stays, because rules never change their ids. A
// missing name is looked up again after a second. Another ruleset makes all names be read
// again, and so do rules that replace others in place.
type Names struct {
	folder     rundir.Folder
	interfaces map[uint32]string
	rulesets   map[uint32][]rundir.RuleText // by the number of their first rule
	base       uint32                       // of the ruleset in force
	shapers    []shaper.Shaper              // likewise: its trees of queues
	loaded     fs.FileInfo                  // of the file that says which one that is
	looked     time.Time
}

// NewNames reads the names.
func NewNames(f rundir.Folder) (*Names, error) {
	n := &Names{folder: f}
	return n, n.look()
}

// look reads everything again.
func (n *Names) look() error {
	n.looked = time.Now()
	links, err := netif.Links()
	if err != nil {
		return err
	}
	if n.interfaces == nil {
		n.interfaces = make(map[uint32]string)
	}
	for _, l := range links {
		n.interfaces[uint32(l.Index)] = l.Name
	}
	// Noted before reading: a load in between is seen the next time.
	file, err := os.Stat(n.folder.Loaded())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read what is loaded: %w", err)
	}
	base, shapers, err := n.inForce()
	if err != nil {
		return fmt.Errorf("read what is loaded: %w", err)
	}
	if err := n.readRules(base); err != nil {
		return err
	}
	n.base, n.shapers, n.loaded = base, shapers, file
	return nil
}

// inForce returns the number of the first rule in force, and its trees of queues. A daemon that died
// at its first start may have left no record.
func (n *Names) inForce() (base uint32, shapers []shaper.Shaper, err error) {
	var loaded rundir.Loaded
	err = rundir.ReadJSON(n.folder.Loaded(), &loaded)
	if !errors.Is(err, fs.ErrNotExist) {
		return loaded.Base, loaded.Shapers, err
	}
	dir, err := dataplane.Folder("")
	if err != nil {
		return 0, nil, err
	}
	base, err = dataplane.RuleBase(dir)
	return base, nil, err
}

// readRules reads the records of all rulesets. That of the ruleset in force may have grown.
func (n *Names) readRules(inForce uint32) error {
	files, err := os.ReadDir(n.folder.Rules())
	if err != nil {
		return fmt.Errorf("list the records of rules: %w", err)
	}
	if n.rulesets == nil {
		n.rulesets = make(map[uint32][]rundir.RuleText)
	}
	for _, file := range files {
		name, isRecord := strings.CutSuffix(file.Name(), ".json")
		base, err := strconv.ParseUint(name, 10, 32)
		if !isRecord || err != nil || n.rulesets[uint32(base)] != nil && uint32(base) != inForce {
			continue
		}
		var texts []rundir.RuleText
		err = rundir.ReadJSON(n.folder.RulesOf(uint32(base)), &texts)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // pruned meanwhile
			return fmt.Errorf("read the texts of the rules: %w", err)
		}
		n.rulesets[uint32(base)] = texts
	}
	return nil
}

// again looks for missing names again, if the last time is long enough ago.
func (n *Names) again() bool {
	return time.Since(n.looked) >= namesPause && n.look() == nil
}

// Interface returns the name of an interface, or a text with its number.
func (n *Names) Interface(index uint32) string {
	name := n.interfaces[index]
	if name == "" && n.again() {
		name = n.interfaces[index]
	}
	if name == "" {
		return "interface " + strconv.FormatUint(uint64(index), 10)
	}
	return name
}

// replaced reports whether another ruleset is in force than at the last reading. Each
// load replaces the file.
func (n *Names) replaced() bool {
	now, err := os.Stat(n.folder.Loaded())
	return err == nil && !(n.loaded != nil && os.SameFile(now, n.loaded) && now.ModTime().Equal(n.loaded.ModTime()))
}

// Rule returns the rule with a global number, or nil if there is no record of it any
// more. A rule is old if its ruleset is no longer in force.
func (n *Names) Rule(global uint32) *pktrecord.Rule {
	if n.replaced() && n.look() != nil {
		return nil
	}
	r := n.rule(global)
	if r == nil && n.again() {
		r = n.rule(global)
	}
	return r
}

// Queue returns the name of a class of the queues in force and that of its interface, or "" if there
// is no such class. Classes are numbered from 1, through all trees.
func (n *Names) Queue(class uint32) (name, device string) {
	if n.replaced() && n.look() != nil {
		return "", ""
	}
	for i := range n.shapers {
		s := &n.shapers[i]
		if class >= 1 && class <= uint32(len(s.Classes)) {
			return s.Classes[class-1].Name, s.Interface
		}
		class -= uint32(len(s.Classes))
	}
	return "", ""
}

// text returns the record of a rule, or nil if there is none.
func (n *Names) text(global uint32) *rundir.RuleText {
	for base, texts := range n.rulesets {
		if nr := global - base; nr < uint32(len(texts)) {
			return &texts[nr]
		}
	}
	return nil
}

func (n *Names) rule(global uint32) *pktrecord.Rule {
	for base, texts := range n.rulesets {
		nr := global - base
		if nr >= uint32(len(texts)) {
			continue
		}
		t := &texts[nr]
		action, _, _ := strings.Cut(t.Text, " ")
		return &pktrecord.Rule{Nr: t.Nr, List: t.List, Text: t.Text, Action: action, File: t.File, Line: t.Line, Label: t.Label, Pflog: t.Pflog, Old: base != n.base || t.Gone}
	}
	return nil
}
