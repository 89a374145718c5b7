// Package spd makes tables of the kernel's IPsec policies, in which the dataplane finds what they
// select (bpf/path/policy.h). It also keeps policies that have just gone for a while. SPD is the
// name that RFC 4301 gives to the database of policies.
package spd
