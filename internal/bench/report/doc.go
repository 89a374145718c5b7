// Package report is what people pass around of a benchmark: the machine, the
// method, what was measured with its spread, the verdict in words, and the
// command that repeats it.
//
// Each benchmark builds a [Document] and knows nothing of how it looks. The
// writers here make of it one HTML file that needs nothing else, JSON that
// "weir bench compare" reads, Markdown, an SVG per chart, and text with bars
// for a terminal. All of them draw from the same charts: scales and marks are
// decided once, in plot.go.
package report
