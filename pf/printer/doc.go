// Package printer writes configurations as text: resolved ones in the form of pfctl -o
// none -nv on OpenBSD, and parsed files in the same style, with their lists.
//
// The output parses again and prints the same.
package printer
