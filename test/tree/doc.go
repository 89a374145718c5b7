// Package tree tests rules for the whole checkout that no single package can test: every
// package is in the import order and has a doc.go, and C files keep the length limits
// that the linter checks for Go.
package tree
