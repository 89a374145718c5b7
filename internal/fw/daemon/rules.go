package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"weir/internal/fw/dataplane"
	"weir/internal/fw/rundir"
	"weir/internal/killpoint"
)

// writeRules records the texts of a ruleset under its base before any packet is counted
// under its numbers.
func writeRules(f rundir.Folder, rules *compiled) error {
	if err := rundir.WriteJSON(f.RulesOf(rules.base), rules.recorded); err != nil {
		return fmt.Errorf("record the rules: %w", err)
	}
	return nil
}

// pruneRules removes the records of rulesets that are not in force and that no state
// refers to.
func (b *box) pruneRules() error {
	files, err := os.ReadDir(b.cfg.Folder.Rules())
	if err != nil {
		return fmt.Errorf("list the records of rules: %w", err)
	}
	if len(files) < 2 {
		return nil
	}
	used := usedRules(b.dp.View())
	var errs []error
	for _, file := range files {
		var base uint32
		_, err := fmt.Sscanf(file.Name(), "%d.json", &base)
		path := b.cfg.Folder.RulesOf(base)
		if err != nil || file.Name() != filepath.Base(path) || base == b.rules.base { // an unfinished file is no record
			continue
		}
		var texts []rundir.RuleText
		if err := rundir.ReadJSON(path, &texts); err != nil {
			errs = append(errs, err)
			continue
		}
		if !anyWithin(used, base, uint32(len(texts))) {
			errs = append(errs, killpoint.Remove(path))
		}
	}
	err = errors.Join(errs...)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// usedRules returns the sorted global numbers of the rules that created live states, or
// that log them.
func usedRules(v *dataplane.View) []uint32 {
	seen := make(map[uint32]bool)
	for s := range v.States() {
		seen[s.RuleIn], seen[s.RuleOut] = true, true
		for _, side := range s.Logs {
			for _, global := range side {
				seen[global] = true
			}
		}
	}
	used := make([]uint32, 0, len(seen))
	for global := range seen {
		if global != 0 {
			used = append(used, global-1)
		}
	}
	slices.Sort(used)
	return used
}

// anyWithin reports whether one of the sorted numbers is in [base, base+count).
func anyWithin(sorted []uint32, base, count uint32) bool {
	i, _ := slices.BinarySearch(sorted, base)
	return i < len(sorted) && sorted[i]-base < count
}
