// Package killpoint marks the moments at which weir has just changed something that
// outlives it: a pin, a link, a sysctl, a file, what running programs read. A
// test may have the process die at any of them, by SIGKILL, as no error path
// ever runs: whatever moment a real death takes, it lies between two of these.
package killpoint
