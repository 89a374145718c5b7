package ipsec

import (
	"crypto/x509"
	"fmt"
	"net/netip"

	"weir/pf/identity"
	"weir/pf/resolve"
)

// SameIdentity reports whether two identities are those of one end.
func SameIdentity(a, b string) bool { return identity.Parse(a).Same(identity.Parse(b)) }

// Calls returns who an end of a tunnel says that it is: its srcid, or else the subject of its certificate,
// or the address that packets leave from. Without certificate and address nobody knows that before they go.
func Calls(srcID, local string, leaf []byte) (id identity.ID, known bool, err error) {
	switch {
	case srcID != "":
		return identity.Parse(srcID), true, nil
	case leaf != nil:
		c, err := x509.ParseCertificate(leaf)
		if err != nil {
			return id, false, fmt.Errorf("read a certificate: %w", err)
		}
		id, err = identity.Subject(c.RawSubject)
		return id, err == nil, err
	}
	a, err := netip.ParseAddr(local)
	return identity.Parse(local), err == nil && !a.IsUnspecified(), nil //nolint:nilerr // then it is not known
}

// Leaf returns the certificate of this end of a tunnel; nil: it has a preshared key.
func Leaf(t *resolve.IKEv2) ([]byte, error) {
	if t.PSKFile != "" {
		return nil, nil
	}
	all, err := readCertificateFile(t.Certificate)
	if err != nil {
		return nil, err
	}
	return all[0].Raw, nil
}

// Leaf returns the certificate of the end that has sealed a text; nil: it has a preshared key.
func (s *Seal) Leaf() []byte {
	if len(s.Certificates) == 0 {
		return nil
	}
	return s.Certificates[0]
}
