package remote

import (
	"bufio"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"weir/internal/selfsigned"
)

// Key is the secret of both sides: 256 bits chosen by a machine. A password chosen by a
// person is not enough, because the server's certificate lets anybody test guesses.
type Key [32]byte

// keyPrefix is the start of a key in text. It separates keys from other secrets, and from
// later kinds of keys.
const keyPrefix = "weirbench1-"

// Errors of a key or its file.
var (
	ErrKeyText = errors.New("this is no key: a key is " + keyPrefix + " and 43 letters and digits, as weir bench server prints it")
	errKeyOpen = errors.New("others may read it: chmod 600")
	errNoKey   = errors.New("the other side has another key")
)

// NewKey chooses a random key.
func NewKey() Key {
	var k Key
	rand.Read(k[:]) //nolint:errcheck // never fails (crypto/rand)
	return k
}

// String returns the key as [ParseKey] reads it.
func (k Key) String() string { return keyPrefix + base64.RawURLEncoding.EncodeToString(k[:]) }

// ParseKey reads a key as text. Its error is [ErrKeyText].
func ParseKey(text string) (Key, error) {
	var k Key
	encoded, found := strings.CutPrefix(strings.TrimSpace(text), keyPrefix)
	b, err := base64.RawURLEncoding.Strict().DecodeString(encoded)
	if !found || err != nil || len(b) != len(k) {
		return k, ErrKeyText
	}
	copy(k[:], b)
	return k, nil
}

// ReadKey reads a key from a file that nobody else may read. Its error is fs.ErrNotExist
// if there is none.
func ReadKey(name string) (k Key, err error) {
	f, err := os.Open(name)
	if err != nil {
		return k, fmt.Errorf("read the key: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0 {
		err = errKeyOpen
	}
	if err == nil {
		k, err = ReadKeyLine(f)
	}
	if err != nil {
		return k, fmt.Errorf("read the key from %s: %w", name, err)
	}
	return k, nil
}

// ReadKeyLine reads a key from the first line of r.
func ReadKeyLine(r io.Reader) (Key, error) {
	line, err := bufio.NewReader(io.LimitReader(r, 256)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return Key{}, err
	}
	return ParseKey(line)
}

// OpenKey reads the key from a file. If there is none, it chooses a key and writes the
// file.
func OpenKey(name string) (k Key, made bool, err error) {
	k, err = ReadKey(name)
	if !errors.Is(err, fs.ErrNotExist) {
		return k, false, err
	}
	k = NewKey()
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return k, false, fmt.Errorf("write a new key: %w", err)
	}
	_, err = fmt.Fprintln(f, k)
	if err = errors.Join(err, f.Close()); err != nil {
		return k, false, fmt.Errorf("write a new key to %s: %w", name, errors.Join(err, os.Remove(name)))
	}
	return k, true, nil
}

// Roles whose certificates are derived from a key.
const (
	roleServer = "server"
	roleClient = "client"
)

// alpn is the protocol with its version. Sides of different versions do not agree on a
// protocol (RFC 7301).
const alpn = "weir-bench/3"

// signer returns the private key of a role. HKDF (RFC 5869) derives the seed of an
// Ed25519 key (RFC 8032) from the common key.
func (k Key) signer(role string) (ed25519.PrivateKey, error) {
	seed, err := hkdf.Key(sha256.New, k[:], nil, alpn+" "+role, ed25519.SeedSize)
	if err != nil {
		return nil, fmt.Errorf("derive the %s's certificate: %w", role, err)
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

// config returns the TLS configuration of one role, which talks only to the other role.
// The other's certificate must have the public key derived from the common key. TLS
// itself proves that the other has the private one.
func (k Key) config(own, other string) (*tls.Config, error) {
	private, err := k.signer(own)
	if err != nil {
		return nil, err
	}
	peer, err := k.signer(other)
	if err != nil {
		return nil, err
	}
	certificate, err := selfsigned.Of(private)
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		NextProtos:             []string{alpn},
		Certificates:           []tls.Certificate{certificate},
		ClientAuth:             tls.RequireAnyClientCert,
		InsecureSkipVerify:     true, // names and issuers mean nothing here; VerifyConnection checks the key
		SessionTicketsDisabled: true,
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) == 0 || s.NegotiatedProtocol != alpn {
				return errNoKey
			}
			if public, ok := s.PeerCertificates[0].PublicKey.(ed25519.PublicKey); !ok || !public.Equal(peer.Public()) {
				return errNoKey
			}
			return nil
		},
	}, nil
}
