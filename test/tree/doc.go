// Package tree tests what holds for the checkout as a whole and that no single
// package could test: every package is placed in the import order and has its
// doc.go, and C files keep the length that the linter asks of Go.
package tree
