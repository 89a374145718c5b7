// Package undolog is how weir remembers what it sets on a host, so that it can be put
// back: a file that is written before anything is changed, the lock of who changes,
// and the time in which a change has to be confirmed. What the file holds is
// internal/host/tune's.
package undolog
