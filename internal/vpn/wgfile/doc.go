// Package wgfile reads and writes the files of wg(8) and wg-quick(8), and says in weir's statements
// what they say.
package wgfile
