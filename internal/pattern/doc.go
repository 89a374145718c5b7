// Package pattern has regular expressions that are compiled when they are first used. Those of
// package regexp that are variables are compiled at each start of the program, whatever it is
// asked for.
package pattern
