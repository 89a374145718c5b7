package cli

import (
	"context"
	"fmt"

	"weir/pf/compare"
	"weir/pf/resolve"
)

// changes returns what changes from the file of --diff to the rules, on the same machine.
// It returns nil without --diff. If that file is refused, it prints the errors and
// returns ErrSilent.
func (o *checkOptions) changes(ctx context.Context, env *Env, rules *resolve.Ruleset, host *resolve.Host) ([]compare.Change, error) {
	if o.diff == "" {
		return nil, nil
	}
	name, text, err := readRules(ctx, env, o.diff)
	if err != nil {
		return nil, fmt.Errorf("read the old rules: %w", err)
	}
	old, list := resolve.LoadWith(name, text, host, o.settings())
	if old == nil {
		if err := list.Fprint(env.Stderr); err != nil {
			return nil, fmt.Errorf("print errors: %w", err)
		}
		return nil, ErrSilent
	}
	changes := compare.Rulesets(old, rules)
	if changes == nil {
		changes = []compare.Change{}
	}
	return changes, nil
}

// printChanges prints what changes.
func printChanges(env *Env, changes []compare.Change) error {
	if err := compare.Fprint(env.Stdout, changes); err != nil {
		return fmt.Errorf("print the changes: %w", err)
	}
	return nil
}
