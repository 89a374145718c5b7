package ipsec

import "weir/pf/identity"

// SameIdentity reports whether two identities are those of one end.
func SameIdentity(a, b string) bool { return identity.Parse(a).Same(identity.Parse(b)) }

// IsAddress reports whether an identity is an address.
func IsAddress(id string) bool {
	_, ok := identity.Parse(id).Address()
	return ok
}
