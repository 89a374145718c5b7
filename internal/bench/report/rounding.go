package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// CheckFigures checks that tables round as charts do: in a column with the unit of a chart,
// each figure has as many digits as charts write. Tests call it: a report that a run has
// made is not refused for that.
func (d *Document) CheckFigures() error {
	var units []string
	for _, s := range d.Sections {
		for _, c := range s.Charts {
			units = append(units, c.units()...)
		}
	}
	for _, s := range d.Sections {
		for _, t := range s.Tables {
			for i, column := range t.Columns {
				if column.Unit == "" || !slices.Contains(units, column.Unit) {
					continue
				}
				for _, row := range t.Rows {
					if err := checkFigure(row[i]); err != nil {
						return fmt.Errorf("report %q: table %q: column %q: %w", d.Title, t.Title, column.Name, err)
					}
				}
			}
		}
	}
	return nil
}

// units returns the units of a chart's figures.
func (c *Chart) units() (units []string) {
	switch {
	case c.Bars != nil:
		units = append(units, c.Bars.Unit)
	case c.Curves != nil:
		units = append(units, c.Curves.Y.Unit)
	}
	return units
}

// checkFigure checks one cell. The spread after a figure is rounded like it. A difference may have a sign.
func checkFigure(cell string) error {
	for _, word := range strings.FieldsFunc(cell, func(c rune) bool { return strings.ContainsRune(" –()", c) }) {
		v, err := strconv.ParseFloat(strings.ReplaceAll(word, ",", ""), 64)
		if figure := Figure(v); err == nil && !slices.Contains([]string{figure, trimZeros(figure), Signed(v)}, word) {
			return fmt.Errorf("%s is written with other digits than in charts, %s", word, figure)
		}
	}
	return nil
}
