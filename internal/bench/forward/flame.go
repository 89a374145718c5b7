package forward

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"weir/internal/bench/report"
	"weir/internal/bench/traffic"
	"weir/internal/missing"
)

// flameSeconds is how long a core is sampled. The ring has room for twice as many samples.
const flameSeconds = 1

// profile measures the last path of a case once more, with samples of its first core. No
// figure contains the cost of sampling.
func (b *benchmark) profile(ctx context.Context, c traffic.Case, e *samples) error {
	const what = "flame graph"
	b.progress.Step("%s: %s, %s", what, e.path.Name, c)
	b.sampled = true
	res, err := b.runPath(ctx, c, e.path, e.entry, flameSeconds, nil)
	b.sampled = false
	var lacks *missing.Error
	switch {
	case errors.As(err, &lacks):
		b.skip(what, &c, err.Error())
	case err != nil:
		return fmt.Errorf("%s: %s: %w", what, e.path.Name, err)
	default:
		b.report.Profile = &Profile{Path: e.path.Name, Case: c, Stacks: fold(res.calls)}
	}
	return nil
}

// fold counts equal stacks of functions.
func fold(calls [][]string) (stacks []report.Stack) {
	counts := map[string]int{}
	for _, frames := range calls {
		counts[strings.Join(frames, "\n")]++
	}
	for _, key := range slices.Sorted(maps.Keys(counts)) {
		stacks = append(stacks, report.Stack{Frames: strings.Split(key, "\n"), Count: counts[key]})
	}
	return stacks
}
