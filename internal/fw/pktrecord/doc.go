// Package pktrecord is what people see of packets that rules log or that are
// captured: one line as tcpdump prints it, JSON, and pcapng with comments.
//
// The dataplane writes records into its rings (bpf/observe/record.h), the daemon hands
// them to its readers, and the commands give them their form here. Numbers of
// interfaces and rules become names on the way: a packet does not wait for that.
package pktrecord
