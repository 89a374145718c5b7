// Package missing has the error for what the machine or the user lacks: a program, a
// kernel feature, root. Commands have a separate exit status for it.
package missing
