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
	Name  string // as --test has it
	Title string
	Where string // in the RFC
	About string // what is done, in a sentence or two

	// variants are what the test is repeated for, such as frame sizes; nil: once,
	// for 0.
	variants func(*Options) []int
	unit     string // of a variant, behind its number: "bytes"
	// unfit says why a path cannot be tested; nil: all can.
	unfit func(path string) string
	// missing says why the test cannot run on this machine; nil: it can.
	missing func() string
	// seconds are about what one measurement takes.
	seconds func(*Options) float64
	measure func(ctx context.Context, b *bed, path string, variant int) (finding, error)
}

// figure is one number that a measurement gave. The first of a finding is what
// its test is about.
type figure struct {
	name, unit, better string
	value              float64
	// step is how far the true value may lie above: that of the search which
	// found it; 0: it was measured.
	step float64
	// bound: the path may do more, see [finding.limit].
	bound bool
}

// more is a figure of which more is better, less one of which less is.
func more(name, unit string, value float64) figure {
	return figure{name: name, unit: unit, better: report.Higher, value: value}
}

func less(name, unit string, value float64) figure {
	return figure{name: name, unit: unit, better: report.Lower, value: value}
}

// figure is a rate that was found, in the unit that a factor makes of it.
func (f *Found) figure(name, unit string, factor float64) figure {
	return figure{name: name, unit: unit, better: report.Higher, value: f.Rate * factor, step: f.Step * factor, bound: f.Bound}
}

// finding is what one measurement of one path gave.
type finding struct {
	figures []figure
	// limit is who was the limit, if not the path: the first figure is at least
	// what was measured.
	limit string
	// invalid says why it does not count; figures are nil then.
	invalid string
	// curve is what depends on something else: what was lost, by rate.
	curve []xy
	// times are single durations, spread the same as a distribution already.
	times  stats.Sample
	spread []stats.Point
	// foreign is the share of time that other programs took.
	foreign float64
	illegal uint64 // frames that should not have passed
}

type xy struct{ x, y float64 }

// Words that name who was the limit.
const (
	limitGenerator = "generator"
	limitAsked     = "number that was asked for"
)

// Standard is an RFC, or what is measured as if it were one.
type Standard struct {
	Name  string // of the subcommand: "rfc2544"
	Title string
	About string // for the help
	// Frames: there are tests that count frames, and have their sizes and flows.
	Frames bool
	// Connections: there are tests of how many fit; Clients: of those who fetch objects.
	Connections, Clients bool

	Tests []Test
	// Differs are the differences from the RFC, for the report.
	Differs []string
}

// Standards are all that there are.
func Standards() []Standard {
	return []Standard{rfc2544(), rfc3511(), rfc9411(), rfc9693(), objects()}
}

// Named gives the standard of a subcommand.
func Named(name string) (Standard, error) {
	for _, s := range Standards() {
		if s.Name == name {
			return s, nil
		}
	}
	return Standard{}, fmt.Errorf("no standard %q", name)
}

// TestNames are the names of a standard's tests.
func (s *Standard) TestNames() []string {
	var names []string
	for _, t := range s.Tests {
		names = append(names, t.Name)
	}
	return names
}

// chosen are the tests that the options name.
func (s *Standard) chosen(o *Options) []Test {
	var tests []Test
	for _, t := range s.Tests {
		if len(o.Tests) == 0 || slices.Contains(o.Tests, t.Name) {
			tests = append(tests, t)
		}
	}
	return tests
}

func (t *Test) variantsOf(o *Options) []int {
	if t.variants == nil {
		return []int{0}
	}
	return t.variants(o)
}

// fit are the paths that can be tested at all, whatever machine this is.
func (t *Test) fit(o *Options) (paths []string) {
	for _, path := range o.Paths {
		if t.unfit == nil || t.unfit(path) == "" {
			paths = append(paths, path)
		}
	}
	return paths
}

// measurements is how many there are of all paths that fit, with the control.
func (t *Test) measurements(o *Options) int {
	paths := len(t.fit(o))
	if paths == 0 {
		return 0
	}
	return len(t.variantsOf(o)) * (paths + 1) * o.Runs
}

// title is that of a section of the report.
func (t *Test) title(variant int) string {
	if t.variants == nil {
		return t.Title
	}
	return fmt.Sprintf("%s: %d %s", t.Title, variant, t.unit)
}

// key is a measurement's name: it stays the same over versions.
func (t *Test) key(standard string, variant int, path, figure string) string {
	parts := []string{standard, t.Name}
	if t.variants != nil {
		parts = append(parts, fmt.Sprint(variant))
	}
	return strings.Join(append(parts, path, strings.ReplaceAll(figure, " ", "-")), "/")
}

// onlyStates says that a path without states cannot be tested.
func onlyStates(path string) string {
	if path == "kernel" {
		return "bare routing keeps no states and has no rules"
	}
	return ""
}
