// Package view reads and prints what weir does in one network namespace: rules with
// counters, states, interfaces and status. It reads the run folder and the pinned maps,
// so the daemon need not live. It can also end states and forget sources. A View may be held for long, for metrics or a web page: it
// follows every load.
package view
