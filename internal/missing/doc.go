// Package missing holds the error for what the machine or the user lacks: a program, a
// kernel feature, root. It gives commands an exit status of its own.
package missing
