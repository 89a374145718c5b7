package identity

import (
	"encoding/asn1"
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// An attribute is a part of the subject of a certificate, as in CN=name.
type attribute struct {
	oid   string
	tag   int // of the value, in ASN.1
	value string
}

// attributes are those that have names in text, with the first of which they are written. emailAddress and
// unstructuredName are IA5String there; the others are PrintableString or, if they cannot be, UTF8String.
var attributes = []struct{ name, oid string }{
	{"ND", "0.2.262.1.10.7.20"}, {"UID", "0.9.2342.19200300.100.1.1"}, {"DC", "0.9.2342.19200300.100.1.25"}, {"CN", "2.5.4.3"}, {"serialNumber", "2.5.4.5"},
	{"C", "2.5.4.6"}, {"L", "2.5.4.7"}, {"ST", "2.5.4.8"}, {"STREET", "2.5.4.9"}, {"O", "2.5.4.10"}, {"OU", "2.5.4.11"}, {"T", "2.5.4.12"}, {"D", "2.5.4.13"},
	{"postalAddress", "2.5.4.16"}, {"postalCode", "2.5.4.17"}, {"N", "2.5.4.41"}, {"G", "2.5.4.42"}, {"I", "2.5.4.43"}, {"ID", "2.5.4.45"},
	{"dnQualifier", "2.5.4.46"}, {"dmdName", "2.5.4.54"}, {"pseudonym", "2.5.4.65"}, {"organizationIdentifier", "2.5.4.97"},
	{"E", oidMail}, {"Email", oidMail}, {"emailAddress", oidMail}, {"unstructuredName", oidUnstructured}, {"UN", oidUnstructured},
	{"unstructuredAddress", "1.2.840.113549.1.9.8"}, {"UA", "1.2.840.113549.1.9.8"}, {"employeeNumber", "2.16.840.1.113730.3.1.3"},
	{"EN", "2.16.840.1.113730.3.1.3"}, {"TCGID", "1.3.6.1.4.1.5504.1.75"},
	{"SN", oidSN}, {"S", oidSN},
}

const (
	oidMail         = "1.2.840.113549.1.9.1"
	oidUnstructured = "1.2.840.113549.1.9.2"
	oidSurname      = "2.5.4.4"
	oidSerial       = "2.5.4.5"
	oidSN           = "SN" // a surname or a serial number: versions of charon differ
)

// mostAttributes is how many of them charon reads from text.
const mostAttributes = 20

// parseSubject reads the text of a subject: parts behind commas, or behind slashes if it begins with one.
func parseSubject(text string) (all []attribute, ok bool) {
	separator := ","
	if text = strings.TrimLeft(text, " "); strings.HasPrefix(text, "/") {
		separator, text = "/", text[1:]
	}
	for {
		if text = strings.TrimLeft(text, " "); text == "" {
			return all, len(all) > 0
		}
		end := 1 + strings.IndexAny(text[1:], " =")
		known := slices.IndexFunc(attributes, func(a struct{ name, oid string }) bool { return equalFold(a.name, text[:end]) })
		if end == 0 || known < 0 || len(all) == mostAttributes {
			return nil, false
		}
		var value string
		value, text, _ = strings.Cut(strings.TrimLeft(text[end:], " ="), separator)
		value = strings.TrimRight(value, " ")
		all = append(all, attribute{oid: attributes[known].oid, tag: tagOf(attributes[known].oid, value), value: value})
	}
}

// tagOf returns how charon writes the value of an attribute that it has as text.
func tagOf(oid, value string) int {
	switch {
	case oid == oidMail || oid == oidUnstructured:
		return asn1.TagIA5String
	case strings.ContainsFunc(value, func(r rune) bool {
		return r > 'z' || !('0' <= r && r <= '9' || 'A' <= r && r <= 'Z' || 'a' <= r) && !strings.ContainsRune(" '()+,-./:=?", r)
	}):
		return asn1.TagUTF8String
	}
	return asn1.TagPrintableString
}

// Of the types of encoding/asn1, one whose name ends with SET is a set.
type (
	rawAttribute struct {
		Type  asn1.ObjectIdentifier
		Value asn1.RawValue
	}
	rawSET []rawAttribute
)

// readSubject reads a subject as certificates have it. The order stays.
func readSubject(der []byte) (all []attribute, ok bool) {
	var sets []rawSET
	if rest, err := asn1.Unmarshal(der, &sets); err != nil || len(rest) > 0 {
		return nil, false
	}
	for _, set := range sets {
		for _, a := range set {
			all = append(all, attribute{oid: a.Type.String(), tag: a.Value.Tag, value: string(a.Value.Bytes)})
		}
	}
	return all, len(all) > 0
}

// Subject returns the identity that the subject of a certificate is.
func Subject(der []byte) (ID, error) {
	s, ok := readSubject(der)
	if !ok {
		return ID{}, errors.New("the certificate has no subject")
	}
	return ID{kind: kindSubject, subject: s, text: textOf(s)}, nil
}

// textOf writes a subject as text. What does not print is escaped: the subject may be that of another end's certificate.
func textOf(all []attribute) string {
	var parts []string
	for _, a := range all {
		name := a.oid
		for _, known := range attributes {
			if known.oid == a.oid {
				name = known.name
				break
			}
		}
		if a.oid == oidSurname {
			name = oidSN
		}
		parts = append(parts, name+"="+printable(a.value))
	}
	return strings.Join(parts, ", ")
}

func printable(text string) string {
	if !utf8.ValidString(text) || strings.ContainsFunc(text, func(c rune) bool { return !unicode.IsPrint(c) }) {
		text = strconv.Quote(text)
	}
	return text
}

// sameSubject compares subjects part by part. The case of letters counts unless both values are PrintableString, or
// addresses of mail.
func sameSubject(a, b []attribute) bool {
	return slices.EqualFunc(a, b, func(a, b attribute) bool {
		switch {
		case !sameOID(a.oid, b.oid):
			return false
		case a.tag == b.tag && (a.tag == asn1.TagPrintableString || a.tag == asn1.TagIA5String && a.oid == oidMail):
			return equalFold(a.value, b.value)
		}
		return a.value == b.value
	})
}

func sameOID(a, b string) bool {
	if b == oidSN {
		a, b = b, a
	}
	return a == b || a == oidSN && (b == oidSurname || b == oidSerial)
}
