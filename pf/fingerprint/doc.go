// Package fingerprint reads files like pf.os(5), which say by what the SYNs of operating
// systems are recognised. The rules name the systems (os "NAME"); packages ruleset and model
// compare the packets.
package fingerprint
