package ipsec

import (
	"crypto/x509"
	"net/netip"
	"slices"
	"strings"
)

// idKinds are what charon takes for the kind of an identity in front of it.
var idKinds = []string{"@@", "@", "fqdn:", "dns:", "email:", "rfc822:", "userfqdn:", "ipv4:", "ipv6:"}

// plain returns an identity without its kind.
func plain(id string) string {
	for _, kind := range idKinds {
		if rest, ok := strings.CutPrefix(id, kind); ok {
			return rest
		}
	}
	return id
}

// isSubject reports whether an identity is the subject of a certificate.
func isSubject(id string) bool { return strings.Contains(id, "=") }

// subject returns that of a certificate, as identities have it.
func subject(c *x509.Certificate) string {
	parts := strings.Split(c.Subject.String(), ",")
	slices.Reverse(parts) // the text is written backwards
	return strings.Join(parts, ", ")
}

// SameIdentity reports whether two identities are those of one end. Of subjects, white space and the case
// of letters do not count.
func SameIdentity(a, b string) bool {
	a, b = plain(a), plain(b)
	if isSubject(a) && isSubject(b) {
		return slices.Equal(parts(a), parts(b))
	}
	if x, err := netip.ParseAddr(a); err == nil {
		y, err := netip.ParseAddr(b)
		return err == nil && x == y
	}
	return strings.EqualFold(a, b)
}

// parts returns the parts of a subject.
func parts(id string) (all []string) {
	for part := range strings.FieldsFuncSeq(id, func(r rune) bool { return r == ',' || r == '/' }) {
		name, value, _ := strings.Cut(part, "=")
		all = append(all, strings.ToLower(strings.TrimSpace(name)+"="+strings.TrimSpace(value)))
	}
	return all
}

// IsAddress reports whether an identity is an address.
func IsAddress(id string) bool {
	_, err := netip.ParseAddr(plain(id))
	return err == nil
}
