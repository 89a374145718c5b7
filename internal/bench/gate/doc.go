// Package gate detects if weir becomes slower. It defines which ratios of a short
// benchmark have to hold, and their margins. Package compare pairs and judges them.
package gate
