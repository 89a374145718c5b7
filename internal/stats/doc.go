// Package stats evaluates measurements: what several runs say about one thing, whether
// two things differ, and which difference a run could have shown. It does not know what
// was measured.
package stats
