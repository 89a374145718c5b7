// Package gate keeps weir from growing slower unseen: it compares the ratios of
// a short benchmark with those that were recorded.
package gate
