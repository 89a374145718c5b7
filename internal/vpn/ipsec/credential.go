package ipsec

import (
	"bytes"
	"crypto"
	"crypto/sha1" //nolint:gosec // charon's numbers of keys are such
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"weir/internal/vpn/key"
	"weir/pf/identity"
	"weir/pf/resolve"
)

// credentials are what the files of a tunnel have. They are secret, and print nothing.
type credentials struct {
	psk   []byte
	key   []byte   // a private key, in PEM
	keyID string   // charon's number of it
	leaf  []byte   // this end's certificate
	chain [][]byte // who has signed it, as far as the file has them
	cas   [][]byte
}

const hidden = "[secret]"

// Format hides the credentials from all verbs.
func (*credentials) Format(s fmt.State, _ rune) { fmt.Fprint(s, hidden) }

// MarshalText hides them from JSON and logs.
func (*credentials) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// fingerprint tells credentials and whom they are for apart. Without the salt nobody can try preshared
// keys with it.
func (c *credentials) fingerprint(salt []byte, owners ...string) string {
	h := sha256.New()
	for _, owner := range owners {
		fmt.Fprintf(h, "%q", owner)
	}
	for _, part := range slices.Concat([][]byte{salt, c.psk, c.key, c.leaf}, c.chain, c.cas) {
		fmt.Fprintf(h, "%d:", len(part))
		h.Write(part)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// mostFile is how many bytes a file of keys or certificates may have.
const mostFile = 64 << 10

// readCredentials reads the files of a tunnel, and finds what charon would only stumble over.
func readCredentials(t *resolve.IKEv2, now time.Time) (*credentials, error) {
	c := &credentials{}
	var err error
	if t.PSKFile != "" {
		c.psk, err = readPSK(t.PSKFile)
		return c, seen(err)
	}
	if err := c.readCertificates(t, now); err != nil {
		return nil, seen(err)
	}
	return c, nil
}

// seen tells why the service may not see a file.
func seen(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w (the service does not see /home and /root, and reads files of root only)", err)
	}
	return err
}

// readPSK reads a preshared key: text, or bytes as swanctl.conf(5) has them.
func readPSK(path string) ([]byte, error) {
	text, err := key.ReadOwn(path, mostFile)
	if err != nil {
		return nil, err
	}
	psk := bytes.TrimRight(text, "\r\n")
	switch {
	case bytes.HasPrefix(psk, []byte("0x")):
		psk, err = hex.DecodeString(string(psk[2:]))
	case bytes.HasPrefix(psk, []byte("0s")):
		psk, err = base64.StdEncoding.DecodeString(string(psk[2:]))
	case bytes.ContainsAny(psk, "\r\n\x00"):
		err = errors.New("it has more than one line")
	}
	switch { // the error of a decoder may quote what it read
	case err != nil:
		return nil, fmt.Errorf("read a preshared key: %s: neither one line of text, nor 0x and hexadecimal digits, nor 0s and base64", path)
	case len(psk) < leastPSK:
		return nil, fmt.Errorf("read a preshared key: %s has %d characters: everybody who sees a handshake can try keys, so it needs %d; weir vpn genpsk makes one", path, len(psk), leastPSK)
	}
	return psk, nil
}

// leastPSK is how long a preshared key has to be.
const leastPSK = 12

func (c *credentials) readCertificates(t *resolve.IKEv2, now time.Time) error {
	own, err := readCertificateFile(t.Certificate)
	if err != nil {
		return err
	}
	c.leaf = own[0].Raw
	for _, above := range own[1:] {
		c.chain = append(c.chain, above.Raw)
	}
	text, err := key.ReadOwn(t.KeyFile, mostFile)
	if err != nil {
		return err
	}
	private, block, err := privateOf(text)
	if err != nil {
		return fmt.Errorf("read a private key: %s: %w", t.KeyFile, err)
	}
	if public, ok := private.Public().(publicKey); !ok || !public.Equal(own[0].PublicKey) {
		return fmt.Errorf("%s is not the private key of the certificate in %s", t.KeyFile, t.Certificate)
	}
	if c.key = pem.EncodeToMemory(block); c.key == nil {
		return fmt.Errorf("read a private key: %s: its headers are wrong", t.KeyFile)
	}
	if c.keyID, err = keyID(own[0]); err != nil {
		return err
	}
	if err := current(own[0], t.Certificate, now); err != nil {
		return err
	}
	if err := confirms(own[0], t.SrcID); err != nil {
		return fmt.Errorf("%s: %w", t.Certificate, err)
	}
	for _, path := range t.CAFiles {
		all, err := readCertificateFile(path)
		if err != nil {
			return err
		}
		for _, ca := range all {
			if !ca.IsCA {
				return fmt.Errorf("%s: %q is no certificate of an authority", path, ca.Subject)
			}
			if err := current(ca, path, now); err != nil {
				return err
			}
			c.cas = append(c.cas, ca.Raw)
		}
	}
	return nil
}

func current(c *x509.Certificate, path string, now time.Time) error {
	switch {
	case now.After(c.NotAfter):
		return fmt.Errorf("%s: the certificate of %q is good until %s only", path, c.Subject, c.NotAfter.Format(time.DateTime))
	case now.Before(c.NotBefore):
		return fmt.Errorf("%s: the certificate of %q is good from %s on only", path, c.Subject, c.NotBefore.Format(time.DateTime))
	}
	return nil
}

// confirms reports whether a certificate has an identity. charon would take another one, and the peer
// would refuse it. A subject is left to charon.
func confirms(c *x509.Certificate, id string) error {
	var names []string
	var ids []identity.ID
	add := func(one identity.ID) { names, ids = append(names, one.String()), append(ids, one) }
	for _, name := range c.DNSNames {
		add(identity.Name(name))
	}
	for _, name := range c.EmailAddresses {
		add(identity.Mail(name))
	}
	for _, ip := range c.IPAddresses {
		if a, ok := netip.AddrFromSlice(ip); ok {
			add(identity.Address(a.Unmap()))
		}
	}
	if id == "" && len(c.Subject.Names) == 0 {
		return fmt.Errorf("the certificate has no subject: say which of its alternative names this end has, with srcid: %s", strings.Join(names, ", "))
	}
	who := identity.Parse(id)
	if id == "" || who.IsSubject() || slices.ContainsFunc(ids, who.Same) || who.IsKey(numbers(c)...) {
		return nil
	}
	if names == nil {
		return fmt.Errorf("the certificate does not confirm the identity %s: it has no alternative names, only the subject %q", id, c.Subject)
	}
	return fmt.Errorf("the certificate does not confirm the identity %s: its alternative names are %s", id, strings.Join(names, ", "))
}

// numbers are those by which charon takes a certificate for that of a keyid: what the certificate says, and the SHA-1 sums
// of itself, of its key, and of the key with its algorithm. The serial number is none: other authorities give the same.
func numbers(c *x509.Certificate) [][]byte {
	whole, info := sha1.Sum(c.Raw), sha1.Sum(c.RawSubjectPublicKeyInfo) //nolint:gosec // charon's numbers are such
	all := [][]byte{c.SubjectKeyId, whole[:], info[:]}
	if id, err := keyID(c); err == nil {
		if key, err := hex.DecodeString(id); err == nil {
			all = append(all, key)
		}
	}
	return all
}

// readCertificateFile reads certificates in PEM, at least one.
func readCertificateFile(path string) (all []*x509.Certificate, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read a certificate: %w", err)
	}
	for len(text) > 0 {
		var b *pem.Block
		if b, text = pem.Decode(text); b == nil {
			break
		}
		if b.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(b.Bytes)
		if err != nil {
			return nil, fmt.Errorf("read a certificate: %s: %w", path, err)
		}
		all = append(all, c)
	}
	if all == nil {
		return nil, fmt.Errorf("read a certificate: %s has none in PEM", path)
	}
	return all, nil
}

