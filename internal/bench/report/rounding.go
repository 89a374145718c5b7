package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"weir/internal/units"
)

// CheckFigures checks that tables round as charts do: in a column with the unit of a chart,
// each figure has as many digits as charts write. In columns with other units, whole numbers
// may also stand in full, because they count something. Tests call it: a report that a run
// has made is not refused for that.
func (d *Document) CheckFigures() error {
	var drawn []string
	for _, s := range d.Sections {
		for _, c := range s.Charts {
			drawn = append(drawn, c.units()...)
		}
	}
	for _, s := range d.Sections {
		for _, t := range s.Tables {
			for i, column := range t.Columns {
				if column.Unit == "" {
					continue
				}
				counts := !slices.Contains(drawn, column.Unit)
				for _, row := range t.Rows {
					if err := checkFigure(row[i], counts); err != nil {
						return fmt.Errorf("report %q: table %q: column %q: %w", d.Title, t.Title, column.Name, err)
					}
				}
			}
		}
	}
	return nil
}

// units returns the units of a chart's figures.
func (c *Chart) units() (all []string) {
	switch {
	case c.Bars != nil:
		all = append(all, c.Bars.Unit)
	case c.Curves != nil:
		all = append(all, c.Curves.Y.Unit)
	}
	return all
}

// checkFigure checks one cell. The spread after a figure is rounded like it. A difference
// may have a sign. counts allows whole numbers in full.
func checkFigure(cell string, counts bool) error {
	for _, word := range strings.FieldsFunc(cell, func(c rune) bool { return strings.ContainsRune(" –()", c) }) {
		v, err := strconv.ParseFloat(strings.ReplaceAll(word, ",", ""), 64)
		if err != nil || counts && v == math.Trunc(v) && word == units.Thousands(int(v)) {
			continue
		}
		if figure := Figure(v); !slices.Contains([]string{figure, trimZeros(figure), Signed(v)}, word) {
			return fmt.Errorf("%s is written with other digits than in charts, %s", word, figure)
		}
	}
	return nil
}
