// Package selfsigned makes certificates for benchmarks, which nobody else has to trust.
package selfsigned

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net/netip"
	"time"
)

// New returns a certificate for an address, with a new key (ECDSA P-256, as RFC 9411
// recommends).
func New(host netip.Addr) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make a key: %w", err)
	}
	return Of(key, host)
}

// Of returns a certificate of a key for addresses. Its times mean nothing, because the
// clock of a router may be wrong.
func Of(key crypto.Signer, hosts ...netip.Addr) (tls.Certificate, error) {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "weir bench"}, KeyUsage: x509.KeyUsageDigitalSignature,
		NotBefore: time.Unix(0, 0), NotAfter: time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC),
	}
	for _, h := range hosts {
		template.IPAddresses = append(template.IPAddresses, h.AsSlice())
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make a certificate: %w", err)
	}
	leaf, err := x509.ParseCertificate(der)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, err
}
