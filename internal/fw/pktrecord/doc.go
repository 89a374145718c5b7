// Package pktrecord formats packets that rules log or that are captured: one line as
// tcpdump prints it, JSON, and pcapng with comments.
//
// The dataplane writes records into its rings (bpf/observe/record.h), the daemon passes
// them to its readers, and the commands format them here. Numbers of interfaces and rules
// become names only in the reader, so no packet waits for that.
package pktrecord
