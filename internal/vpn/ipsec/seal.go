package ipsec

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"golang.org/x/crypto/argon2"

	"weir/pf/identity"
	"weir/pf/resolve"
)

// A Seal shows which end of a tunnel has written a text: by the preshared key, or by a certificate. Nobody
// learns a key from it, and to try preshared keys takes as long for each as their hash does.
type Seal struct {
	Salt         []byte   `json:"salt,omitempty"`
	MAC          []byte   `json:"mac,omitempty"`
	Certificates [][]byte `json:"certificates,omitempty"` // that of the end, then who has signed it
	Signature    []byte   `json:"signature,omitempty"`
}

// What the hash of a preshared key costs (Argon2id), and what seals are for.
const (
	sealPasses = 3
	sealMemory = 64 << 10 // KiB
	sealKey    = 32
	sealLabel  = "weir vpn summary of IKEv2, 1\x00"
)

// SealText seals a text as this end of a tunnel.
func SealText(t *resolve.IKEv2, text []byte, now time.Time) (*Seal, error) {
	c, err := readCredentials(t, now)
	if err != nil {
		return nil, err
	}
	s := &Seal{}
	if c.psk != nil {
		s.Salt = make([]byte, saltSize)
		rand.Read(s.Salt) //nolint:errcheck // it never fails
		s.MAC = mac(c.psk, s.Salt, text)
		return s, nil
	}
	private, _, err := privateOf(c.key)
	if err != nil {
		return nil, err
	}
	s.Certificates = append([][]byte{c.leaf}, c.chain...)
	s.Signature, err = sign(private, text)
	return s, err
}

func mac(psk, salt, text []byte) []byte {
	h := hmac.New(sha256.New, argon2.IDKey(psk, salt, sealPasses, sealMemory, 1, sealKey))
	h.Write([]byte(sealLabel))
	h.Write(text)
	return h.Sum(nil)
}

func sign(private crypto.Signer, text []byte) ([]byte, error) {
	text = append([]byte(sealLabel), text...)
	if _, ok := private.Public().(ed25519.PublicKey); ok {
		return private.Sign(rand.Reader, text, crypto.Hash(0))
	}
	sum := sha256.Sum256(text)
	return private.Sign(rand.Reader, sum[:], crypto.SHA256)
}

// Errors of seals.
var (
	ErrOtherKey  = errors.New("the ends have different preshared keys, or the summary was changed")
	ErrOtherKind = errors.New("one end has a preshared key, and the other one certificates")
	ErrChanged   = errors.New("the summary was changed, or somebody else has written it")
)

// Check reports whether the other end of a tunnel has sealed a text.
func (s *Seal) Check(t *resolve.IKEv2, text []byte, now time.Time) error {
	c, err := readCredentials(t, now)
	switch {
	case err != nil:
		return err
	case (c.psk != nil) != (len(s.Certificates) == 0):
		return ErrOtherKind
	case c.psk != nil:
		if !hmac.Equal(s.MAC, mac(c.psk, s.Salt, text)) {
			return ErrOtherKey
		}
		return nil
	}
	leaf, err := x509.ParseCertificate(s.Certificates[0])
	if err != nil {
		return ErrChanged
	}
	if err := s.trusted(leaf, c, now); err != nil {
		return err
	}
	if err := belongs(leaf, t.DstID); err != nil {
		return err
	}
	if leaf.CheckSignature(algorithmOf(leaf), append([]byte(sealLabel), text...), s.Signature) != nil {
		return ErrChanged
	}
	return nil
}

// trusted reports whether somebody whom this end trusts has signed the other one's certificate.
func (s *Seal) trusted(leaf *x509.Certificate, c *credentials, now time.Time) error {
	pool := func(all [][]byte) *x509.CertPool {
		p := x509.NewCertPool()
		for _, raw := range all {
			if one, err := x509.ParseCertificate(raw); err == nil {
				p.AddCert(one)
			}
		}
		return p
	}
	_, err := leaf.Verify(x509.VerifyOptions{
		Roots: pool(c.cas), Intermediates: pool(s.Certificates[1:]), CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
	})
	if err != nil {
		return fmt.Errorf("our ca file does not trust the certificate of %q: %w", leaf.Subject, err)
	}
	return nil
}

func algorithmOf(c *x509.Certificate) x509.SignatureAlgorithm {
	switch c.PublicKey.(type) {
	case *rsa.PublicKey:
		return x509.SHA256WithRSA
	case *ecdsa.PublicKey:
		return x509.ECDSAWithSHA256
	case ed25519.PublicKey:
		return x509.PureEd25519
	}
	return x509.UnknownSignatureAlgorithm
}

// belongs reports whether a certificate is that of whom an end expects.
func belongs(c *x509.Certificate, id string) error {
	who := identity.Parse(id)
	if !who.IsSubject() {
		return confirms(c, id)
	}
	subject, err := identity.Subject(c.RawSubject)
	if err != nil {
		return fmt.Errorf("%w, and dstid is %q", err, id)
	}
	if !who.Same(subject) {
		return fmt.Errorf("the certificate is that of %q, and dstid is %q", subject, id)
	}
	return nil
}
