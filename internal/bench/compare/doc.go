// Package compare compares two reports of benchmarks. It says which differences are
// larger than chance, and whether they are worse.
package compare
