// Package tester offers a load to a path and says what became of it: how many
// frames arrived, how late, how many connections opened. It is what the RFCs call
// a tester. It sends whether the firewall keeps up or not, from a core of its own.
package tester
