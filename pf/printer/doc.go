// Package printer writes configurations as text: what the resolver expanded
// in the form of pfctl -o none -nv on OpenBSD, and files as they were parsed,
// lists and all, in the same style.
//
// What it prints parses again, and prints itself.
package printer
