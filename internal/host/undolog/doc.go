// Package undolog keeps what weir needs to undo its changes to a host: a journal that is
// written before any change, a lock against other processes that change it, and the time
// in which a change must be confirmed. internal/host/tune defines the journal's contents.
package undolog
