// Package rfc measures firewalls by the RFCs for it: RFC 2544 (throughput, latency, loss,
// back-to-back frames), RFC 9693 (states made with pseudorandom ports), and RFC 3511 with
// its successor RFC 9411 (connections and HTTP). It also measures how long objects take,
// as people who run web servers do.
//
// A [Test] measures one path once and knows nothing of the others. [Run] takes all paths
// in turn in random order, evaluates the control and writes the report. Frames and paths
// come from internal/bench, HTTP from internal/bench/web. docs/measuring.md lists the
// differences from each RFC and their reasons.
package rfc
