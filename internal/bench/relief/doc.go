// Package relief measures what it is worth to relieve one full core: a router of
// which one queue gets all packets, before and after weir affinity auto.
package relief
