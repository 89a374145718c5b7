// Package ast is a configuration as it was written: one struct for each kind of statement
// and clause, each with its place in the text.
//
// The resolver expands a file into another one of the same types, in which every list has
// one element and every name is resolved. The printer prints both. So a construct that is
// parsed but has no effect yet needs a type here, a method in the parser and one in the
// printer, and nothing else.
package ast
