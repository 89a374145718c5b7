// Package tester offers a load to a path and reports the result: how many frames arrived,
// how late, how many connections opened. It is what the RFCs call a tester. It sends from
// a core of its own whether the firewall keeps up or not.
package tester
