// Package collect reads the live host into a [doctor.Snapshot]: files of the
// kernel, netlink and ethtool. It judges nothing and changes nothing. What cannot
// be read is left out, with the reason in Snapshot.Unreadable.
package collect
