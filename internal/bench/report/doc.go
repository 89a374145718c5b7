// Package report is the part of a benchmark that people pass around: the machine, the
// method, the measurements with their spread, the verdict in words, and the command that
// repeats it.
//
// Each benchmark builds a [Document] and knows nothing about its looks. The writers here
// turn it into one self-contained HTML file, JSON that "weir bench compare" reads,
// Markdown, an SVG per chart, and text with bars for a terminal. All of them draw from
// the same charts: plot.go decides scales and marks once.
package report
