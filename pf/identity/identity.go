package identity

import (
	"bytes"
	"encoding/hex"
	"net/netip"
	"slices"
	"strings"
)

// A kind is what an identity is, as IKE tells it.
type kind string

// Kinds that are compared in ways of their own, or that are many ends. The others are compared by their bytes.
const (
	kindAny     kind = "any"
	kindName    kind = "fqdn"
	kindMail    kind = "email"
	kindAddress kind = "address"
	kindMany    kind = "many"
	kindSubject kind = "subject"
	kindKey     kind = "keyid"
)

// prefixes are what charon takes for the kind of an identity in front of it, in any case. A number in braces is one, too.
var prefixes = map[string]kind{
	"fqdn": kindName, "dns": kindName, "email": kindMail, "rfc822": kindMail, "userfqdn": kindMail, "asn1dn": kindSubject, "keyid": kindKey,
	"asn1gn": "asn1gn", "xmppaddr": "xmppaddr", "uri": "uri",
	// Behind these are the bytes of addresses, and networks even behind those of one.
	"ipv4": kindMany, "ipv6": kindMany, "ipv4net": kindMany, "ipv6net": kindMany, "ipv4range": kindMany, "ipv6range": kindMany,
}

// An ID is who an end is.
type ID struct {
	kind    kind
	value   []byte
	address netip.Addr
	subject []attribute
	text    string
}

// Parse reads an identity. Every text is one.
func Parse(text string) ID {
	id := parse(text)
	id.text = text
	return id
}

func parse(text string) ID {
	if strings.HasPrefix(text, "{") {
		return ID{kind: kindMany}
	}
	if prefix, rest, ok := strings.Cut(text, ":"); ok {
		if k, ok := prefixes[lower(prefix)]; ok {
			return typed(k, rest)
		}
	}
	switch {
	case strings.Contains(text, "="):
		if s, ok := parseSubject(text); ok {
			return ID{kind: kindSubject, subject: s}
		}
		return ID{kind: kindKey, value: []byte(text)}
	case strings.HasPrefix(text, "@#"):
		return typed(kindKey, text[1:])
	case strings.HasPrefix(text, "@@"):
		return ID{kind: kindMail, value: []byte(text[2:])}
	case strings.HasPrefix(text, "@"):
		return ID{kind: kindName, value: []byte(text[1:])}
	case strings.Contains(text, "@"):
		return ID{kind: kindMail, value: []byte(text)}
	}
	return untyped(text)
}

// Name returns the identity that a DNS name of a certificate is, whatever Parse would read in it.
func Name(name string) ID { return ID{kind: kindName, value: []byte(name), text: name} }

// Mail returns the identity that a mail address of a certificate is.
func Mail(address string) ID { return ID{kind: kindMail, value: []byte(address), text: address} }

// Address returns the identity that an address of a certificate is.
func Address(a netip.Addr) ID { return ID{kind: kindAddress, address: a, text: a.String()} }

// NoSubject reports whether a text looks like the subject of a certificate, and charon takes it for the number of a key.
func NoSubject(text string) bool {
	prefix, _, typed := strings.Cut(text, ":")
	return strings.Contains(text, "=") && !(typed && prefixes[lower(prefix)] != "") && parse(text).kind == kindKey
}

// typed reads an identity behind its kind: text, or # and hexadecimal digits.
func typed(k kind, rest string) ID {
	value := []byte(rest)
	if digits, ok := strings.CutPrefix(rest, "#"); ok {
		var err error
		if value, err = hex.DecodeString(strings.ReplaceAll(digits, ":", "")); err != nil {
			return ID{kind: kindMany} // charon reads it all the same: 0x, half a byte, what is no digit
		}
	}
	if k == kindSubject {
		if s, ok := readSubject(value); ok {
			return ID{kind: kindSubject, subject: s}
		}
		return ID{kind: kindMany} // charon reads more lengths than DER has, and regular expressions
	}
	return ID{kind: k, value: value}
}

// untyped reads an address, several, or a name.
func untyped(text string) ID {
	if a, err := netip.ParseAddr(text); err == nil && a.Zone() == "" {
		if a.IsUnspecified() {
			return ID{kind: kindAny}
		}
		return ID{kind: kindAddress, address: a}
	}
	if text == "" || text == "%any" || text == "%any6" || text == "*" {
		return ID{kind: kindAny}
	}
	if i := strings.IndexAny(text, "/-"); i > 0 && isAddress(text[:i]) && (text[i] == '/' || isAddress(text[i+1:])) {
		return ID{kind: kindMany}
	}
	if strings.Contains(text, ":") {
		return ID{kind: kindKey, value: []byte(text)}
	}
	return ID{kind: kindName, value: []byte(text)}
}

func isAddress(text string) bool {
	_, err := netip.ParseAddr(text)
	return err == nil
}

// Many reports whether charon may take an identity for that of several ends: anybody, a network, one with a wildcard, a
// regular expression.
func (id ID) Many() bool {
	switch id.kind {
	case kindAny, kindMany:
		return true
	case kindName, kindMail:
		return bytes.ContainsRune(id.value, '*') || bytes.HasPrefix(id.value, []byte("^"))
	case kindSubject:
		for _, a := range id.subject {
			if a.value == "*" {
				return true
			}
		}
	}
	return false
}

// Same reports whether two identities are those of one end.
func (id ID) Same(other ID) bool {
	if id.kind != other.kind {
		return false
	}
	switch id.kind {
	case kindAddress:
		return id.address == other.address
	case kindName, kindMail:
		return equalFold(string(id.value), string(other.value))
	case kindSubject:
		return sameSubject(id.subject, other.subject)
	case kindMany:
		return id.text == other.text
	}
	return bytes.Equal(id.value, other.value)
}

// IsSubject reports whether an identity is the subject of a certificate.
func (id ID) IsSubject() bool { return id.kind == kindSubject }

// IsKey reports whether an identity is one of the numbers of a key.
func (id ID) IsKey(numbers ...[]byte) bool {
	return id.kind == kindKey && slices.ContainsFunc(numbers, func(n []byte) bool { return len(n) > 0 && bytes.Equal(id.value, n) })
}

// Address returns the address that an identity is.
func (id ID) Address() (netip.Addr, bool) { return id.address, id.kind == kindAddress }

// String returns an identity as text.
func (id ID) String() string { return id.text }

// equalFold compares ASCII letters without their case, as charon does, and nothing else.
func equalFold(a, b string) bool { return lower(a) == lower(b) }

func lower(text string) string {
	all := []byte(text)
	for i, c := range all {
		if 'A' <= c && c <= 'Z' {
			all[i] = c + 'a' - 'A'
		}
	}
	return string(all)
}
