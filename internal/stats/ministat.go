package stats

import (
	"fmt"
	"io"
	"math"
	"strings"
)

// Named is a sample with a name.
type Named struct {
	Name string
	Sample
	Resolution float64 // see [CompareResolved]
}

// plotWidth is ministat's width if its output is not a terminal.
const plotWidth = 74

// symbols are those of the first sample, the second, and of a place where both have a
// dot.
const symbols = " x+*"

// WriteMinistat prints two samples and what they prove, as FreeBSD's ministat -s does:
// dots for runs, a bar from one standard deviation below the average (A) to one above,
// with the median (M), figures and the verdict. Below that it prints the smallest effect
// that such runs could have shown and, if variances are not pooled, a note.
func WriteMinistat(w io.Writer, a, b Named) error {
	var text strings.Builder
	fmt.Fprintf(&text, "x %s\n+ %s\n", a.Name, b.Name)
	writePlot(&text, a.Sample, b.Sample)
	fmt.Fprintf(&text, "    N %10s %10s %10s %10s %12s\n", "Min", "Max", "Median", "Avg", "Stddev")
	for i, s := range []Sample{a.Sample, b.Sample} {
		fmt.Fprintf(&text, "%c %3d %10.8g %10.8g %10.8g %10.8g %12.8g\n", symbols[i+1], len(s), s.Min(), s.Max(), s.Median(),
			s.Mean(), math.Sqrt(s.Variance()))
	}
	writeVerdict(&text, a.Sample, b.Sample, max(a.Resolution, b.Resolution))
	_, err := io.WriteString(w, text.String())
	return err
}

func writeVerdict(text *strings.Builder, a, b Sample, resolution float64) {
	c := CompareResolved(a, b, resolution)
	if c.Test == TooFew {
		fmt.Fprintf(text, "No verdict: it needs %d runs of each\n", leastRuns)
		return
	}
	if c.Proven {
		fmt.Fprintf(text, "Difference at %.1f%% confidence\n", Confidence*100)
	} else {
		fmt.Fprintf(text, "No difference proven at %.1f%% confidence\n", Confidence*100)
	}
	fmt.Fprintf(text, "\t%.6g +/- %.6g\n\t%.6g%% +/- %.6g%%\n", c.Difference, c.Interval, c.Relative*100, c.RelativeInterval*100)
	if c.Test == Welch {
		fmt.Fprintf(text, "\t(Welch's t, variances not pooled)\n")
	} else {
		fmt.Fprintf(text, "\t(Student's t, pooled s = %.6g)\n", pooledDeviation(a, b))
	}
	if resolution > 0 {
		fmt.Fprintf(text, "\t(found in steps of %.6g, which are the least uncertainty)\n", resolution)
	}
	fmt.Fprintf(text, "\t(an effect of %.2g%% would have been proven by four of five such runs)\n", c.Detectable*100)
}

func pooledDeviation(a, b Sample) float64 {
	na, nb := float64(len(a)-1), float64(len(b)-1)
	return math.Sqrt((na*a.Variance() + nb*b.Variance()) / (na + nb))
}

// writePlot draws the dots of both samples on one scale, and a bar for each.
func writePlot(text *strings.Builder, a, b Sample) {
	low, high := math.Min(a.Min(), b.Min()), math.Max(a.Max(), b.Max())
	for _, s := range []Sample{a, b} {
		if d := math.Sqrt(s.Variance()); !math.IsNaN(d) {
			low, high = math.Min(low, s.Mean()-d), math.Max(high, s.Mean()+d)
		}
	}
	column := func(v float64) int {
		if !(high > low) {
			return plotWidth / 2
		}
		return int(math.Round((v - low) / (high - low) * (plotWidth - 1)))
	}
	frame := "+" + strings.Repeat("-", plotWidth) + "+\n"
	text.WriteString(frame)
	for _, line := range dots(a, b, column) {
		fmt.Fprintf(text, "|%s|\n", line)
	}
	for _, s := range []Sample{a, b} {
		fmt.Fprintf(text, "|%s|\n", bar(s, column))
	}
	text.WriteString(frame)
}

// dots returns lines with one dot per run, from the top down. Runs in the same column are
// stacked.
func dots(a, b Sample, column func(float64) int) []string {
	var lines [][]byte // of bits, from the bottom up
	for bit, s := range []Sample{a, b} {
		height := [plotWidth]int{}
		for _, v := range s {
			c := column(v)
			if height[c] == len(lines) {
				lines = append(lines, make([]byte, plotWidth))
			}
			lines[height[c]][c] |= 1 << bit
			height[c]++
		}
	}
	drawn := make([]string, len(lines))
	for i, line := range lines {
		for c := range line {
			line[c] = symbols[line[c]]
		}
		drawn[len(lines)-1-i] = string(line)
	}
	return drawn
}

// bar spans one standard deviation on both sides of the average.
func bar(s Sample, column func(float64) int) string {
	line := []byte(strings.Repeat(" ", plotWidth))
	if d := math.Sqrt(s.Variance()); !math.IsNaN(d) {
		from, to := column(s.Mean()-d), column(s.Mean()+d)
		for c := from; c <= to; c++ {
			line[c] = '_'
		}
		line[from], line[to] = '|', '|'
	}
	if len(s) > 0 {
		line[column(s.Median())] = 'M'
		line[column(s.Mean())] = 'A'
	}
	return string(line)
}