// keyID returns the number by which charon knows a certificate's key: the SHA-1 sum of the key as the
// certificate has it.
func keyID(c *x509.Certificate) (string, error) {
	var info struct {
		Algorithm pkix.AlgorithmIdentifier
		Key       asn1.BitString
	}
	if _, err := asn1.Unmarshal(c.RawSubjectPublicKeyInfo, &info); err != nil {
		return "", fmt.Errorf("read the key of a certificate: %w", err)
	}
	sum := sha1.Sum(info.Key.Bytes) //nolint:gosec // charon's numbers are such
	return hex.EncodeToString(sum[:]), nil
}

type publicKey interface{ Equal(x crypto.PublicKey) bool }

// privateOf finds a private key, and returns it with the part of the text that it is in.
func privateOf(text []byte) (crypto.Signer, *pem.Block, error) {
	var private any
	var block *pem.Block
	err := errors.New("it has no private key in PEM")
	for len(text) > 0 && private == nil {
		if block, text = pem.Decode(text); block == nil {
			break
		}
		switch block.Type {
		case "PRIVATE KEY":
			private, err = x509.ParsePKCS8PrivateKey(block.Bytes)
		case "RSA PRIVATE KEY":
			private, err = x509.ParsePKCS1PrivateKey(block.Bytes)
		case "EC PRIVATE KEY":
			private, err = x509.ParseECPrivateKey(block.Bytes)
		case "ENCRYPTED PRIVATE KEY":
			err = errors.New("it is encrypted, and nobody is there to give the passphrase: decrypt it")
		}
	}
	if err != nil {
		return nil, nil, err
	}
	signer, ok := private.(crypto.Signer)
	if !ok {
		return nil, nil, errors.New("it cannot sign")
	}
	return signer, block, nil
}
