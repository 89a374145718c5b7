// Package affinity measures what "weir affinity auto" is worth on a router of
// which one core is full: packets that arrive before it, and after it.
package affinity
