package summary

import (
	"bytes"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"
	"unicode"

	"weir/internal/vpn/key"
	"weir/pf/resolve"
)

// Summary is what one end of a tunnel is configured as, for the other.
type Summary struct {
	Time      time.Time      `json:"time"`
	From      key.Public     `json:"from"` // the public key of this end
	To        key.Public     `json:"to"`   // that of the other, as this end has it
	Interface string         `json:"interface"`
	Port      uint16         `json:"port"`
	MTU       uint16         `json:"mtu,omitempty"` // 0: it is measured
	Addresses []netip.Prefix `json:"addresses"`
	Endpoint  string         `json:"endpoint,omitempty"` // of the other end; empty: that comes from anywhere
	PortThere uint16         `json:"endpoint_port,omitempty"`
	Allowed   []netip.Prefix `json:"allowed"` // what may come from the other end
	Keepalive uint16         `json:"keepalive,omitempty"`
	Wide      uint8          `json:"wide,omitempty"` // ports of the link; 0: it is not wide
	Preshared []byte         `json:"preshared"`      // proves the preshared key, or that there is none
}

// file is a summary with its signature.
type file struct {
	Version int             `json:"weir_vpn_summary"`
	Body    json.RawMessage `json:"body"`
	MAC     []byte          `json:"mac"`
}

// version is that of the file.
const version = 1

// Labels of keys.
const (
	labelMAC       = "weir vpn summary 1: signature"
	labelPreshared = "weir vpn summary 1: preshared key"
)

// proofSize is how many bytes of a proof are written.
const proofSize = 16

// derive returns a key that both ends can derive, and nobody else.
func derive(private key.Secret, public key.Public, label string) ([]byte, error) {
	raw := private.Reveal()
	ours, err := ecdh.X25519().NewPrivateKey(raw[:])
	if err != nil {
		return nil, err
	}
	theirs, err := ecdh.X25519().NewPublicKey(public[:])
	if err != nil {
		return nil, err
	}
	secret, err := ours.ECDH(theirs)
	if err != nil {
		return nil, fmt.Errorf("the public key %s: %w", public, err)
	}
	low, high := private.Public(), public
	if bytes.Compare(low[:], high[:]) > 0 {
		low, high = high, low
	}
	return hkdf.Key(sha256.New, secret, append(low[:], high[:]...), label, sha256.Size)
}

func sign(private key.Secret, public key.Public, label string, text ...[]byte) ([]byte, error) {
	k, err := derive(private, public, label)
	if err != nil {
		return nil, err
	}
	h := hmac.New(sha256.New, k)
	for _, t := range text {
		h.Write(t) //nolint:errcheck // it never fails
	}
	return h.Sum(nil), nil
}

// proof proves that the end which has the key from knows a preshared key. private and public are the keys of either end.
func proof(private key.Secret, public, from key.Public, preshared key.Secret) ([]byte, error) {
	raw := preshared.Reveal()
	p, err := sign(private, public, labelPreshared, from[:], raw[:])
	if err != nil {
		return nil, err
	}
	return p[:proofSize], nil
}

// An End is what one end has: a tunnel, one of its peers, and the keys of both.
type End struct {
	Tunnel    *resolve.WireGuard
	Peer      *resolve.Peer
	Private   key.Secret
	Preshared key.Secret // zero: none
}

// public returns the peer's key.
func (e *End) public() (key.Public, error) { return key.ParsePublic(e.Peer.Key) }

// Write returns the summary of an end, signed.
func (e *End) Write(now time.Time) ([]byte, error) {
	to, err := e.public()
	if err != nil {
		return nil, fmt.Errorf("the peer's public key: %w", err)
	}
	t, p := e.Tunnel, e.Peer
	s := Summary{
		Time: now.UTC().Truncate(time.Second), From: e.Private.Public(), To: to, Interface: t.Name, Port: t.Port, Addresses: t.Addresses,
		Endpoint: p.Endpoint, Allowed: p.Allowed, Keepalive: p.Keepalive, Wide: p.Wide,
	}
	if t.MTUFixed {
		s.MTU = t.MTU
	}
	if p.Endpoint != "" {
		s.PortThere = p.Port
	}
	if s.Preshared, err = proof(e.Private, to, s.From, e.Preshared); err != nil {
		return nil, err
	}
	body, err := json.Marshal(&s)
	if err != nil {
		return nil, err
	}
	f := file{Version: version, Body: body}
	if f.MAC, err = sign(e.Private, to, labelMAC, body); err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(&f, "", "  ")
	return append(text, '\n'), err
}

// Errors of a summary that is not taken.
var (
	ErrNone    = errors.New("this is no summary of weir vpn summary")
	ErrVersion = errors.New("another version of weir has written the summary")
)

// A Signed is a summary whose signature has yet to be checked.
type Signed struct {
	Summary
	body, mac []byte
}

// Read reads a summary.
func Read(text []byte) (*Signed, error) {
	var f file
	if err := json.Unmarshal(text, &f); err != nil || f.Version == 0 {
		return nil, ErrNone
	}
	if f.Version != version {
		return nil, ErrVersion
	}
	var body bytes.Buffer
	s := &Signed{mac: f.MAC}
	if err := json.Compact(&body, f.Body); err != nil || json.Unmarshal(body.Bytes(), &s.Summary) != nil {
		return nil, ErrNone
	}
	for _, text := range []string{s.Interface, s.Endpoint} {
		if strings.ContainsFunc(text, unicode.IsControl) { // it is printed
			return nil, ErrNone
		}
	}
	s.body = body.Bytes()
	return s, nil
}

// genuine reports whether the end with the key From has signed the summary for an end with this private key.
func (s *Signed) genuine(private key.Secret) bool {
	mac, err := sign(private, s.From, labelMAC, s.body)
	return err == nil && hmac.Equal(mac, s.mac)
}
