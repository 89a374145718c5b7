package identity

import (
	"encoding/asn1"
	"net/netip"
	"testing"
)

// What charon takes for one end is the same, and nothing else is.
func TestSame(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"branch", "Branch", true}, {"branch", "@branch", true}, {"branch", "FQDN:Branch", true}, {"branch", "dns:branch", true},
		{"branch", "email:branch", false}, {"branch", "keyid:branch", false}, {"a@b", "Email:A@B", true}, {"a@b", "@@a@b", true}, {"a@b", "userfqdn:a@b", true},
		{"192.0.2.1", "192.0.2.1", true}, {"192.0.2.1", "@192.0.2.1", false}, {"fd00::1", "fd00:0::1", true}, {"fd00::1", "fd00::2", false},
		{"@#6162", "keyid:ab", true}, {"keyid:ab", "keyid:AB", false}, {"keyid:#zz", "keyid:#zz", true},
		{"\u017f", "s", false}, {"\u212a", "k", false}, {"\xff", "\xfe", false}, // letters whose other case is ASCII
		{"C=CH, O=One, CN=a", "/C=ch/O=ONE/CN=A", true}, {"C=CH, O=One, CN=a", " c = CH,o=One , CN =a,", true},
		{"C=CH, CN=a", "CN=a, C=CH", false}, {"C=CH, CN=a", "C=CH", false}, {"OU=a, OU=b", "OU=b, OU=a", false}, {"OU=a, OU=b", "OU=a, OU=b", true},
		{"CN=a/b", "CN=a, b", false}, {"/CN=a,b", "CN=a\\,b", false}, {"/O=One, Inc./CN=a", "/o=one, inc./CN=a", true},
		{"CN=Zoë", "cn=Zoë", true}, {"CN=Zoë", "CN=zoë", false}, {"CN=a_b", "CN=A_b", false}, {"E=A@b", "emailAddress=a@b", true}, {"Email=a@b", "CN=a@b", false},
		{"S=x", "SN=x", true}, {"SN=x", "serialNumber=x", true}, {"none=x", "NONE=x", false}, {"none=x", "none=x", true}, {"CN", "CN=", false}, {"CN=", "CN=", true},
	} {
		if a, b := Parse(c.a), Parse(c.b); a.Same(b) != c.want || b.Same(a) != c.want {
			t.Errorf("%q and %q: %v and %v, not %v", c.a, c.b, a.Same(b), b.Same(a), c.want)
		}
	}
}

