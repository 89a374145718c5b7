// Package compare tells two reports of benchmarks apart: what differs by more
// than chance between them, and whether that is worse.
package compare
