package summary

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/pf/resolve"
)

// write writes a file that only its owner may read.
func write(t testing.TB, name string, text []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const psk = "a preshared key of a test"

// sites returns the ends of a tunnel that fit together.
func sites(t testing.TB) (a, b *resolve.IKEv2) {
	t.Helper()
	file := write(t, "psk", []byte(psk+"\n"))
	a = &resolve.IKEv2{
		Name: "ipsec0", MTU: 1400, Local: "192.0.2.1", Peer: "192.0.2.2", SrcID: "hq.example.org", DstID: "branch.example.org", PSKFile: file,
		From: prefixes("10.1.0.0/16"), To: prefixes("10.2.0.0/16", "10.3.0.0/16"), Networks: prefixes("10.2.0.0/16", "10.3.0.0/16"),
		Addresses: prefixes("10.9.0.1/30"), Proposals: "modern", Lifetime: 3600, IKELifetime: 14400,
	}
	b = &resolve.IKEv2{
		Name: "ipsec7", MTU: 1400, Local: "192.0.2.2", Peer: "192.0.2.1", SrcID: "@branch.example.org", DstID: "HQ.example.org", PSKFile: file,
		From: prefixes("0.0.0.0/0"), To: prefixes("0.0.0.0/0"), Networks: prefixes("10.1.0.0/16"),
		Addresses: prefixes("10.9.0.2/30"), Proposals: "compatible", Lifetime: 1800, IKELifetime: 14400,
	}
	return a, b
}

// sealed returns what an end writes, as the other reads it.
func sealed(t testing.TB, of *resolve.IKEv2) *SealedSite {
	t.Helper()
	text, err := WriteSite(of, now)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(text, []byte(psk)) || bytes.Contains(text, []byte("PRIVATE")) {
		t.Fatal("there is a secret in the summary")
	}
	s, err := ReadSite(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// What fits is said to fit, and each mismatch is named.
func TestCompareSite(t *testing.T) {
	a, b := sites(t)
	for _, pair := range [][2]*resolve.IKEv2{{a, b}, {b, a}} {
		s := sealed(t, pair[1])
		if !s.Fits(pair[0]) || s.Fits(pair[1]) {
			t.Error("a summary does not fit the other end, or fits its own")
		}
		all := CompareSite(pair[0], s, now.Add(time.Minute))
		if len(all) != 8 || !strings.Contains(all[0].Answer, "1m0s ago") || !strings.HasPrefix(all[2].Answer, "IKE aes256gcm16-prfsha384-x25519, packets aes256gcm16-x25519-noesn") {
			t.Errorf("%+v", all)
		}
		for _, f := range all {
			if !f.OK {
				t.Errorf("nothing is wrong, and it says %+v", f)
			}
		}
	}
	for _, c := range []struct {
		spoil            func(a, b *resolve.IKEv2)
		question, answer string
	}{
		{func(_, b *resolve.IKEv2) { b.DstID = "gw.example.org" }, "identities", "this end says that it is hq.example.org, and the other end expects gw.example.org"},
		{func(_, b *resolve.IKEv2) { b.SrcID = "x" }, "identities", "the other end says that it is x, and this end expects branch.example.org"},
		{func(_, b *resolve.IKEv2) { b.SrcID = "" }, "identities", "the other end has no srcid, so it gives its address, and this end expects branch.example.org"},
		{func(a, b *resolve.IKEv2) { b.SrcID, a.DstID = "", "192.0.2.9" }, "identities", "the other end has no srcid, so it says that it is 192.0.2.2, and this end expects 192.0.2.9"},
		{func(a, b *resolve.IKEv2) { a.SrcID, b.DstID = "", "192.0.2.9" }, "identities", "this end has no srcid, so it says that it is 192.0.2.1, and the other end expects 192.0.2.9"},
		{func(_, b *resolve.IKEv2) { b.SrcID = "email:branch.example.org" }, "identities", "the other end says that it is email:branch.example.org"},
		{func(_, b *resolve.IKEv2) { b.Proposals = "none of weir's" }, "proposals", "no algorithms for IKE"},
		{func(_, b *resolve.IKEv2) { b.To = prefixes("10.7.0.0/16") }, "selectors", "nothing in common: here from 10.1.0.0/16"},
		{func(_, b *resolve.IKEv2) { b.From = prefixes("10.2.0.0/16") }, "selectors", "10.3.0.0/16 is behind the other end here, and its from leaves it out"},
		{func(a, _ *resolve.IKEv2) { a.From = prefixes("10.1.7.0/24") }, "selectors", "10.1.0.0/16 is behind this end there, and our from leaves it out"},
		{func(_, b *resolve.IKEv2) { b.Networks = prefixes("10.2.0.0/16") }, "networks", "both ends say that 10.2.0.0/16"},
		{func(_, b *resolve.IKEv2) { b.Addresses = prefixes("10.9.0.1/30") }, "networks", "both ends have the address 10.9.0.1"},
		{func(a, b *resolve.IKEv2) { a.Passive, b.Passive = true, true }, "endpoints", "neither end begins"},
		{func(_, b *resolve.IKEv2) { b.Local = "192.0.2.3" }, "endpoints", "looks for the other one at 192.0.2.2, and that is at 192.0.2.3"},
		{func(_, b *resolve.IKEv2) { b.Peer = "192.0.2.9" }, "endpoints", "looks for this one at 192.0.2.9, and this is at 192.0.2.1"},
		{func(_, b *resolve.IKEv2) { b.MTU = 1380 }, "MTU", "here 1400, there 1380"},
	} {
		a, b := sites(t)
		c.spoil(a, b)
		s := siteOf(b, now)
		found := false
		for _, f := range s.compare(a, nil, nil) {
			found = found || !f.OK && f.Question == c.question && strings.Contains(f.Answer, c.answer)
		}
		if !found {
			t.Errorf("no answer to %s has %q: %+v", c.question, c.answer, s.compare(a, nil, nil))
		}
	}
}

// Ends without srcid have the addresses that packets leave from, which nobody knows without local.
func TestAddressedSite(t *testing.T) {
	a, b := sites(t)
	a.SrcID, b.SrcID, a.DstID, b.DstID = "", "", "192.0.2.2", "192.0.2.1"
	answer := func() string {
		t.Helper()
		f := siteOf(b, now).compare(a, nil, nil)[0]
		if !f.OK {
			t.Errorf("%+v", f)
		}
		return f.Answer
	}
	if got := answer(); got != "here 192.0.2.1, there 192.0.2.2" {
		t.Error(got)
	}
	a.Local, b.Local = "", ""
	if got := answer(); strings.Count(got, "unknown (it is the address that packets leave from;") != 2 {
		t.Error(got)
	}
}

// A summary of this end, one by another preshared key, and one that this end cannot check are not taken.
func TestForeignSite(t *testing.T) {
	for _, c := range []struct {
		spoil            func(a, b *resolve.IKEv2)
		question, answer string
	}{
		{func(a, b *resolve.IKEv2) { *b = *a }, "identities", "that of this end"},
		{func(a, b *resolve.IKEv2) { a.SrcID = ""; *b = *a }, "identities", "that of this end"},
		{func(_, b *resolve.IKEv2) { b.PSKFile = write(t, "other", []byte("another preshared key")) }, "preshared key", "different preshared keys"},
		{func(a, _ *resolve.IKEv2) { a.PSKFile = "/none" }, "preshared key", "no such file"},
	} {
		a, b := sites(t)
		c.spoil(a, b)
		foreign := sealed(t, b)
		all := CompareSite(a, foreign, now.Add(time.Hour))
		if strings.Contains(c.answer, "this end") && foreign.Fits(a) {
			t.Error("the summary of this end fits the other one")
		}
		if len(all) != 1 || all[0].OK || all[0].Question != c.question || !strings.Contains(all[0].Answer, c.answer) {
			t.Errorf("no answer to %s has %q: %+v", c.question, c.answer, all)
		}
	}
}

// authority signs certificates.
type authority struct {
	is  *x509.Certificate
	key *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{&x509.Certificate{Subject: pkix.Name{CommonName: "an authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, key}
	a.is.Raw = a.sign(t, a.is, &key.PublicKey)
	return a
}

func (a *authority) sign(t *testing.T, c *x509.Certificate, public any) []byte {
	t.Helper()
	c.SerialNumber, c.NotBefore, c.NotAfter = big.NewInt(1), now.Add(-time.Hour), now.Add(time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, c, a.is, public, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func inPEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// end gives an end a certificate.
func (a *authority) end(t *testing.T, of *resolve.IKEv2, name string, key any, public any) {
	t.Helper()
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	leaf := a.sign(t, &x509.Certificate{Subject: pkix.Name{Country: []string{"CH"}, CommonName: name}, DNSNames: []string{name}}, public)
	of.PSKFile, of.Certificate, of.KeyFile = "", write(t, "leaf", inPEM("CERTIFICATE", leaf)), write(t, "key", inPEM("PRIVATE KEY", private))
	of.CAFiles = []string{write(t, "ca", inPEM("CERTIFICATE", a.is.Raw))}
}

// Ends with certificates know each other by them, with keys of every kind. Somebody whom nobody trusts, or
// who is somebody else, is not believed.
func TestCertifiedSite(t *testing.T) {
	authority := newAuthority(t)
	p256, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	public, edKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a, b := sites(t)
	authority.end(t, a, "hq.example.org", p256, &p256.PublicKey)
	for _, c := range []struct{ key, public any }{{p256, &p256.PublicKey}, {rsaKey, &rsaKey.PublicKey}, {edKey, public}} {
		authority.end(t, b, "branch.example.org", c.key, c.public)
		for _, dstid := range []string{"branch.example.org", "c=CH, cn=branch.example.org"} {
			b.SrcID = ""
			if a.DstID = dstid; !strings.Contains(dstid, "=") {
				b.SrcID = dstid
			}
			if all := CompareSite(a, sealed(t, b), now); len(all) != 8 || !all[0].OK || !all[1].OK {
				t.Errorf("%T, %s: %+v", c.key, dstid, all)
			}
		}
	}
	a.DstID, b.SrcID = "branch.example.org", "branch.example.org"
	refused := func(what string, by *resolve.IKEv2) {
		t.Helper()
		if all := CompareSite(a, sealed(t, by), now); len(all) != 1 || all[0].OK || !strings.Contains(all[0].Answer, what) {
			t.Errorf("not %q: %+v", what, all)
		}
	}
	liar := *b
	newAuthority(t).end(t, &liar, "branch.example.org", edKey, public)
	refused("our ca file does not trust", &liar)
	authority.end(t, &liar, "other.example.org", edKey, public)
	liar.SrcID = ""
	refused("its alternative names are other.example.org", &liar)
	_, withPSK := sites(t)
	refused("one end has a preshared key", withPSK)
	a.DstID = "CN=branch.example.org, C=CH"
	b.SrcID = ""
	refused("dstid is", b)
}

// A summary that was changed is not taken.
func TestSiteSeal(t *testing.T) {
	a, b := sites(t)
	text, err := WriteSite(b, now)
	if err != nil {
		t.Fatal(err)
	}
	taken := func(text []byte) bool {
		s, err := ReadSite(text)
		return err == nil && CompareSite(a, s, now)[0].OK
	}
	if !taken(text) || !taken(bytes.ReplaceAll(text, []byte("\n"), []byte("\n\t "))) {
		t.Fatal("a good summary is not taken")
	}
	for _, c := range [][2]string{{"1400", "1401"}, {"10.1.0.0", "10.4.0.0"}, {"HQ.example", "hq.example"}} {
		if changed := bytes.Replace(text, []byte(c[0]), []byte(c[1]), 1); bytes.Equal(changed, text) || taken(changed) {
			t.Errorf("%q is changed, and the summary is taken", c[0])
		}
	}
	for _, wrong := range []string{"", "{}", `{"weir_vpn_summary":1}`, `{"weir_vpn_summary":1,"ikev2":7,"seal":{}}`, `{"weir_vpn_summary":1,"ikev2":{"srcid":"\u001b[2J"},"seal":{}}`} {
		if _, err := ReadSite([]byte(wrong)); !errors.Is(err, ErrNone) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	if _, err := ReadSite([]byte(`{"weir_vpn_summary":2,"ikev2":{},"seal":{}}`)); !errors.Is(err, ErrVersion) {
		t.Errorf("version 2: %v", err)
	}
}

func TestOverlap(t *testing.T) {
	for _, c := range []struct{ a, b, want []netip.Prefix }{
		{prefixes("0.0.0.0/0"), prefixes("10.1.0.0/16", "10.2.0.0/16"), prefixes("10.1.0.0/16", "10.2.0.0/16")},
		{prefixes("10.1.0.0/16"), prefixes("0.0.0.0/0", "::/0"), prefixes("10.1.0.0/16")},
		{prefixes("10.1.0.0/16"), prefixes("10.2.0.0/16"), nil},
	} {
		if got := overlap(c.a, c.b); text(got) != text(c.want) {
			t.Errorf("%v and %v: %v", c.a, c.b, got)
		}
	}
}

// Nobody without the key seals a summary that is taken. The seeds are whole, by another key, or changed.
func FuzzReadSite(f *testing.F) {
	a, b := sites(f)
	good, err := WriteSite(b, now)
	if err != nil {
		f.Fatal(err)
	}
	b.PSKFile = write(f, "other", []byte("another preshared key"))
	other, err := WriteSite(b, now)
	if err != nil {
		f.Fatal(err)
	}
	sealed, err := ReadSite(good)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(other)
	f.Add(bytes.Replace(good, []byte("1400"), []byte("1500"), 1))
	f.Add([]byte(`{"weir_vpn_summary":1,"ikev2":{"dstid":"x"},"seal":{"mac":""}}`))
	f.Add([]byte(`{"weir_vpn_summary":1,"ikev2":{"dstid":"x"},"seal":{"certificates":["AA=="]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if s, err := ReadSite(text); err == nil && !bytes.Equal(s.body, sealed.body) && CompareSite(a, s, now)[0].OK {
			t.Error("a summary is taken that nobody has sealed")
		}
	})
}
