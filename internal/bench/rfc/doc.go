// Package rfc measures firewalls as the RFCs for it say: RFC 2544 (throughput,
// latency, loss, back-to-back frames), RFC 9693 (states that are made with
// pseudorandom ports), RFC 3511 and its successor RFC 9411 (connections and
// HTTP), and, as people do who run web servers, how long objects take.
//
// A [Test] measures one path once and knows nothing of the others; [Run] takes
// all paths in turn, in random order, judges the control and writes the report.
// Frames and paths come from internal/bench, HTTP from internal/bench/web.
// docs/measuring.md says what is done differently from each RFC, and why.
package rfc
