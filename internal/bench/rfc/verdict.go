package rfc

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"weir/internal/bench/paths"
	"weir/internal/bench/report"
	"weir/internal/stats"
	"weir/internal/units"
)

// margin is the share up to which two paths count as equal. The control allows a path to
// differ from itself by the same share.
const margin = 0.05

// control compares the last path with itself, measured as if it were another. known is
// false if neither has a valid run: then nothing may be concluded.
func (t *tested) control() (c stats.Control, known bool) {
	own := t.last()
	name := own.path + ", " + t.test.title(t.variant)
	c = stats.NewControl()
	switch {
	case len(own.runs) == 0 && len(t.again.runs) == 0:
		return c, false
	case len(own.runs) == 0 || len(t.again.runs) == 0:
		c.Refuse(name + " was measured twice, and once no run counts")
	default:
		c.Add(name, own.kept(), t.again.kept())
		if t.byTimes(own, t.again) && compareTimes(own, t.again).proven() {
			c.Refuse(name + " differs from itself by the test that objects are judged by")
		}
	}
	return c, true
}

// conclude adds the verdicts of a test if its own control holds. How restless the machine
// was in one test says nothing about another. The report's control is the worst of those
// that hold. It fails if none does.
func (r *runner) conclude(d *report.Document, standard string) {
	whole := stats.Control{Why: "no path was measured twice with a result"}
	for _, t := range r.done {
		c, known := t.control()
		figures := t.measurements(standard)
		switch {
		case !known:
		case !c.OK:
			d.Verdicts = append(d.Verdicts, fmt.Sprintf("%s: no verdict: %s", t.test.title(t.variant), c.Why))
			for i := range figures {
				figures[i].Untrusted = true
			}
			if !whole.OK {
				whole = c
			}
		default:
			d.Verdicts = append(d.Verdicts, t.verdicts()...)
			d.Notes = append(d.Notes, t.endpoints()...)
			if !whole.OK || c.Difference > whole.Difference {
				whole = c
			}
		}
		d.Measurements = append(d.Measurements, figures...)
	}
	d.Control = &whole
}

// byTimes reports whether two paths are compared by how long each object took.
func (t *tested) byTimes(a, b *outcome) bool {
	return t.test.Name == "objects" && timed(a) && timed(b)
}

// timesTest compares how long objects took. It compares all objects and also the medians
// of the runs, because objects of one run depend on each other.
type timesTest struct{ objects, runs stats.RankTest }

func compareTimes(a, b *outcome) timesTest {
	return timesTest{stats.MannWhitney(joined(a.runs), joined(b.runs)), stats.MannWhitney(medians(a), medians(b))}
}

// proven requires both.
func (t timesTest) proven() bool { return t.objects.Proven && t.runs.Proven }

// kept returns the first figure; for a loss it returns the rest. A loss of zero and one
// of a millionth are infinitely far apart as ratios, though both paths did the same.
func (o *outcome) kept() stats.Sample {
	s := o.sample(0)
	if f := o.runs[0].figures[0]; f.unit != "%" || f.better == report.Higher {
		return s
	}
	for i, lost := range s {
		s[i] = 100 - lost
	}
	return s
}

func (t *tested) notes() (notes []string) {
	for _, o := range t.paths {
		if n := len(o.invalid); n > 0 {
			notes = append(notes, fmt.Sprintf("%s, %s: %s invalid: %s", t.test.title(t.variant), o.path, units.Plural(n, "run"), o.invalid[0]))
		}
		if o.limit() != "" && len(o.runs) > 0 {
			notes = append(notes, fmt.Sprintf("%s, %s: limited by the %s: the path may do more", t.test.title(t.variant), o.path, o.limit()))
		}
	}
	return notes
}

