// Package collect reads the live host into a [doctor.Snapshot], from kernel files,
// netlink and ethtool. It judges nothing and changes nothing. What cannot be read is left
// out, with the reason in Snapshot.Unreadable.
package collect
