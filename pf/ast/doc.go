// Package ast is a configuration as it was written: one struct for each kind
// of statement and clause, each with the text that it was read from.
//
// The resolver expands a file into another one of the same types, in which
// every list has one element and every name its meaning; the printer prints
// both. So a construct that is read but has no effect yet needs a type here, a
// method in the parser and one in the printer, and nothing behind them.
package ast