// endpoints names the paths that are equal to bare routing if clients and servers share
// the machine. For these the endpoints are the limit. An unproven difference does not
// make a path equal.
func (t *tested) endpoints() (notes []string) {
	bare := t.find(paths.Kernel)
	if bare == nil || len(bare.runs) == 0 || len(bare.runs[0].times) == 0 {
		return nil
	}
	var equal, undecided []string
	for _, o := range t.measured() {
		if o == bare {
			continue
		}
		switch c := stats.Compare(bare.sample(0), o.sample(0)); c.Decide(margin) {
		case stats.Equal:
			equal = append(equal, o.path)
		case stats.Undecided:
			undecided = append(undecided, o.path+" ("+seen(c)+")")
		}
	}
	if len(equal) > 0 {
		notes = append(notes, fmt.Sprintf("%s: limited by clients and servers: %s equal to bare routing within %.0f %%",
			t.test.title(t.variant), strings.Join(equal, ", "), margin*100))
	}
	if len(undecided) > 0 {
		notes = append(notes, fmt.Sprintf("%s: undecided whether clients and servers are the limit of %s",
			t.test.title(t.variant), strings.Join(undecided, ", ")))
	}
	return notes
}

// seen says what a comparison could have shown.
func seen(c stats.Comparison) string {
	if c.Test == stats.TooFew {
		return stats.TooFew
	}
	return fmt.Sprintf("this run would have seen a difference of %s %%", units.Digits(c.Detectable*100, 2))
}

func (t *tested) find(path string) *outcome {
	for _, o := range t.paths {
		if o.path == path {
			return o
		}
	}
	return nil
}

// verdicts compares weir with the nftables path that does the same.
func (t *tested) verdicts() (all []string) {
	for _, pair := range [][2]string{{paths.Nft, paths.Weir}, {paths.NftNAT, paths.WeirNAT}} {
		theirs, ours := t.find(pair[0]), t.find(pair[1])
		if theirs == nil || ours == nil || len(theirs.runs) == 0 || len(ours.runs) == 0 {
			continue
		}
		all = append(all, t.verdict(theirs, ours))
	}
	return all
}

func (t *tested) verdict(theirs, ours *outcome) string {
	f, name := ours.runs[0].figures[0], t.test.title(t.variant)
	a, b := theirs.sample(0), ours.sample(0)
	values := fmt.Sprintf("%s %s against %s %s", units.Digits(b.Median(), 3), f.unit, units.Digits(a.Median(), 3), f.unit)
	what := fmt.Sprintf("%s, %s: %s has %s of %s", name, f.name, ours.path, values, theirs.path)
	c := stats.CompareResolved(a, b, max(theirs.resolution(0), ours.resolution(0)))
	proven := c.Proven
	if t.byTimes(theirs, ours) {
		c = stats.Compare(medians(theirs), medians(ours))
		times := compareTimes(theirs, ours)
		what += fmt.Sprintf("; an object took longer than one of %s with a probability of %.0f %% (Mann-Whitney: p = %.2g by objects, %.2g by runs)",
			theirs.path, times.objects.Larger*100, times.objects.P, times.runs.P)
		proven = times.proven()
	}
	if ours.limit() != "" && theirs.limit() != "" {
		return what + fmt.Sprintf("; neither was the limit, but the %s", ours.limit())
	}
	what += conclude(c, proven)
	for _, o := range []*outcome{theirs, ours} {
		if o.limit() != "" {
			what += fmt.Sprintf("; of %s at least, as the %s was the limit", o.path, o.limit())
		}
	}
	return what
}

// conclude says whether a difference is proven.
func conclude(c stats.Comparison, proven bool) string {
	within := units.Digits(math.Ceil(c.Bound()*1000)/10, 2)
	verdict := c.Decide(margin)
	switch {
	case verdict == stats.Equal && proven:
		return fmt.Sprintf("; that they differ is proven, and by no more than %s %%", within)
	case proven:
		return ""
	case verdict == stats.Equal:
		return fmt.Sprintf("; equal within %s %%", within)
	}
	return fmt.Sprintf("; undecided: %s", seen(c))
}

// timed reports whether every run has durations.
func timed(o *outcome) bool {
	return !slices.ContainsFunc(o.runs, func(f finding) bool { return len(f.times) == 0 })
}

func medians(o *outcome) (s stats.Sample) {
	for _, f := range o.runs {
		s = append(s, f.times.Median())
	}
	return s
}
