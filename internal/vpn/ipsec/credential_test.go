package ipsec

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // charon's numbers of keys are such
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/pf/resolve"
)

const pskText = "a preshared key of a test"

// files are the files of two tunnels: a preshared key, and a certificate whose authority is one below ca.
type files struct {
	dir, psk, leaf, key, ca string
	keyText, keyID          string
}

// An authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newFiles(t *testing.T) *files {
	t.Helper()
	f := &files{dir: t.TempDir()}
	f.psk = f.write(t, "psk", 0o600, pskText+"\n")
	root, rootText := issue(t, nil, &x509.Certificate{Subject: pkix.Name{CommonName: "root"}, IsCA: true, BasicConstraintsValid: true})
	middle, middleText := issue(t, root, &x509.Certificate{Subject: pkix.Name{CommonName: "middle"}, IsCA: true, BasicConstraintsValid: true})
	leaf, leafText := issue(t, middle, &x509.Certificate{Subject: pkix.Name{CommonName: "hq"}, DNSNames: []string{"hq.example.org"}})
	f.ca = f.write(t, "ca.pem", 0o644, rootText)
	f.leaf = f.write(t, "leaf.pem", 0o644, leafText+middleText)
	f.keyText = keyText(t, leaf.key)
	f.key = f.write(t, "leaf.key", 0o600, f.keyText)
	var err error
	if f.keyID, err = keyID(leaf.certificate); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *files) write(t *testing.T, name string, mode os.FileMode, text string) string {
	t.Helper()
	path := filepath.Join(f.dir, name)
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

// issue makes a certificate, which is good for an hour unless it says otherwise.
func issue(t *testing.T, by *authority, c *x509.Certificate) (*authority, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if by == nil {
		by = &authority{c, key}
	}
	c.SerialNumber = big.NewInt(time.Now().UnixNano())
	if c.NotAfter.IsZero() {
		c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	}
	der, err := x509.CreateCertificate(rand.Reader, c, by.certificate, &key.PublicKey, by.key)
	if err != nil {
		t.Fatal(err)
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{made, key}, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func keyText(t *testing.T, key *ecdsa.PrivateKey) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// A chain is read from one file, and each thing that is wrong is named.
func TestCertificates(t *testing.T) {
	f := newFiles(t)
	tunnel := func() *resolve.IKEv2 {
		return &resolve.IKEv2{Certificate: f.leaf, KeyFile: f.key, CAFiles: []string{f.ca}, SrcID: "HQ.example.org"}
	}
	c, err := readCredentials(tunnel(), time.Now())
	if err != nil || len(c.chain) != 1 || len(c.cas) != 1 || c.keyID != f.keyID || string(c.key) != f.keyText {
		t.Fatalf("%d above, %d authorities, %q, %v", len(c.chain), len(c.cas), c.keyID, err)
	}
	for _, same := range []string{"@hq.example.org", "fqdn:hq.example.org", "dns:HQ.example.org"} {
		r := tunnel()
		r.SrcID = same
		if _, err := readCredentials(r, time.Now()); err != nil {
			t.Errorf("%s: %v", same, err)
		}
	}
	nobody, nobodyText := issue(t, nil, &x509.Certificate{DNSNames: []string{"hq.example.org"}})
	nameless := &resolve.IKEv2{Certificate: f.write(t, "nameless", 0o644, nobodyText), KeyFile: f.write(t, "nameless.key", 0o600, keyText(t, nobody.key)), CAFiles: []string{f.ca}}
	if _, err := readCredentials(nameless, time.Now()); err == nil || !strings.Contains(err.Error(), "no subject: say which") {
		t.Errorf("without a subject: %v", err)
	}
	other, _ := issue(t, nil, &x509.Certificate{Subject: pkix.Name{CommonName: "other"}})
	_, old := issue(t, nil, &x509.Certificate{Subject: pkix.Name{CommonName: "old"}, NotAfter: time.Now().Add(-time.Minute), IsCA: true, BasicConstraintsValid: true})
	for _, c := range []struct {
		spoil func(*resolve.IKEv2)
		want  string
	}{
		{func(r *resolve.IKEv2) { r.SrcID = "branch.example.org" }, "its alternative names are hq.example.org"},
		{func(r *resolve.IKEv2) { r.Certificate = f.dir + "/none" }, "no such file"},
		{func(r *resolve.IKEv2) { r.Certificate = f.key }, "has none in PEM"},
		{func(r *resolve.IKEv2) { r.KeyFile = f.write(t, "other", 0o600, keyText(t, other.key)) }, "is not the private key"},
		{func(r *resolve.IKEv2) { r.KeyFile = f.write(t, "open", 0o644, f.keyText) }, "chmod 600"},
		{func(r *resolve.IKEv2) {
			r.KeyFile = f.write(t, "locked", 0o600, strings.ReplaceAll(f.keyText, "PRIVATE", "ENCRYPTED PRIVATE"))
		}, "encrypted"},
		{func(r *resolve.IKEv2) { r.CAFiles = []string{f.write(t, "old", 0o644, old)} }, "is good until"},
	} {
		r := tunnel()
		c.spoil(r)
		if _, err := readCredentials(r, time.Now()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("not %q: %v", c.want, err)
		}
	}
	leafOnly := tunnel()
	leafOnly.CAFiles = []string{f.leaf}
	if _, err := readCredentials(leafOnly, time.Now()); err == nil || !strings.Contains(err.Error(), "no certificate of an authority") {
		t.Error(err)
	}
}

func TestPSK(t *testing.T) {
	f := newFiles(t)
	for text, want := range map[string]string{
		pskText + "\r\n": pskText, "0x" + strings.Repeat("41", 12): strings.Repeat("A", 12), "0sQUFBQUFBQUFBQUFB": strings.Repeat("A", 12),
		"short": "", "two lines of\ntext here": "", "0xyz": "", "0s*": "", "": "",
	} {
		got, err := readPSK(f.write(t, "any", 0o600, text))
		if string(got) != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", text, got, err)
		}
		if err != nil && len(text) > 5 && strings.Contains(err.Error(), text) {
			t.Errorf("the error has the key: %v", err)
		}
	}
}

// Nothing prints credentials.
func TestHidden(t *testing.T) {
	c := &credentials{psk: []byte(pskText), key: []byte(pskText)}
	printed := fmt.Sprintf("%v %+v %#v %s %x", c, c, c, c, c)
	if text, err := json.Marshal(map[string]any{"c": c, "t": memory{credentials: c}}); err != nil || strings.Contains(printed+string(text), pskText) || strings.Contains(printed, fmt.Sprintf("%x", pskText)) {
		t.Errorf("%s %s %v", printed, text, err)
	}
	a, b := c.fingerprint([]byte("1")), c.fingerprint([]byte("2"))
	if a == b || c.fingerprint(nil, "a") == c.fingerprint(nil, "b") || (&credentials{psk: []byte("ab")}).fingerprint(nil) == (&credentials{psk: []byte("a"), key: []byte("b")}).fingerprint(nil) {
		t.Error("fingerprints")
	}
}

// A certificate belongs to whom its subject names, in the certificate's own order, and with all of its parts.
func TestBelongs(t *testing.T) {
	part := func(value string, oid ...int) []pkix.AttributeTypeAndValue {
		return []pkix.AttributeTypeAndValue{{Type: oid, Value: value}}
	}
	der, err := asn1.Marshal(pkix.RDNSequence{
		part("org", 0, 9, 2342, 19200300, 100, 1, 25), part("gw", 2, 5, 4, 3), part("b", 2, 5, 4, 11), part("a", 2, 5, 4, 11), part("One, Inc.", 2, 5, 4, 10), part("CH", 2, 5, 4, 6),
	})
	if err != nil {
		t.Fatal(err)
	}
	made, _ := issue(t, nil, &x509.Certificate{RawSubject: der, DNSNames: []string{"gw.example.org"}, EmailAddresses: []string{"gw@example.org"}, IPAddresses: []net.IP{net.IPv4(192, 0, 2, 1)}})
	for id, want := range map[string]bool{
		"/DC=org/CN=gw/OU=b/OU=a/O=One, Inc./C=CH": true, "/dc=org/cn=GW/ou=B/ou=a/o=one, inc./c=ch": true, "/DC=org/CN=gw/OU=a/OU=b/O=One, Inc./C=CH": false,
		"/C=CH/O=One, Inc./OU=a/OU=b/CN=gw/DC=org": false, "DC=org, CN=gw, OU=b, OU=a, O=One, Inc., C=CH": false, "/CN=gw": false, "C=CH, O=One/ Inc., OU=b, OU=a, CN=gw": false,
		"gw.example.org": true, "FQDN:GW.example.org": true, "Email:gw@example.org": true, "gw@example.org": true, "192.0.2.1": true, "email:gw.example.org": false, "192.0.2.2": false,
		"keyid:gw.example.org": false, "@192.0.2.1": false,
	} {
		if err := belongs(made.certificate, id); (err == nil) != want {
			t.Errorf("%s: %v", id, err)
		}
	}
}

// A number of a key may be each of those that charon knows a certificate by, and a name is what it is.
func TestBelongsToKey(t *testing.T) {
	made, _ := issue(t, nil, &x509.Certificate{Subject: pkix.Name{CommonName: "gw"}, SubjectKeyId: []byte{1, 2, 3}, DNSNames: []string{"#6777", "a*b"}})
	c := made.certificate
	key, err := keyID(c)
	if err != nil {
		t.Fatal(err)
	}
	hash := func(b []byte) string { return fmt.Sprintf("keyid:#%x", sha1.Sum(b)) } //nolint:gosec // charon's numbers are such
	for id, want := range map[string]bool{
		"keyid:#010203": true, "keyid:#" + key: true, hash(c.Raw): true, hash(c.RawSubjectPublicKeyInfo): true, hash(c.RawSubject): false, "keyid:#": false,
		fmt.Sprintf("keyid:#%x", c.SerialNumber.Bytes()): false, "gw": false, "fqdn:#6777": false, "fqdn:#2336373737": true,
	} {
		if err := belongs(c, id); (err == nil) != want {
			t.Errorf("%s: %v", id, err)
		}
	}
}
