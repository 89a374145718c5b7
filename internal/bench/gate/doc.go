// Package gate keeps weir from becoming slower unnoticed. It says which ratios of
// a short benchmark have to hold, and by how much they may be missed. Package
// compare pairs and judges them.
package gate