func TestMany(t *testing.T) {
	for text, want := range map[string]bool{
		"": true, "%any": true, "*": true, "0.0.0.0": true, "::": true, "0::0": true, "10.0.0.0/8": true, "10.0.0.0/": true, "10.0.0.1-10.0.0.9": true, "fd00::/8": true,
		"IPv4Net:10.0.0.0/8": true, "ipv6NET:fd00::/8": true, "IPV4RANGE:10.0.0.1-10.0.0.9": true, "ipv4:#00000000": true, "{4}:#0a000000ff000000": true,
		"*.example.org": true, "fqdn:#2A": true, "Email:^.*$": true, "rfc822:^a$": true, "dns:^a$": true, "ASN1DN:^.*$": true, "CN=*": true, "C=CH, CN=*": true,
		"asn1dn:#300c310a3008060355040313012a": true,
		"fqdn:#0x2a":                           true, "fqdn:#2": true, "email:#2 a": true, "keyid:#abc": true, "@#0x61": true, "@#zz": true, "{keyid}:a": true,
		"asn1dn:#0x300c310a3008060355040313012a": true, "asn1dn:#30810c310a3008060355040313012a": true, "asn1dn:CN=a": true,
		"branch": false, "10-gw": false, "a/b": false, "CN=a^b": false, "keyid:*": false, "@#2a": false, "fd00::1": false, "CN=a*b": false, "a@b": false,
	} {
		if got := Parse(text).Many(); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// A subject keeps its order and all its parts, of which Go's pkix.Name has another one.
func TestSubject(t *testing.T) {
	type attribute struct {
		Type  asn1.ObjectIdentifier
		Value asn1.RawValue
	}
	type partSET []attribute
	part := func(tag int, value string, oid ...int) partSET {
		return partSET{{oid, asn1.RawValue{Tag: tag, Bytes: []byte(value)}}}
	}
	cn, o, ou, c, dc, mail := []int{2, 5, 4, 3}, []int{2, 5, 4, 10}, []int{2, 5, 4, 11}, []int{2, 5, 4, 6}, []int{0, 9, 2342, 19200300, 100, 1, 25}, []int{1, 2, 840, 113549, 1, 9, 1}
	subject := func(parts ...partSET) ID {
		der, err := asn1.Marshal(parts)
		if err != nil {
			t.Fatal(err)
		}
		id, err := Subject(der)
		if err != nil {
			t.Fatal(err)
		}
		if hex := Parse("asn1dn:" + string(der)); !hex.Same(id) {
			t.Errorf("%s is not what its bytes are", id)
		}
		return id
	}
	whole := subject(
		part(asn1.TagIA5String, "org", dc...), part(asn1.TagIA5String, "example", dc...), part(asn1.TagUTF8String, "first", ou...), part(asn1.TagUTF8String, "second", ou...),
		part(asn1.TagPrintableString, "CH", c...), part(asn1.TagUTF8String, "One, Inc.", o...), part(asn1.TagPrintableString, "gw", cn...), part(asn1.TagIA5String, "A@example.org", mail...),
	)
	for text, want := range map[string]bool{
		"/DC=org/DC=example/OU=first/OU=second/C=CH/O=One, Inc./CN=gw/E=a@example.org":            true,
		"/DC=org/DC=example/OU=first/OU=second/c=ch/O=One, Inc./CN=GW/emailAddress=A@example.org": true,
		"/DC=example/DC=org/OU=first/OU=second/C=CH/O=One, Inc./CN=gw/E=a@example.org":            false,
		"/DC=org/DC=example/OU=second/OU=first/C=CH/O=One, Inc./CN=gw/E=a@example.org":            false,
		"/DC=org/DC=example/OU=First/OU=second/C=CH/O=One, Inc./CN=gw/E=a@example.org":            false, // the case of UTF8String counts
		"DC=org, DC=example, OU=first, OU=second, C=CH, O=One, Inc., CN=gw, E=a@example.org":      false,
		"/C=CH/O=One, Inc./OU=first/OU=second/CN=gw/DC=org/DC=example/E=a@example.org":            false,
	} {
		if whole.Same(Parse(text)) != want {
			t.Errorf("%s and %s: not %v", whole, text, want)
		}
	}
	if plain := subject(part(asn1.TagUTF8String, "gw", cn...), part(asn1.TagUTF8String, "One", o...)); !plain.Same(Parse("CN=gw, O=One")) || plain.Same(Parse("O=One, CN=gw")) || plain.String() != "CN=gw, O=One" {
		t.Error(plain)
	}
	if odd := subject(part(asn1.TagUTF8String, "a\x1b[1m", cn...), part(asn1.TagT61String, "\xe9", o...)).String(); odd != `CN="a\x1b[1m", O="\xe9"` {
		t.Error(odd)
	}
	if _, err := Subject([]byte{0x30, 0}); err == nil {
		t.Error("nobody has a subject without parts")
	}
}

// Names of certificates are what they are, also if a text of an identity would read otherwise.
func TestNames(t *testing.T) {
	for _, c := range []struct {
		is   ID
		text string
		want bool
	}{
		{Name("gw"), "fqdn:gw", true}, {Name("gw"), "GW", true}, {Name("#6777"), "gw", false}, {Name("#6777"), "fqdn:gw", false}, {Name("*"), "gw", false},
		{Name("192.0.2.1"), "192.0.2.1", false}, {Name("192.0.2.1"), "@192.0.2.1", true}, {Mail("#614062"), "a@b", false}, {Mail("a@b"), "A@b", true},
		{Address(netip.MustParseAddr("fd00::1")), "fd00:0::1", true}, {Address(netip.MustParseAddr("192.0.2.1")), "192.0.2.2", false},
	} {
		if c.is.Same(Parse(c.text)) != c.want || Parse(c.text).Same(c.is) != c.want {
			t.Errorf("%s and %q: not %v", c.is, c.text, c.want)
		}
	}
}

func TestNoSubject(t *testing.T) {
	for text, want := range map[string]bool{
		"O=Example\\, Inc., CN=gw": true, "O=Example, Inc., CN=gw": true, "CN=gw, X=y": true, "/CN=gw/Z=1": true, "/O=Example, Inc./CN=gw": false, "CN=gw": false, "CN=Zoë, O=Größe": false,
		"keyid:a=b": false, "fqdn:a=b": false, "gw": false, "a@b": false, "=": true, "abc=": true,
	} {
		if got := NoSubject(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"C=CH, CN=a", "/C=CH/CN=a", "@#6162", "fqdn:a", "10.0.0.0/8", "asn1dn:#3000"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if id := Parse(text); !id.Same(Parse(text)) {
			t.Errorf("%q is not the same as itself", text)
		}
	})
}
