// Package affinity measures what "weir affinity auto" is worth on a router with one full
// core: packets that arrive before it, and after it.
package affinity
