package rfc

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"weir/internal/bench/report"
	"weir/internal/stats"
)

// Test is one test of a standard.
type Test struct {
	Name  string // as in --test
	Title string
	Where string // section of the RFC
	About string // the procedure in a sentence or two

	// variants are values that the test is repeated for, such as frame sizes. nil
	// means once, for 0.
	variants func(*Options) []int
	unit     string // unit of a variant, after its number: "bytes"
	// unsuitable returns why a path cannot be tested. nil means all can.
	unsuitable func(path string) string
	// missing returns why the test cannot run on this machine. nil means it can.
	missing func() string
	// seconds estimates one measurement.
	seconds func(*Options) float64
	measure measurement
}

// measurement measures one path once.
type measurement func(ctx context.Context, b *bench, path string, variant int) (finding, error)

// figure is one number of a measurement. The first of a finding is what its test is
// about.
type figure struct {
	name, unit, better string
	value              float64
	// step is how far the true value may be above this one: the step of the search. 0
	// means it was measured.
	step float64
	// bound means that the path may do more, see [finding.limit].
	bound bool
}

// more makes a figure of which more is better, less one of which less is better.
func more(name, unit string, value float64) figure {
	return figure{name: name, unit: unit, better: report.Higher, value: value}
}

func less(name, unit string, value float64) figure {
	return figure{name: name, unit: unit, better: report.Lower, value: value}
}

// figure returns the found rate as a figure, scaled by a factor.
func (f *Found) figure(name, unit string, factor float64) figure {
	return figure{name: name, unit: unit, better: report.Higher, value: f.Rate * factor, step: f.Step * factor, bound: f.Bound}
}

// finding is the result of one measurement of one path.
type finding struct {
	figures []figure
	// limit names what held the path back, if anything did. The true first figure is
	// then at least what was measured.
	limit string
	// invalid is the reason why it does not count. Figures are nil then.
	invalid string
	// curve is a figure against another, such as loss by rate.
	curve []xy
	// times are single durations; spread is the same as a distribution.
	times  stats.Sample
	spread []stats.Point
	// foreign is the share of time that other programs took.
	foreign float64
	illegal uint64 // frames that passed but should not have
}

type xy struct{ x, y float64 }

// take notes the figures of a search, or why it found nothing.
func (f *finding) take(found *Found, nothing string, figures ...figure) {
	f.limit, f.figures = found.limit(), figures
	if found.Rate == 0 {
		f.figures, f.invalid = nil, nothing
	}
}

// Names of limits.
const (
	limitGenerator = "generator"
	limitAsked     = "number that was asked for"
)

// Standard is an RFC, or a set of tests treated like one.
type Standard struct {
	Name  string // the subcommand's name: "rfc2544"
	Title string
	About string // for the help text
	// Frames says that tests count frames, so the options for frame sizes and flows
	// apply.
	Frames bool
	// Connections and Clients say that tests count connections, or have clients that
	// fetch objects.
	Connections, Clients bool

	Tests []Test
	// Differs are the differences from the RFC, for the report.
	Differs []string
}

// Standards returns all standards.
func Standards() []Standard {
	return []Standard{rfc2544(), rfc3511(), rfc9411(), rfc9693(), objects()}
}

// Named returns the standard of a subcommand.
func Named(name string) (Standard, error) {
	for _, s := range Standards() {
		if s.Name == name {
			return s, nil
		}
	}
	return Standard{}, fmt.Errorf("no standard %q", name)
}

// TestNames returns the names of a standard's tests.
func (s *Standard) TestNames() []string {
	var names []string
	for _, t := range s.Tests {
		names = append(names, t.Name)
	}
	return names
}

// chosen returns the tests that the options name.
func (s *Standard) chosen(o *Options) []Test {
	return slices.DeleteFunc(slices.Clone(s.Tests), func(t Test) bool { return len(o.Tests) > 0 && !slices.Contains(o.Tests, t.Name) })
}

func (t *Test) variantsOf(o *Options) []int {
	if t.variants == nil {
		return []int{0}
	}
	return t.variants(o)
}

// suitable returns the paths that can be tested on any machine.
func (t *Test) suitable(o *Options) []string {
	return slices.DeleteFunc(slices.Clone(o.Paths), func(path string) bool { return t.unsuitable != nil && t.unsuitable(path) != "" })
}

// measurements returns the number of measurements of all fitting paths, control included.
func (t *Test) measurements(o *Options) int {
	paths := len(t.suitable(o))
	if paths == 0 {
		return 0
	}
	return len(t.variantsOf(o)) * (paths + 1) * o.Runs
}

// title returns the title of the variant's section.
func (t *Test) title(variant int) string {
	if t.variants == nil {
		return t.Title
	}
	return fmt.Sprintf("%s: %d %s", t.Title, variant, t.unit)
}

// key returns a measurement's name, which stays the same across versions.
func (t *Test) key(standard string, variant int, path, figure string) string {
	parts := []string{standard, t.Name}
	if t.variants != nil {
		parts = append(parts, fmt.Sprint(variant))
	}
	return strings.Join(append(parts, path, strings.ReplaceAll(figure, " ", "-")), "/")
}

// onlyStates returns why a path without states cannot be tested.
func onlyStates(path string) string {
	if path == "kernel" {
		return "bare routing keeps no states and has no rules"
	}
	return ""
}
