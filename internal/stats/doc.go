// Package stats judges measurements: what several runs of one thing say of it,
// whether two things differ, and what a run could not have told apart. It knows
// nothing of what was measured.
package stats
