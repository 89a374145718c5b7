// Package key has the keys of WireGuard: how they are made, and the files they are in. A secret key
// cannot be printed: whatever writes it writes "[secret]" instead.
package key

import (
	"bytes"
	"crypto/ecdh"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Size is the length of every key in bytes.
const Size = 32

// Public is a public key.
type Public [Size]byte

// Secret is a private key, or a preshared one.
type Secret struct{ bytes [Size]byte }

// errNoKey tells nothing of what was read: it may be most of a secret.
var errNoKey = fmt.Errorf("not %d bytes in base64", Size)

func parse(text string) (b [Size]byte, err error) {
	decoded, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil || len(decoded) != Size {
		return b, errNoKey
	}
	return [Size]byte(decoded), nil
}

// ParsePublic reads a public key in base64.
func ParsePublic(text string) (Public, error) {
	b, err := parse(text)
	return Public(b), err
}

// ParseSecret reads a secret key in base64.
func ParseSecret(text string) (Secret, error) {
	b, err := parse(text)
	return Secret{b}, err
}

func (p Public) String() string { return base64.StdEncoding.EncodeToString(p[:]) }

// MarshalText returns the key in base64.
func (p Public) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads a key in base64.
func (p *Public) UnmarshalText(text []byte) (err error) {
	*p, err = ParsePublic(string(text))
	return err
}

// Hex returns the key in hexadecimal.
func (p Public) Hex() string { return hex.EncodeToString(p[:]) }

const hidden = "[secret]"

func (Secret) String() string { return hidden }

// GoString hides the key from %#v.
func (Secret) GoString() string { return hidden }

// Format hides the key from all other verbs.
func (Secret) Format(s fmt.State, _ rune) { io.WriteString(s, hidden) } //nolint:errcheck // a formatter has nobody to tell

// MarshalText hides the key from JSON and from logs.
func (Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// Reveal returns the bytes of the key, for who computes with them.
func (s Secret) Reveal() [Size]byte { return s.bytes }

// IsZero reports whether there is no key.
func (s Secret) IsZero() bool { return s.bytes == [Size]byte{} }

// NewPrivate makes a private key.
func NewPrivate() Secret {
	s := NewPreshared()
	s.bytes[0] &= 0xf8
	s.bytes[Size-1] = s.bytes[Size-1]&0x7f | 0x40
	return s
}

// NewPreshared makes a preshared key.
func NewPreshared() (s Secret) {
	rand.Read(s.bytes[:]) //nolint:errcheck // it never fails
	return s
}

// Public returns the public key of a private one.
func (s Secret) Public() Public {
	private, err := ecdh.X25519().NewPrivateKey(s.bytes[:])
	if err != nil {
		panic(err) // every 32 bytes are a private key
	}
	return Public(private.PublicKey().Bytes())
}

// most is how many bytes of a file are read: a key, and the end of its line.
const most = 256

// ReadFile reads a secret key from a file, which only its owner may read.
func ReadFile(path string) (s Secret, err error) {
	text, err := ReadOwn(path, most)
	if err != nil {
		return s, err
	}
	s, err = Read(bytes.NewReader(text))
	if err == nil && s.IsZero() {
		err = errNoKey
	}
	if err != nil {
		return s, fmt.Errorf("read a key: %s: %w", path, err)
	}
	return s, nil
}

// ReadOwn reads up to most bytes of a file with something secret, which only its owner may read.
func ReadOwn(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read a key: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("read a key: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("read a key: %s is no regular file", path)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("read a key: others may read %s: chmod 600 %s", path, path)
	}
	text, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return nil, fmt.Errorf("read a key: %w", err)
	}
	return text, nil
}

// Read reads a secret key in base64.
func Read(r io.Reader) (Secret, error) {
	text, err := io.ReadAll(io.LimitReader(r, most))
	if err != nil {
		return Secret{}, err
	}
	return ParseSecret(strings.TrimSpace(string(text)))
}

// WriteFile writes a secret key to a new file, for its owner only. It replaces none.
func WriteFile(path string, s Secret) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("write a key: %w: make the folder first (mkdir -m 700 %s)", err, filepath.Dir(path))
	}
	if err != nil {
		return fmt.Errorf("write a key: %w", err)
	}
	_, err = fmt.Fprintln(f, base64.StdEncoding.EncodeToString(s.bytes[:]))
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		os.Remove(path)
		return fmt.Errorf("write a key: %w", err)
	}
	return nil
}
